"""Private folders and small files of a service, replaced if they cannot be used.

A damaged file must not keep a service from starting. It is renamed, so that a person can look at
it, and the service starts without it.
"""

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

    Raises:
        OSError: the path cannot be examined.
    """
    _set_aside_unless(path, stat.S_ISREG, "it must be a regular file")


def _set_aside_unless(path: Path, is_right: Callable[[int], bool], rule: str) -> None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if not path.is_symlink():
            return
        set_aside(path, "it is a link to nothing")
    else:
        if not is_right(mode):
            set_aside(path, rule)
