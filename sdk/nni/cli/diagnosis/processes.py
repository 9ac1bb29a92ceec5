"""Checks of processes: the supervisor, its children, and orphans of an earlier one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil

from nni.cli.diagnosis.finding import Finding

_HOME: Final = "NNI_HOME"
_TRIAL: Final = "NNI_TRIAL_JOB_ID"
_SERVICES: Final = {
    "svc_manager": "manager",
    "svc_dispatcher": "dispatcher",
    "svc_trial_runner": "trial-runner",
    "svc_compressor": "compressor",
    "svc_nas": "nas",
}
_ON_DEMAND: Final = {"compressor": "compression job", "nas": "architecture search"}
"""Services that the supervisor starts with the first connection to their port, and its cause."""
_BUS: Final = "nats-server"


def check_children() -> Iterator[Finding]:
    """Yield ok or, if missing or stopped by SIGSTOP, bad per service; no supervisor: nothing."""
    supervisor = _supervisor()
    if supervisor is None:
        return
    children = _names(supervisor)
    for name in (*_SERVICES.values(), _BUS):
        process = children.get(name)
        if process is None and name in _ON_DEMAND:
            yield Finding(name, "ok", f"starts with the first {_ON_DEMAND[name]}")
        elif process is None:
            text = (
                "is not running; its supervisor starts it again every few seconds. If it does not "
                f"stay, the end of {_log(name)} says why"
            )
            yield Finding(name, "bad", text)
        elif process.status() == psutil.STATUS_STOPPED:
            text = f"is halted (SIGSTOP); let it go on with: kill -CONT {process.pid}"
            yield Finding(name, "bad", text)
        else:
            yield Finding(name, "ok", f"pid {process.pid}")


def check_interpreter() -> Iterator[Finding]:
    """Yield ok, or a note if the services run under another interpreter; none if they are down."""
    supervisor = _supervisor()
    if supervisor is None:
        return
    command = supervisor.cmdline()
    theirs = command[0] if command else ""
    if theirs and Path(theirs).parent != Path(sys.executable).parent:
        text = (
            f"the services run under {theirs}, this command under {sys.executable}: algorithms and "
            "trials of this one may miss packages; run: nnictl down, then nnictl up"
        )
        yield Finding("interpreter", "note", text)
    else:
        yield Finding("interpreter", "ok", "that of the services")


def check_orphans() -> Iterator[Finding]:
    """Yield ok, or bad if a service, bus or trial of this installation has no supervisor."""
    from nni.experiment.environment import nni_home

    supervisor = _supervisor()
    kept = set() if supervisor is None else {supervisor.pid, *_pids_below(supervisor)}
    home = str(nni_home().resolve())
    left = [
        process
        for process in psutil.process_iter()
        if process.pid not in kept and process.pid != os.getpid() and _belongs(process, home)
    ]
    if left:
        shown = ", ".join(f"{_title(process)} (pid {process.pid})" for process in left[:5])
        pids = " ".join(str(process.pid) for process in left)
        text = f"{len(left)} outlived their supervisor: {shown}; end them with: kill {pids}"
        yield Finding("orphans", "bad", text)
    else:
        yield Finding("orphans", "ok", "none")


def _supervisor() -> psutil.Process | None:
    from nni.experiment.endpoint import read_endpoint

    endpoint = read_endpoint()
    if endpoint is None or endpoint.remote is not None:
        return None
    try:
        return psutil.Process(endpoint.supervisor_pid)
    except psutil.NoSuchProcess:
        return None


def _names(supervisor: psutil.Process) -> dict[str, psutil.Process]:
    found: dict[str, psutil.Process] = {}
    for child in supervisor.children():
        try:
            words = child.cmdline()
        except psutil.Error:
            continue
        name = next((_SERVICES[word] for word in words if word in _SERVICES), "")
        if not name and words and Path(words[0]).name == _BUS:
            name = _BUS
        if name and child.status() != psutil.STATUS_ZOMBIE:
            found[name] = child
    return found


def _pids_below(process: psutil.Process) -> list[int]:
    return [child.pid for child in process.children(recursive=True)]


def _belongs(process: psutil.Process, home: str) -> bool:
    """Return True if a process is a service, bus or trial of the installation in ``home``."""
    try:
        words = process.cmdline()
        if process.status() == psutil.STATUS_ZOMBIE or not words:
            return False
        if Path(words[0]).name == _BUS:
            return any(word.startswith(f"{home}{os.sep}") for word in words)
        if not any(word in _SERVICES for word in words) and _TRIAL not in process.environ():
            return False
        return str(Path(process.environ().get(_HOME, "~")).expanduser().resolve()) == home
    except psutil.Error:  # another user's, or gone
        return False


def _title(process: psutil.Process) -> str:
    try:
        words = process.cmdline()
        return next((_SERVICES[word] for word in words if word in _SERVICES), process.name())
    except psutil.Error:
        return "a process"


def _log(name: str) -> Path:
    from nni.experiment.environment import nni_home

    stem = "nats" if name == _BUS else name
    return nni_home() / "log" / f"{stem}.log"
