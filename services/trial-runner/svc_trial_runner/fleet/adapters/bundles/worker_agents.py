"""Agents on a worker: start, state, stop and removal; standard library only."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from svc_trial_runner.fleet.adapters.bundles.worker_bundles import SITE, remove_unused
from svc_trial_runner.fleet.adapters.bundles.worker_folders import (
    END,
    LOG,
    PREPARATION,
    PROCESS,
    SETTINGS,
    WorkerError,
    WorkerFolders,
    file_errors,
    make_private,
    read_fields,
    remove_folder,
    write_fields,
    write_private,
)
from svc_trial_runner.fleet.adapters.bundles.worker_machine import boot_key, machine_key
from svc_trial_runner.fleet.adapters.bundles.worker_processes import (
    has_ended,
    kill_marked,
    marked,
    runs,
    send_signal,
    wait_until,
)

RUNNING: Final = "running"
ENDED: Final = "ended"
PREPARED: Final = "prepared"
ELSEWHERE: Final = "elsewhere"
"""Runs on another machine that shares the home, as far as is known here."""
_SUPERVISOR_S: Final = 2.0
"""Time for a supervisor to write how its agent ended."""
_LOG_TAIL_LIMIT_BYTES: Final = 256 * 1024


def write_settings(folders: WorkerFolders, name: str, digest: str, content: bytes) -> None:
    """Create an agent's private folder; write its settings and its bundle's hash into it.

    Args:
        folders: of NNI.
        name: of the agent.
        digest: of its bundle, which stays although the agent may start much later.
        content: of the file of settings.

    Raises:
        WorkerError: the folder cannot be written.
    """
    folders.open()
    folder = folders.agent(name)
    with file_errors(folder):
        make_private(folder)
        write_fields(folder / PREPARATION, {"bundle": digest})
        write_private(folder / SETTINGS, content)


def start(folders: WorkerFolders, name: str, digest: str, settings: bytes) -> dict[str, Any]:
    """Start an agent in its own session unless it runs; wait for its start; return its state.

    Args:
        folders: of NNI.
        name: of the agent.
        digest: of the bundle, which is unpacked here.
        settings: content of the file of settings.

    Raises:
        WorkerError: `bundle_missing`, or the folder cannot be written.
    """
    known = state(folders, name)
    if known["state"] in {RUNNING, ELSEWHERE}:
        return {**known, "started": False}
    bundle = folders.bundle(digest)
    with file_errors(bundle):
        if not (bundle / SITE).is_dir():
            raise WorkerError("bundle_missing", f"{bundle} is not unpacked", permanent=False)
        os.utime(bundle)
        folders.open()
        make_private(folders.agent(name))
    with (folders.agent(name) / LOG).open("ab") as log:
        supervisor = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", str(bundle / "run.py"), "worker"),
                *("--folder", str(folders.base), "run", "--detach", name, digest),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )
    with supervisor:  # it forks, and its child stays
        assert supervisor.stdin is not None
        assert supervisor.stdout is not None
        with suppress(BrokenPipeError), supervisor.stdin as target:
            target.write(settings)
        word = supervisor.stdout.readline().decode().strip()
    if not word:
        reason = read_tail(folders, name, 2000).strip().splitlines()
        raise WorkerError(
            "start_failed",
            f"the agent {name} did not start on {os.uname().nodename}:"
            f" {reason[-1] if reason else 'it gives no reason'}",
            permanent=False,
        )
    return {**state(folders, name), "started": word == "started"}


def state(folders: WorkerFolders, name: str) -> dict[str, Any]:
    """Return an agent's state by its files and whether its process runs: phase, host, reason."""
    folder = folders.agent(name)
    process = read_fields(folder / PROCESS)
    end = read_fields(folder / END)
    found: dict[str, Any] = {
        "name": name,
        "state": PREPARED,
        "host": process.get("host", ""),
        "pid": process.get("pid"),
        "bundle": process.get("bundle", ""),
        "started_at": process.get("started_at"),
    }
    if end:
        return {**found, "state": ENDED, **end}
    if not process:
        return found
    if process.get("machine") != machine_key():
        return {**found, "state": ELSEWHERE}
    if process.get("boot") != boot_key():
        return {**found, "state": ENDED, "reason": f"{process.get('host')} was restarted"}
    if runs(*_process(folders, name)):
        return {**found, "state": RUNNING}
    end = read_fields(folder / END)  # it may have ended in between
    return {**found, "state": ENDED, **(end or {"reason": "its process was killed"})}


def _process(folders: WorkerFolders, name: str) -> tuple[int, int]:
    """Return number and start time of the supervisor of an agent; zeros: not known."""
    process = read_fields(folders.agent(name) / PROCESS)
    pid, started = process.get("pid"), process.get("start_time")
    return (pid, started) if isinstance(pid, int) and isinstance(started, int) else (0, 0)


def states(folders: WorkerFolders, prefix: str) -> list[dict[str, Any]]:
    """Return the states of the agents whose names begin with a prefix."""
    return [state(folders, name) for name in folders.names() if name.startswith(prefix)]


def stop(folders: WorkerFolders, names: Sequence[str], grace_s: float) -> list[dict[str, Any]]:
    """End agents with their trials, also trials of killed agents; return the agents' states.

    Args:
        folders: of NNI.
        names: of the agents; those that are not here are left alone.
        grace_s: time between the request to end, which all get at once, and the kill.
    """
    found = {name: state(folders, name) for name in names}
    running = {name: _process(folders, name) for name in names if found[name]["state"] == RUNNING}
    for pid, started in running.values():
        send_signal(pid, started, signal.SIGTERM)
    wait_until(lambda: not any(runs(*process) for process in running.values()), grace_s)
    for name in names:
        if found[name]["state"] != ELSEWHERE:
            # The agent first: its supervisor then writes how it ended.
            kill_marked(folders.agent(name))
    for pid, started in running.values():
        if not wait_until(partial(has_ended, pid, started), _SUPERVISOR_S):
            send_signal(pid, started, signal.SIGKILL)
    return [{**state(folders, name), "left": len(marked(folders.agent(name)))} for name in names]


def remove(folders: WorkerFolders, names: Sequence[str], grace_s: float) -> list[dict[str, Any]]:
    """End agents and remove their folders, unless they run elsewhere; return their states.

    Raises:
        WorkerError: files cannot be removed.
    """
    removed = []
    for found in stop(folders, names, grace_s):
        folder = folders.agent(found["name"])
        if found["state"] != ELSEWHERE and folder.exists():
            with file_errors(folder):
                remove_folder(folder)
        removed.append({**found, "removed": found["state"] != ELSEWHERE})
    return removed


def clean(
    folders: WorkerFolders, prefix: str, grace_s: float, *, bundles: bool
) -> list[dict[str, Any]]:
    """Remove agents named prefix and number, and unused bundles if asked; return their states.

    Args:
        folders: of NNI.
        prefix: of names; that of the pool `gpus` begins those of `gpus-2`, whose agents stay.
            Empty: all agents.
        grace_s: time between the request to end and the kill.
        bundles: True if bundles without an agent go as well, with all that is then empty.

    Raises:
        WorkerError: files cannot be removed.
    """
    names = [
        name
        for name in folders.names()
        if not prefix or (name.startswith(prefix) and name.removeprefix(prefix).isdecimal())
    ]
    removed = remove(folders, names, grace_s)
    if bundles and folders.bundles.is_dir():
        with file_errors(folders.base):
            remove_unused(folders, kept=0)
        for folder in (folders.bundles, folders.agents, folders.base):
            with suppress(OSError):
                folder.rmdir()  # not if others use it
    return removed


def read_tail(folders: WorkerFolders, name: str, count: int) -> str:
    """Return up to `count` last bytes of an agent's log as text; empty if there is none."""
    path: Path = folders.agent(name) / LOG
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - min(count, _LOG_TAIL_LIMIT_BYTES)))
        return file.read().decode("utf-8", "replace")
    return ""
