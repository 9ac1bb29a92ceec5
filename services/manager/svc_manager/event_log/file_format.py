"""File format of an experiment's event log: `db/events.log`, and `events.log` of an archive.

Layout: the magic line, then records of a header (stream sequence, length, CRC-32 of the payload;
big-endian) and the payload.
"""

import os
import re
import struct
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, Final

MAGIC: Final = b"NNI events 1\n"
_ANY_VERSION: Final = re.compile(rb"NNI events \d+\n?")
_FLIPPED_LIMIT: Final = 2
"""Damaged bytes with which a magic line is still recognised."""
_HEADER: Final = struct.Struct(">QII")
_PAYLOAD_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Larger payloads are damaged lengths: the bus takes messages of 8 MB."""
_SEQUENCE_START: Final = b"\0\0\0"
"""First bytes of every record: sequences of a stream are below 2**40."""
_SEARCH_LIMIT_BYTES: Final = 256 * 1024 * 1024
"""Maximum of bytes whose checksums a search behind damaged bytes computes."""


def file_of(records: Iterable[tuple[int, bytes]]) -> bytes:
    """Return the bytes of an event log file: magic line, then the (sequence, payload) records."""
    return b"".join([MAGIC, *(record_of(sequence, payload) for sequence, payload in records)])


def damaged_bytes(file: BinaryIO, end: int) -> int:
    """Return how many bytes after a log file's last whole record are damaged; 0 for a torn write.

    Args:
        file: open file.
        end: end of its last whole record.

    Returns:
        0: there are none, or they begin a record whose write was interrupted, as by a kill.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(end)
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return 0
    if header == bytes(_HEADER.size):
        return size - end
    length = _HEADER.unpack(header)[1]
    is_torn = length <= _PAYLOAD_LIMIT_BYTES and end + _HEADER.size + length > size
    return 0 if is_torn else size - end


def record_of(sequence: int, payload: bytes) -> bytes:
    """Return the bytes of a record: header of sequence, length and CRC-32, then the payload."""
    return _HEADER.pack(sequence, len(payload), zlib.crc32(payload)) + payload


def is_magic(line: bytes) -> bool:
    """Return whether a file's first bytes are the magic line, be it with one or two damaged bytes.

    The magic line of another version is none.
    """
    if len(line) < len(MAGIC) or _ANY_VERSION.fullmatch(line):
        return line == MAGIC
    return sum(a != b for a, b in zip(line, MAGIC, strict=True)) <= _FLIPPED_LIMIT


def whole_records(file: BinaryIO) -> Iterator[tuple[int, bytes, int]]:
    """Yield (sequence, payload, end offset) of records up to the first damaged; raise if no log.

    Stops before the first torn or damaged record.

    Args:
        file: open at its beginning.

    Raises:
        ValueError: the file does not start with the magic line.
    """
    if not is_magic(file.read(len(MAGIC))):
        raise ValueError("not an event log: it does not start with the magic line")
    end = len(MAGIC)
    while True:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return
        sequence, length, checksum = _HEADER.unpack(header)
        payload = file.read(length) if length <= _PAYLOAD_LIMIT_BYTES else b""
        is_whole = len(payload) == length and zlib.crc32(payload) == checksum
        if not (is_whole and sequence):  # zeros, as a crash may leave them, have the right checksum
            return
        end += _HEADER.size + length
        yield sequence, payload, end


def readable_records(file: BinaryIO) -> list[tuple[int, bytes]]:
    """Return (sequence, payload) of all whole records, also of those behind damaged bytes.

    A record that a late writer has appended again is left out; a damaged sequence is replaced.

    Args:
        file: open at its beginning.

    Raises:
        ValueError: the file does not start with the magic line.
    """
    data = file.read()
    if not is_magic(data[: len(MAGIC)]):
        raise ValueError("not an event log: it does not start with the magic line")
    found: list[tuple[int, bytes]] = []
    place, budget = len(MAGIC), _SEARCH_LIMIT_BYTES
    while place >= 0 and budget > 0:
        record = _record_at(data, place)
        if record is None:
            budget -= _claimed_bytes(data, place)
            place = data.find(_SEQUENCE_START, place + 1)
            continue
        found.append(record)
        place += _HEADER.size + len(record[1])
    return _in_order(found)


def _in_order(records: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return each batch once; one out of order gets a free sequence between, or is dropped.

    A damaged sequence is replaced by one between those of its neighbours, if there is one.

    Example:
        4, 900, 6, 7 become 4, 5, 6, 7.
    """
    chain = growing(records)
    taken = {records[place][1] for place in chain}
    found: list[tuple[int, bytes]] = []
    last = place = 0
    for end in [*chain, len(records)]:
        limit = records[end][0] if end < len(records) else last + 1
        for _, payload in records[place:end]:
            if payload not in taken and last + 1 < limit:
                last += 1
                found.append((last, payload))
        found += records[end : end + 1]
        last, place = limit, end + 1
    return found


def growing(records: Sequence[tuple[int, bytes]]) -> list[int]:
    """Return the indices of the longest subsequence of records whose stream sequences grow.

    Source: the method of patience sorting, for longest increasing subsequences.
    """
    ends: list[int] = []
    lengths: list[int] = []
    for sequence, _ in records:
        length = bisect_left(ends, sequence)
        ends[length : length + 1] = [sequence]
        lengths.append(length)
    chain: list[int] = []
    wanted = len(ends) - 1
    for place in reversed(range(len(records))):
        if lengths[place] == wanted and (not chain or records[place][0] < records[chain[-1]][0]):
            chain.append(place)
            wanted -= 1
    return chain[::-1]


def _record_at(data: bytes, place: int) -> tuple[int, bytes] | None:
    """Return the whole record at an offset; None: there is none, or it is damaged."""
    start = place + _HEADER.size
    if start > len(data):
        return None
    sequence, length, checksum = _HEADER.unpack_from(data, place)
    payload = data[start : start + length] if length <= _PAYLOAD_LIMIT_BYTES else b""
    is_whole = len(payload) == length and zlib.crc32(payload) == checksum
    return (sequence, payload) if sequence and is_whole else None


def _claimed_bytes(data: bytes, place: int) -> int:
    """Return the payload length in the header at an offset; 0: above a limit or the file's end."""
    start = place + _HEADER.size
    length: int = _HEADER.unpack_from(data, place)[1] if start <= len(data) else 0
    return length if length <= min(_PAYLOAD_LIMIT_BYTES, len(data) - start) else 0
