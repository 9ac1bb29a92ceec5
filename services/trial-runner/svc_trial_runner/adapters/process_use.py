"""CPU time and memory of trials' processes, read from /proc, and the file of their samples."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from svc_common.code_user import SAME_USER, CodeUser
from svc_trial_runner.domain.claims import ProcessIdentity
from svc_trial_runner.domain.resource_use import RESOURCES, ProcessUse

_PROCESSES_LIMIT: Final = 1000
"""Processes of one trial that are read; a trial may have started any number."""
_THREADS_LIMIT: Final = 10_000
"""Threads of one trial that are asked for their children, for the same reason."""
_CLOCK_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_START_TIME, _FIRST_CPU, _LAST_CPU = 19, 11, 14
"""Fields of `/proc/<pid>/stat` behind the name: start, and CPU time in user and kernel mode, of the
process and of the children that it has waited for."""
_APPEND: Final = (
    os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
)
"""Without following a link, or waiting for the reader of a pipe, that the trial has put there."""


class ProcTrialUse:
    """`TrialUse` of this machine: reads /proc, and appends samples to a file of the trial's folder.

    Args:
        code_user: account of trials, as which their processes are read and their files are
            written.
    """

    def __init__(self, code_user: CodeUser = SAME_USER) -> None:
        self._code_user = code_user

    def read(self, leader: ProcessIdentity) -> ProcessUse | None:
        """Return CPU time and memory of a process and its descendants; None: it has ended."""
        with self._code_user.acting():
            return self._read(leader)

    def _read(self, leader: ProcessIdentity) -> ProcessUse | None:
        ticks, pids = 0, []
        for pid in _tree(leader.pid):
            fields = _stat(pid)
            if fields is None:
                continue
            if pid == leader.pid and int(fields[_START_TIME]) != leader.start_time:
                return None  # another process has its number
            ticks += sum(int(field) for field in fields[_FIRST_CPU : _LAST_CPU + 1])
            pids.append(pid)
        if leader.pid not in pids:
            return None
        memory_bytes = sum(_memory_bytes(pid, shared=len(pids) > 1) for pid in pids)
        return ProcessUse(ticks * _CLOCK_TICK_S, memory_bytes, len(pids))

    def append(self, directory: str, line: bytes) -> None:
        """Append a line to the samples of a trial; lose it if it cannot be written."""
        with suppress(OSError), self._code_user.acting():
            file = os.open(f"{directory}/{RESOURCES}", _APPEND, 0o644)
            try:
                if stat.S_ISREG(os.fstat(file).st_mode):
                    os.write(file, line)
            finally:
                os.close(file)

    def forget(self, directory: str) -> None:
        """Delete the samples of a trial's earlier attempt, if there are any."""
        with suppress(OSError), self._code_user.acting():
            Path(directory, RESOURCES).unlink(missing_ok=True)


def _tree(leader: int) -> Iterator[int]:
    """Yield a process and its descendants, parents first, up to limits."""
    pending, found, threads = [leader], 0, 0
    while pending and found < _PROCESSES_LIMIT:
        pid = pending.pop()
        yield pid
        found += 1
        for task in _threads(pid)[: _THREADS_LIMIT - threads]:
            threads += 1
            pending += map(int, _read(f"/proc/{pid}/task/{task}/children").split())


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - read once a second
    except OSError:  # the process has ended
        return []


def _stat(pid: int) -> list[bytes] | None:
    """Return the fields of `/proc/<pid>/stat` after the process name; None: it has ended."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split() or None


def _memory_bytes(pid: int, *, shared: bool) -> int:
    """Return a process's resident memory; 0: it has ended.

    Args:
        pid: of the process.
        shared: divide memory by the number of processes that share it, where the kernel tells; it
            walks through all pages for that, so it is asked for several processes only.
    """
    if shared:
        for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    fields = _read(f"/proc/{pid}/statm").split()
    return int(fields[1]) * _PAGE_BYTES if fields else 0


def _read(path: str) -> bytes:
    """Return the content of a file of /proc; empty: its process has ended, or is not readable."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as in `process_table`
            return file.read()
    except OSError:
        return b""
