"""Opening of files relative to the descriptor of a folder, without following any link.

One system call, `openat2`, where the kernel has it; else part by part.
"""

import ctypes
import errno
import os
import sys
from functools import cache
from typing import Final, Protocol

_SYS_OPENAT2: Final = 437
"""Number of the system call, the same on all architectures that Linux has added since 5.1."""
_RESOLVE_NO_SYMLINKS: Final = 0x04
_RESOLVE_BENEATH: Final = 0x08
_TRIES: Final = 16
"""Tries of `openat2` while a parallel rename makes its answer uncertain."""
FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
"""Flags of a descriptor that only serves as the start of names."""


class UnsafePathError(FileNotFoundError):
    """Error of a relative name that leads out of its folder or through a symbolic link."""

    def __init__(self, name: str) -> None:
        super().__init__(errno.ELOOP, "leads out of its folder or through a symbolic link", name)


def plain_parts(name: str) -> list[str]:
    """Split a relative path at `/`; raise UnsafePathError if a part is empty, `.` or `..`.

    Raises:
        UnsafePathError: it is absolute or empty, has a NUL, or a part is empty, `.` or `..`.
    """
    parts = name.split("/")
    if "\0" in name or any(part in {"", ".", ".."} for part in parts):
        raise UnsafePathError(name)
    return parts


class _OpenHow(ctypes.Structure):
    """`struct open_how` of the kernel."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_libc = ctypes.CDLL(None, use_errno=True)


@cache
def has_openat2() -> bool:
    """Return whether the system call `openat2` works in this process, by trying it."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        os.close(_openat2(-100, ".", FOLDER, 0, 0))  # -100: AT_FDCWD
    except OSError:
        return False
    return True


class OpenBeneath(Protocol):
    """Interface of a function that opens a path below a folder's descriptor, following no link."""

    def __call__(self, root: int, parts: list[str], flags: int, mode: int = 0) -> int:
        """Open a name below a folder's descriptor without following links; raise if one is met."""
        ...


def open_beneath(root: int, parts: list[str], flags: int, mode: int = 0) -> int:
    """Open a path below a folder without following links; return its descriptor; raise on a link.

    Args:
        root: descriptor of a folder.
        parts: of the name; see `plain_parts`.
        flags: of `os.open`.
        mode: of a file that is created.

    Raises:
        UnsafePathError: a link is in the way.
        OSError: it cannot be opened.
    """
    if has_openat2():
        for _ in range(_TRIES):
            try:
                return _openat2(
                    root, "/".join(parts), flags, mode, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS
                )
            except BlockingIOError:  # EAGAIN: something was renamed meanwhile
                continue
            except OSError as error:
                raise _clear(error, parts) from error
    return open_by_parts(root, parts, flags, mode)


def open_by_parts(root: int, parts: list[str], flags: int, mode: int = 0) -> int:
    """Open a path below a descriptor part by part, following no links; return its descriptor.

    See `open_beneath`, which does so on kernels without `openat2`.
    """
    current = os.dup(root)
    try:
        for part in parts[:-1]:
            below = os.open(part, FOLDER | os.O_NOFOLLOW, dir_fd=current)
            os.close(current)
            current = below
        return os.open(parts[-1], flags | os.O_NOFOLLOW, mode, dir_fd=current)
    except NotADirectoryError as error:
        # Of a link, too, which O_DIRECTORY refuses before O_NOFOLLOW does.
        raise UnsafePathError("/".join(parts)) from error
    except OSError as error:
        raise _clear(error, parts) from error
    finally:
        os.close(current)


def _clear(error: OSError, parts: list[str]) -> OSError:
    name = "/".join(parts)
    if error.errno in {errno.ELOOP, errno.EXDEV}:
        return UnsafePathError(name)
    return OSError(error.errno, error.strerror, name)


def _openat2(root: int, name: str, flags: int, mode: int, resolve: int) -> int:
    how = _OpenHow(flags, mode, resolve)
    descriptor: int = _libc.syscall(
        ctypes.c_long(_SYS_OPENAT2),
        ctypes.c_int(root),
        ctypes.c_char_p(os.fsencode(name)),
        ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )
    if descriptor < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return descriptor
