"""Processes of a worker, read from /proc: identities, marks, signals; standard library only."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

MARK: Final = "NNI_AGENT_FOLDER"
"""Variable that an agent and all its trials inherit: the folder of the agent."""
_POLL_S: Final = 0.05


def start_time(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None: none, or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] == b"Z" else int(fields[19])


def runs(pid: int, started: int) -> bool:
    """Return whether a process of this id and start time runs."""
    return pid > 0 and start_time(pid) == started


def has_ended(pid: int, started: int) -> bool:
    """Return whether no process of this pid and start time runs any more."""
    return not runs(pid, started)


def send_signal(pid: int, started: int, number: signal.Signals) -> None:
    """Send a signal to the process of this id and start time; do nothing if it has ended."""
    with suppress(OSError):
        descriptor = os.pidfd_open(pid)
        try:
            if runs(pid, started):  # the descriptor pins the process, so the number stays its own
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


def wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Wait until a condition holds; return whether it does within the time."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_S)
    return True


def marked(folder: Path) -> list[tuple[int, int]]:
    """Return (pid, start time) of other processes whose environment marks the agent's folder."""
    mark = f"{MARK}={folder}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        name = entry.name
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                started = start_time(int(name))
                if started is not None:
                    found.append((int(name), started))
    return found


def kill_marked(folder: Path, timeout_s: float = 5.0) -> bool:
    """Kill an agent's processes and trials, within a time limit; return whether none is left."""

    def none_left() -> bool:
        found = marked(folder)
        for pid, started in found:
            send_signal(pid, started, signal.SIGKILL)
        return not found

    return wait_until(none_left, timeout_s)
