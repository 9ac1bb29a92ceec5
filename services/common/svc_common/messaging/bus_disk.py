"""Disk of a bus on this machine: why it takes no messages."""

import errno
import fcntl
import os
import shutil
from pathlib import Path
from typing import Final, Self

from nni_wire.folders import BUS_ROOM_BYTES, BUS_START_BYTES
from svc_common.own_files import place_for_file

_MEBIBYTE: Final = 1024 * 1024
_PROBE_BYTES: Final = _MEBIBYTE
"""Size of the file that is tried: with less room under a quota the bus halts again at once."""
_REMEDIES: Final = {
    errno.ENOSPC: "delete files, for the disk has no room for more of them (df -i)",
    errno.EDQUOT: "delete files or raise the quota",
}


def free_bytes(folder: Path) -> int:
    """Return the free bytes of the disk that holds a folder; 0: unknown."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0


class HaltSign:
    """Lock file by which the supervisor shows that the bus has halted and waits for its disk.

    A lock, since a full or read-only disk takes no file: it is on a file that exists from the start
    on, and ends with the process that holds it.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open the lock file of a bus's folder, not locked yet; create it if missing.

        A folder of its name is set aside.

        Raises:
            OSError: its file cannot be made.
        """
        file = _sign_file(folder)
        place_for_file(file)
        return cls(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def put_up(self) -> None:
        """Lock the file: the bus has halted."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def take_down(self) -> None:
        """Unlock the file: the bus works, or starts."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file, which unlocks it; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def has_halted(folder: Path) -> bool:
    """Return whether the supervisor holds the lock that marks this folder's bus as halted."""
    try:
        descriptor = os.open(_sign_file(folder), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _sign_file(folder: Path) -> Path:
    return folder.parent / "bus-halted.lock"


def disk_trouble(folder: Path, least_bytes: int) -> str:
    """Return why a bus cannot store messages in a folder, with the remedy; empty: nothing shows.

    Args:
        folder: of its data.
        least_bytes: a disk with less free space is full.
    """
    free = free_bytes(folder)
    if free < least_bytes:
        missing = -((free - BUS_ROOM_BYTES) // _MEBIBYTE)
        return (
            f"the bus's disk is full: {free // _MEBIBYTE} MB are free for {folder}; "
            f"free {missing} MB, and it goes on by itself"
        )
    return _write_trouble(folder)


def bus_trouble(folder: Path) -> str:
    """Return why a bus on this machine takes no messages, with the remedy; empty: nothing shows."""
    if not has_halted(folder):
        return disk_trouble(folder, BUS_START_BYTES)
    return disk_trouble(folder, BUS_ROOM_BYTES) or "the bus is being restarted: its disk was full"


def _write_trouble(folder: Path) -> str:
    """Try to write a nameless file in a folder; return why that fails; empty: it works."""
    try:
        # A file without a name, which is gone when it is closed. A disk that an error has made
        # read-only, or a quota that is used up, shows itself only to writers.
        descriptor = os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in {errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT}:
            return ""  # this file system has no files without a name
        return _refusal(error, folder)
    try:
        os.posix_fallocate(descriptor, 0, _PROBE_BYTES)
    except OSError as error:
        return "" if error.errno in {errno.EOPNOTSUPP, errno.EINVAL} else _refusal(error, folder)
    finally:
        os.close(descriptor)
    return ""


def _refusal(error: OSError, folder: Path) -> str:
    """Return why a disk with free bytes takes no file, with the remedy."""
    remedy = _REMEDIES.get(error.errno or 0, "make it writable")
    return (
        f"the bus's disk cannot be written: {error.strerror} ({folder}); {remedy}, and it goes on "
        "by itself"
    )
