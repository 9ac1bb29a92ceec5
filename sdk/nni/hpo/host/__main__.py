"""Command line of the host; only the dispatcher calls it.

python -m nni.hpo.host --in-fd 5 --out-fd 6 --parent-pid 123     serve one algorithm
python -m nni.hpo.host --check < request.json                    check a custom class
python -m nni.hpo.host --importance < request.json               hyperparameter importance
"""

import argparse
import ctypes
import gc
import os
import signal
import sys
from pathlib import Path
from typing import Final

from nni.hpo.host.command_loop import CommandLoop
from nni.hpo.host.command_pipe import CommandPipe
from nni.hpo.host.single_request import run_check, run_importance

_PR_SET_PDEATHSIG: Final = 1
"""Option of `prctl(2)`: signal to this process when its parent ends."""

_GC_THRESHOLDS: Final = (20_000, 20, 50)
"""Thresholds of the cyclic garbage collector. A replay makes hundreds of thousands of objects that
stay, which Python's own thresholds visit again and again: a tenth of its time."""


def main() -> int:
    """Run the algorithm host, a class check or an importance request; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m nni.hpo.host")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--importance", action="store_true")
    parser.add_argument("--in-fd", type=int, default=-1)
    parser.add_argument("--out-fd", type=int, default=-1)
    parser.add_argument("--parent-pid", type=int, default=0)
    arguments = parser.parse_args()
    _remove_working_directory()
    if arguments.parent_pid and not kill_with_parent(arguments.parent_pid):
        return 1
    if arguments.check:
        return run_check(sys.stdin, sys.stdout)
    if arguments.importance:
        return run_importance(sys.stdin, sys.stdout)
    gc.set_threshold(*_GC_THRESHOLDS)
    pipe = CommandPipe(arguments.in_fd, arguments.out_fd)
    loop = CommandLoop(pipe)
    pipe.idle = loop.prepare
    loop.run()
    return 0


def kill_with_parent(parent_pid: int) -> bool:
    """Request SIGKILL at the parent's end; return False if the parent has ended already.

    Args:
        parent_pid: process id of the parent.

    Returns:
        False if the parent has ended already. On systems other than Linux only this check is made,
        and the end of the command pipe ends the host.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    return os.getppid() == parent_pid


def _remove_working_directory() -> None:
    """Remove the working directory, a log folder, from the import path, where `-m` puts it."""
    here = str(Path.cwd())
    sys.path[:] = [entry for entry in sys.path if entry not in {"", here}]


if __name__ == "__main__":
    sys.exit(main())
