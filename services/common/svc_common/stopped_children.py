"""Child processes that a signal has stopped (SIGSTOP): they are continued at once.

A service waits for the answer of its child, and a stopped one never gives it. The kernel reports
the stop of a child as it reports its end, so nothing is polled.
"""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from svc_common.logs import get_logger


@contextmanager
def stopped_children_continued() -> Iterator[None]:
    """Continue each child of this process that is stopped, as long as the block lasts.

    Only the main thread's event loop may do it, and only one at a time.
    """
    loop = asyncio.get_running_loop()
    reported: set[int] = set()

    def continue_all() -> None:
        for pid in _newly_stopped():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
            if pid not in reported:  # one that stops itself in a loop fills no log
                reported.add(pid)
                get_logger().warning("child process was stopped by a signal, continued", pid=pid)

    loop.add_signal_handler(signal.SIGCHLD, continue_all)
    try:
        continue_all()
        yield
    finally:
        loop.remove_signal_handler(signal.SIGCHLD)


def _newly_stopped() -> Iterator[int]:
    """Yield the ids of children that have stopped since the last call; ends are left to others."""
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WSTOPPED | os.WNOHANG)
        except ChildProcessError:
            return  # there are no children
        if found is None:
            return
        yield found.si_pid
