"""Program that runs a command which the kernel kills when the parent process ends.

Called as `python -I -S end_with_parent.py PARENT COMMAND...`, with the process id of the parent. It
takes the place of a function between fork and exec: while threads of gRPC run, a forked copy of
the supervisor may abort, but a started program cannot.
"""

import ctypes
import os
import signal
import sys
from typing import Final, NoReturn

CANNOT_EXECUTE: Final = 127
"""Exit status if the parent has ended already, or if the command cannot be executed."""
_PR_SET_PDEATHSIG: Final = 1


def run(parent: int, arguments: list[str]) -> NoReturn:
    """Execute a command in place of this process, killed when the parent ends; else exit 127."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the line above
        sys.exit(CANNOT_EXECUTE)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and by what it executes
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execvp(arguments[0], arguments)  # noqa: S606 - no shell is wanted
    except OSError as error:
        sys.stderr.write(f"{arguments[0]} cannot be run: {error.strerror}\n")
        sys.exit(CANNOT_EXECUTE)


if __name__ == "__main__":
    run(int(sys.argv[1]), sys.argv[2:])
