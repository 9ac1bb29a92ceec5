"""Protection of a process from other programs, and limits of what its children inherit."""

import ctypes
import os
from typing import Final

_PR_SET_DUMPABLE: Final = 4
_PR_SET_KEEPCAPS: Final = 8
_PR_CAP_AMBIENT: Final = 47
_AMBIENT_RAISE: Final = 2
_AMBIENT_CLEAR_ALL: Final = 4
_CAPABILITY_VERSION: Final = 0x20080522
_CAP_KILL: Final = 5
_CAP_SETGID: Final = 6
_CAP_SETUID: Final = 7
_OF_SERVICES: Final = (_CAP_KILL, _CAP_SETGID, _CAP_SETUID)
"""Rights with which a service runs and ends processes of another user."""
_MASK: Final = sum(1 << number for number in _OF_SERVICES)
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def forbid_inspection() -> None:
    """Forbid other processes of this user to read this one's memory or environment.

    The kernel's flag ends with `exec`, so child processes can be inspected. The price is that core
    dumps and debuggers work for root only.
    """
    _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def become_with_capabilities(uid: int, gid: int, groups: list[int]) -> None:
    """Become another user, but keep the rights to change users and to signal those of others.

    Programs that this process executes inherit these rights.

    Raises:
        PermissionError: this process does not have them.
    """
    _prctl(_PR_SET_KEEPCAPS, 1)
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    _set_capabilities(_MASK, inheritable=_MASK)
    for number in _OF_SERVICES:
        _prctl(_PR_CAP_AMBIENT, _AMBIENT_RAISE, number)


def keep_capabilities_from_children() -> None:
    """Clear ambient and inheritable capabilities, so that children get none; keep own ones."""
    _LIBC.prctl(_PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL, 0, 0, 0)
    sets = (_Sets * 2)()
    _LIBC.capget(ctypes.byref(_Header(_CAPABILITY_VERSION, 0)), ctypes.byref(sets))
    for one in sets:
        one.inheritable = 0
    _LIBC.capset(ctypes.byref(_Header(_CAPABILITY_VERSION, 0)), ctypes.byref(sets))


def _set_capabilities(mask: int, *, inheritable: int) -> None:
    header = _Header(_CAPABILITY_VERSION, 0)
    sets = (_Sets * 2)(_Sets(mask, mask, inheritable), _Sets(0, 0, 0))
    if _LIBC.capset(ctypes.byref(header), ctypes.byref(sets)) != 0:
        number = ctypes.get_errno()
        raise OSError(
            number,
            f"{os.strerror(number)}: the capabilities SETUID, SETGID and KILL are missing; "
            "add them to the container",
        )


def _prctl(option: int, first: int, second: int = 0) -> None:
    if _LIBC.prctl(option, first, second, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)}: prctl({option}, {first}, {second})")
