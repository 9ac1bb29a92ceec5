"""Private folders and small files of a service, replaced if they cannot be used.

A damaged file must not keep a service from starting. It is renamed, so that a person can look at
it, and the service starts without it.
"""

import errno
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from svc_common.logs import get_logger

DAMAGED: Final = ".damaged-"
"""Part of the names of files that were set aside; a time stamp follows."""
_OTHERS: Final = 0o077
_PRIVATE: Final = 0o700
_USABLE: Final = stat.S_IRUSR | stat.S_IWUSR
_UNREADABLE: Final = frozenset({errno.EACCES, errno.EIO})
"""Errors of a file that is another user's, or lies on a damaged part of the disk."""


def set_aside(path: Path, reason: str) -> None:
    """Rename an unusable file or folder to `<name>.damaged-<time>` and log it; never raise."""
    place = path.with_name(f"{path.name}{DAMAGED}{time.time_ns()}")
    try:
        path.rename(place)
    except OSError as error:  # e.g. the file system is read-only
        get_logger().error("damaged file", path=str(path), reason=reason, error=str(error))
        return
    get_logger().error("damaged file set aside", path=str(path), moved_to=str(place), reason=reason)


def private_folder(path: Path) -> None:
    """Create a folder with mode 0700, or close it to others, best effort; rename a file in its way.

    A folder of this user that others can enter is closed to them.

    Raises:
        OSError: the folder cannot be created.
    """
    _set_aside_unless(path, stat.S_ISDIR, "it must be a folder")
    path.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    mode = path.stat().st_mode
    if mode & _OTHERS:
        try:
            path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
        except PermissionError as error:  # it belongs to another user, who decides
            get_logger().warning("folder open to others", path=str(path), error=str(error))


def place_for_file(path: Path) -> None:
    """Rename the entry at a path unless it is a regular file, so that a file can be written.

    A file of this user that this user may not read and write is opened to it. It keeps its inode,
    since it may be a lock that is held.

    Raises:
        OSError: the path cannot be examined.
    """
    _set_aside_unless(path, stat.S_ISREG, "it must be a regular file")
    try:
        found = path.stat()
        if found.st_uid == os.geteuid() and found.st_mode & _USABLE != _USABLE:
            path.chmod(stat.S_IMODE(found.st_mode) | _USABLE)
    except FileNotFoundError:
        return
    except OSError as error:  # the file system is read-only
        get_logger().warning("file stays unusable", path=str(path), error=str(error))


def place_for_log(path: Path) -> None:
    """Rename the entry at a path unless it is a file to which this user may append.

    A log of another user is left by a start with that user's rights. Not for locks: one of another
    user may be held.

    Raises:
        OSError: the path cannot be examined.
    """
    place_for_file(path)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC))
    except PermissionError as error:
        set_aside(path, f"it cannot be written: {error.strerror}")
    except OSError:  # it is missing, or the disk is read-only
        return


def read_or_set_aside(path: Path) -> bytes | None:
    """Return the content of a small file; None: it is missing, or unreadable and so renamed.

    Raises:
        OSError: it cannot be read for a reason that lies outside of it, as too many open files.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno not in _UNREADABLE:
            raise
        set_aside(path, f"it cannot be read: {error.strerror}")
        return None


def _set_aside_unless(path: Path, is_right: Callable[[int], bool], rule: str) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if path.is_symlink():
            set_aside(path, "it is a link to nothing")
        elif not isinstance(error, FileNotFoundError):
            raise
    else:
        if not is_right(mode):
            set_aside(path, rule)
