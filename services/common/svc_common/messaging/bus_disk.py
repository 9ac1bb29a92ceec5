"""Disk of a bus on this machine: why it takes no messages."""

import errno
import os
import shutil
from pathlib import Path
from typing import Final

from nni_wire.folders import BUS_ROOM_BYTES

_MEBIBYTE: Final = 1024 * 1024


def free_bytes(folder: Path) -> int:
    """Return the free bytes of the disk that holds a folder; 0: unknown."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0


def disk_trouble(folder: Path) -> str:
    """Return that the bus's disk is full or not writable, with the remedy; empty: it is neither.

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
    """Try to create a nameless file in a folder; return why that fails; empty: it works."""
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
