"""Finding the host of an experiment from outside."""

from contextlib import suppress
from pathlib import Path

from tests.support.scripted_manager import ScriptedManager


def host_pid(manager: ScriptedManager) -> int:
    """Give the process that runs in the experiment's log folder as a host; 0 if there is none."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes().split(b"\0")
            here = (process / "cwd").resolve() == manager.log_directory.resolve()
            if here and b"nni.hpo.host" in command:
                return int(process.name)
    return 0


def pid_exists(pid: int) -> bool:
    """Tell whether a process lives."""
    return Path(f"/proc/{pid}").exists()
