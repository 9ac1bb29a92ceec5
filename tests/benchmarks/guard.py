"""Guard of a benchmark: all processes that it started end with it, however it ends.

A benchmark starts services that outlive the process that starts them, as they do for users. So the
benchmark runs as a child of its guard, with a mark in its environment that processes below it
inherit; orphans become children of the guard. When the benchmark ends, or the guard gets SIGTERM,
the guard kills the marked processes and its descendants. When the guard itself is killed, its
watcher does so: a process in a session of its own, which waits for the end of the guard.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Final

import psutil

MARK: Final = "NNI_BENCH_MARK"
"""Variable that all processes of one benchmark have, with the same value."""
_PR_SET_CHILD_SUBREAPER: Final = 36
_ROUNDS: Final = 50
"""Limit of searches for processes that were started while others were killed."""


def run_guarded() -> None:
    """Restart this process as the guard of the benchmark that it runs, unless it has one."""
    if MARK not in os.environ and Path(sys.argv[0]).name.startswith("bench_"):
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, __file__, *sys.orig_argv[1:]])


def private_folder_prefix() -> str:
    """Return the start of the names of folders that are removed with the benchmark."""
    return f"nni-bench-{os.environ.get(MARK, '')}-"


def guard(arguments: list[str]) -> int:
    """Run Python with arguments as a marked child; return its exit code.

    SIGTERM and SIGINT end the benchmark and what it has started.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _exit_by)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    mark = f"{os.getpid()}-{secrets.token_hex(4)}"
    watcher = _start_watcher(mark)
    try:
        benchmark = subprocess.Popen(
            [sys.executable, *arguments], env={**os.environ, MARK: mark}, start_new_session=True
        )
        return benchmark.wait()
    finally:
        end(mark, spared=watcher)
        os.kill(watcher, signal.SIGKILL)
        os.waitpid(watcher, 0)


def end(mark: str, spared: int) -> None:
    """Kill all processes with a mark or below this one, and remove the folders of the mark.

    Args:
        mark: of one benchmark.
        spared: number of the watcher, which is not killed.
    """
    for _ in range(_ROUNDS):
        found = [one for one in _processes_of(mark) if one.pid not in {spared, os.getpid()}]
        if not found:
            break
        for process in found:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(found, timeout=1.0)
    for folder in Path(tempfile.gettempdir()).glob(f"nni-bench-{mark}-*"):
        shutil.rmtree(folder, ignore_errors=True)


def _processes_of(mark: str) -> list[psutil.Process]:
    wanted = f"{MARK}={mark}".encode()
    found = psutil.Process().children(recursive=True)
    for process in psutil.process_iter():
        try:
            if wanted in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0"):
                found += [process, *process.children(recursive=True)]
        except (OSError, psutil.NoSuchProcess):
            continue
    return [one for one in set(found) if one.is_running() and not _is_zombie(one)]


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _start_watcher(mark: str) -> int:
    """Start the process that cleans up after a killed guard; return its number."""
    descriptor = os.pidfd_open(os.getpid())
    child = os.fork()
    if child:
        os.close(descriptor)
        return child
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    select.select([descriptor], [], [])
    end(mark, spared=os.getpid())
    os._exit(0)


def _exit_by(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(guard(sys.argv[1:]))
