"""Lookup of the host process of an experiment."""

from contextlib import suppress
from pathlib import Path

from tests.support.processes import alive
from tests.support.scripted_manager import ScriptedManager


def host_pid(manager: ScriptedManager) -> int:
    """Return the id of the host process in the experiment's log folder; 0 if there is none."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes().split(b"\0")
            here = (process / "cwd").resolve() == manager.log_directory.resolve()
            if here and b"nni.hpo.host" in command:
                return int(process.name)
    return 0


def pid_exists(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    return bool(list(alive([pid])))
