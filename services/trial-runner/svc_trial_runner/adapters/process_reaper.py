"""Process-wide kernel settings of the agent, and the reaper of adopted orphans."""

import asyncio
import ctypes
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

from svc_trial_runner.adapters.process_table import ProcessSnapshot, serves_mount, signal_exactly

_PR_SET_CHILD_SUBREAPER: Final = 36


def become_subreaper() -> None:
    """Adopt orphaned descendants as children, so that all of them stay visible."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def kill_descendants() -> None:
    """Kill all descendants, including daemons that trials left.

    The daemon of a storage that stays mounted goes on: another agent of this machine uses it.
    """
    for entry in ProcessSnapshot().descendants(os.getpid()):
        if not serves_mount(entry.pid):
            signal_exactly(entry, signal.SIGKILL)


def raise_descriptor_limit() -> None:
    """Raise the limit of open files to the maximum: a running trial holds five and more."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def machine_boot_id() -> str:
    """Return an id that changes with each boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


class Reaper:
    """Reaper of all ended children, adopted ones included; calls back with pid and wait status."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_end: list[Callable[[int, int], None]] = []
        self._loop.add_signal_handler(signal.SIGCHLD, self._reap)

    def on_end(self, call: Callable[[int, int], None]) -> None:
        """Register a callback for each child that ends, called with pid and wait status."""
        self._on_end.append(call)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for call in self._on_end:
                call(pid, status)

    def close(self) -> None:
        """Stop reaping."""
        self._loop.remove_signal_handler(signal.SIGCHLD)
