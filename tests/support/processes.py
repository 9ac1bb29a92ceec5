"""Process trees and their memory and CPU time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import psutil

_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


def tree(root_pid: int) -> list[psutil.Process]:
    """Return the process ``root_pid`` and all its running descendants."""
    try:
        root = psutil.Process(root_pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def named(root_pid: int, word: str) -> list[psutil.Process]:
    """Return the descendants of ``root_pid`` whose command line holds ``word``."""
    found = []
    for process in tree(root_pid)[1:]:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            if word in " ".join(process.cmdline()):
                found.append(process)
    return found


def pss_bytes(root_pid: int) -> int:
    """Return the proportional set size of the tree below and with ``root_pid``."""
    return sum(_pss_bytes(process.pid) for process in tree(root_pid))


def _pss_bytes(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    for line in text.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def cpu_seconds(root_pid: int) -> float:
    """Return the CPU time of the tree, of its dead and reaped children too."""
    return sum(_cpu_ticks(process.pid) for process in tree(root_pid)) * _TICK_S


def _cpu_ticks(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    # Fields 14-17: utime, stime, cutime, cstime; the command may hold spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15])


def cpu_seconds_by_name(root_pid: int, words: list[str]) -> dict[str, float]:
    """Return `cpu_seconds` of the processes whose command line holds each of ``words``."""
    return {
        word: sum(_cpu_ticks(process.pid) for process in named(root_pid, word)) * _TICK_S
        for word in words
    }


def alive(pids: list[int]) -> Iterator[int]:
    """Yield those of ``pids`` that still run (zombies do not)."""
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                yield pid
