"""Simulator of a log-structured key-value store that is filled with random keys.

Writes go into a memtable. Full memtables wait until enough of them can be merged into one file of
level 0; enough files of level 0 are compacted into level 1. One disk does all of it in the
background. Writes are slower while many memtables and files wait, and stall if the disk is behind.
"""

import math

MIB = 2**20
ENTRY_BYTES = 120
"""A key of 20 bytes and a value of 100."""
SECONDS_A_WRITE = 0.35e-6
SECONDS_A_COMPARISON = 0.03e-6
"""Of a key, on the way to its place in the memtable."""
DELAY_A_MIB = 0.0324e-6
"""Of each write, for each MiB of memtables in memory: they no longer fit into the cache."""
DELAY_A_FILE = 0.053e-6
"""Of each write, for each file of level 0."""
DISK_BYTES_A_SECOND = 400 * MIB
SECONDS_A_FLUSH = 0.010
"""To begin a file of level 0, and to sync it."""
LEVEL_1_BYTES = 64 * MIB
"""Read and written again by each compaction."""
DISK_SHARE = 0.5
"""Part of the disk's work that writes wait for, since their log is on the same disk."""


def writes_per_second(write_buffer_size, merged_memtables, compacted_files):
    """Return how fast the store is filled, from one compaction to the next.

    Args:
        write_buffer_size: bytes of a memtable.
        merged_memtables: number of memtables that are flushed into one file of level 0.
        compacted_files: number of files of level 0 that start a compaction.
    """
    entries = write_buffer_size / ENTRY_BYTES  # of a memtable
    insert_s = SECONDS_A_WRITE + SECONDS_A_COMPARISON * math.log2(entries)
    writing_s = 0.0
    for files in range(compacted_files):
        for full in range(merged_memtables):
            in_memory = (full + 0.5) * write_buffer_size / MIB  # the last one is half full
            delay_s = DELAY_A_MIB * in_memory + DELAY_A_FILE * files
            writing_s += entries * (insert_s + delay_s)

    file_bytes = merged_memtables * write_buffer_size
    flushes_s = compacted_files * (SECONDS_A_FLUSH + file_bytes / DISK_BYTES_A_SECOND)
    compacted = compacted_files * file_bytes + LEVEL_1_BYTES
    disk_s = flushes_s + 2 * compacted / DISK_BYTES_A_SECOND

    total_s = writing_s + DISK_SHARE * disk_s
    stall_s = max(0.0, disk_s - total_s)  # level 0 is full before the compaction has ended
    return entries * merged_memtables * compacted_files / (total_s + stall_s)
