"""Attack of user code on the services of its machine; prints as JSON what has succeeded.

Standard library only, in one file: it is run by trials, by algorithm hosts and in real containers,
`python3 attack.py [FOLDER…]`. Folders are those that user code must not write to.
"""

import contextlib
import ctypes
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

PLACES = ("/run/secrets", "/etc/nni/secrets", "/etc/nni/tls", "/var/lib/nni/state")
PUBLIC = {"ca.crt", "tls.crt"}
PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206
PIDFD_GETFD = 438
_LIBC = ctypes.CDLL(None, use_errno=True)


def others() -> Iterator[int]:
    """Yield the processes of other users."""
    for place in sorted(Path("/proc").iterdir()):
        with contextlib.suppress(OSError, ValueError):
            pid = int(place.name)
            lines = (place / "status").read_text().splitlines()
            uids = next(line for line in lines if line.startswith("Uid:")).split()[1:]
            if str(os.getuid()) not in uids:
                yield pid


def attack_process(pid: int) -> Iterator[str]:
    """Yield what could be done to a process."""
    place = Path("/proc") / str(pid)
    for name in ("environ", "mem", "maps", "io", "stack", "syscall", "auxv"):
        with contextlib.suppress(OSError), (place / name).open("rb") as file:
            yield f"open {file.name}"
    for name in ("fd", "fdinfo", "cwd/", "root/", "map_files"):
        with contextlib.suppress(OSError):
            yield f"list {place / name}: {list((place / name).iterdir())}"
    for number in range(64):
        with contextlib.suppress(OSError), (place / "fd" / str(number)).open("rb") as file:
            yield f"open {file.name}"
    for request in (PTRACE_ATTACH, PTRACE_SEIZE):
        if _LIBC.ptrace(request, pid, 0, 0) == 0:
            yield f"trace {pid}"
    yield from _signal(pid)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, 19)
        yield f"renice {pid}"


def _signal(pid: int) -> Iterator[str]:
    for number in (0, signal.SIGCONT, signal.SIGUSR1, signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(OSError):
            os.kill(pid, number)
            yield f"signal {pid}"
    with contextlib.suppress(OSError):
        descriptor = os.pidfd_open(pid)
        for number in range(16):
            if _LIBC.syscall(PIDFD_GETFD, descriptor, number, 0) >= 0:
                yield f"take descriptor {number} of {pid}"
        signal.pidfd_send_signal(descriptor, signal.SIGCONT)
        yield f"signal {pid} by its descriptor"


def attack_files(folders: list[str]) -> Iterator[str]:
    """Yield what could be read of secrets and state, and written to them and to folders."""
    for place in map(Path, PLACES):
        # Tools and code of trials are for user code.
        walked = [one for one in os.walk(place) if place / "work" not in Path(one[0]).parents]
        for folder, _, names in walked:
            for path in (Path(folder) / name for name in names if name not in PUBLIC):
                with contextlib.suppress(OSError), path.open("rb"):
                    yield f"read {path}"
        yield from _write([place, *(Path(folder) for folder, _, _ in walked)])
    yield from _write([Path(folder) for folder in folders])


def _write(folders: list[Path]) -> Iterator[str]:
    for folder in folders:
        names = ["runner", "log", "environment.json"]
        with contextlib.suppress(OSError):
            names = [path.name for path in folder.iterdir()]
        for path in (folder / name for name in names):
            with contextlib.suppress(OSError), path.open("ab"):
                yield f"write {path}"
            with contextlib.suppress(OSError):
                path.rename(path.with_suffix(".away"))
                yield f"rename {path}"
        with contextlib.suppress(OSError), (folder / "environment.json").open("rb"):
            yield f"read {folder}/environment.json"
        with contextlib.suppress(OSError):
            (folder / "attack").mkdir()
            yield f"create {folder}/attack"


def attack_rights() -> Iterator[str]:
    """Yield which rights could be gained."""
    for number in (0, 65532):
        for become in (os.setuid, os.setgid, os.seteuid, os.setegid):
            with contextlib.suppress(OSError):
                become(number)
                yield f"{become.__name__} {number}"
    with contextlib.suppress(OSError):
        os.setgroups([65532])
        yield "setgroups"
    if 65532 in os.getgroups():
        yield "group of the services"
    status = Path("/proc/self/status").read_text()
    for line in status.splitlines():
        if line.startswith(("CapInh", "CapPrm", "CapEff", "CapAmb")) and int(line.split()[1], 16):
            yield line
    if any(name.endswith(("_TOKEN", "_PASSWORD", "_SECRET_KEY")) for name in os.environ):
        names = [name for name in os.environ if name != "NNI_TRIAL_TOKEN"]
        yield from (f"variable {n}" for n in names if n.endswith(("_TOKEN", "_PASSWORD", "_KEY")))


def attack(folders: list[str]) -> dict[str, object]:
    """Return the user, the attacked processes, and what has succeeded."""
    found = sorted(others())
    done = [what for pid in found for what in attack_process(pid)]
    done += attack_files(folders)
    done += attack_rights()
    return {"uid": os.getuid(), "gid": os.getgid(), "processes": found, "succeeded": done}


if __name__ == "__main__":
    result = attack(sys.argv[1:])
    print(json.dumps(result))
    sys.exit(bool(result["succeeded"]) or not result["processes"])
