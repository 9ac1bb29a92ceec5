"""Protection of a process from other programs of its user."""

import ctypes
from typing import Final

_PR_SET_DUMPABLE: Final = 4


def forbid_inspection() -> None:
    """Forbid other processes of this user to read this one's memory or environment.

    The kernel's flag ends with `exec`, so child processes can be inspected. The price is that core
    dumps and debuggers work for root only.
    """
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
