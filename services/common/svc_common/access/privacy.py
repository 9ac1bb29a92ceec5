"""Keeps the credentials of a process from other processes of the same user, such as user code."""

import ctypes
from typing import Final

_PR_SET_DUMPABLE: Final = 4


def keep_to_itself() -> None:
    """Let no other process of this user read memory or environment of this one, or trace it.

    What is started from here can be looked into again: the kernel's mark ends with `exec`. It
    costs core dumps and debuggers, so it is for processes that user code runs beside and whose
    secrets that code could not read from a file anyway.
    """
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
