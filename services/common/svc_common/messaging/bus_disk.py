"""Disk of a bus on this machine: why it takes no messages."""

import errno
import os
import shutil
from pathlib import Path
from typing import Final

from nni_wire.folders import BUS_ROOM_BYTES

_MEBIBYTE: Final = 1024 * 1024


def free_bytes(folder: Path) -> int:
    """Return the free space of the disk with a folder; 0: it is unknown."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0


def disk_trouble(folder: Path) -> str:
    """Return why a bus cannot store messages in a folder, with the remedy; empty: nothing shows.

    Not to be called often: it asks the disk.
    """
    free = free_bytes(folder)
    if free < BUS_ROOM_BYTES:
        missing = -((free - BUS_ROOM_BYTES) // _MEBIBYTE)
        return (
            f"the bus's disk is full: {free // _MEBIBYTE} MB are free for {folder}; "
            f"free {missing} MB, and it goes on by itself"
        )
    return _write_trouble(folder)


def _write_trouble(folder: Path) -> str:
    """Return why a file in a folder cannot be written; empty: it can, or nothing shows."""
    try:
        # A file without a name, which is gone when it is closed. A disk that an error has made
        # read-only shows it only to writers.
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except OSError as error:
        if error.errno in {errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT}:
            return ""  # this file system has no files without a name
        return (
            f"the bus's disk cannot be written: {error.strerror} ({folder}); make it writable, "
            "and it goes on by itself"
        )
    return ""
