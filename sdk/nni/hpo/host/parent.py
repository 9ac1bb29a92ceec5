"""How the host ends with its dispatcher, even in the middle of a long computation."""

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
"""Of `prctl(2)`: the signal that a process gets when its parent dies."""


def die_with(parent_pid: int) -> bool:
    """Let the kernel kill this process when its parent ends.

    Args:
        parent_pid: the process that started this one.

    Returns:
        False if that process has ended already. Elsewhere than on Linux the end of the command
        pipe must do, and the answer is whether the parent is there.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    return os.getppid() == parent_pid
