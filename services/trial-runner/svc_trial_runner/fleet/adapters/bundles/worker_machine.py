"""Facts about a worker that a fleet asks for before it sends a bundle; standard library only."""

import os
import platform
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from svc_trial_runner.fleet.adapters.bundles.worker_folders import WorkerFolders

_LOADER_TIMEOUT_S: Final = 5


def machine_key() -> str:
    """Return `hostname:machine-id` (id empty if unreadable), to tell machines of one home apart."""
    machine_id = ""
    with suppress(OSError):
        machine_id = Path("/etc/machine-id").read_text("ascii").strip()
    return f"{os.uname().nodename}:{machine_id[:32]}"


def boot_key() -> str:
    """Return boot id and PID namespace (unreadable parts empty); process ids are unique in it."""
    boot = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    with suppress(OSError):
        boot += f":{Path('/proc/self/ns/pid').readlink()}"
    return boot


def wheel_platform() -> str:
    """Return the platform tag of wheels that run on this machine, e.g. `manylinux_2_36_x86_64`.

    Empty: not Linux, or a C library without wheels.
    """
    if not sys.platform.startswith("linux"):
        return ""
    machine = os.uname().machine
    if sys.maxsize <= 2**32:
        machine = {"x86_64": "i686", "aarch64": "armv7l"}.get(machine, machine)
    name, _, version = _libc().partition(" ")
    major, _, minor = version.partition(".")
    if not (major.isdigit() and minor.isdigit()):
        return ""
    return f"{name}linux_{major}_{minor}_{machine}"


def _libc() -> str:
    """Return `many 2.36` for glibc, `musl 1.2` for musl; empty for another one."""
    with suppress(OSError, ValueError, AttributeError):
        library, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        if library == "glibc":
            return "many " + ".".join(version.split(".")[:2])
    loaders = sorted(Path("/lib").glob("ld-musl-*.so.1"))
    if not loaders:
        return ""
    try:
        said = subprocess.run(
            [str(loaders[0])],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LOADER_TIMEOUT_S,
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return ""
    version = said.partition("Version ")[2].split("\n")[0]
    return "musl " + ".".join(version.split(".")[:2])


def probe(folders: WorkerFolders) -> dict[str, Any]:
    """Create NNI's folder; return the machine's Python, platform, disk space and bundles.

    Raises:
        WorkerError: that folder cannot be created or written.
    """
    folders.open()
    space = os.statvfs(folders.base)
    return {
        "python": list(sys.version_info[:3]),
        "implementation": sys.implementation.name + getattr(sys, "abiflags", ""),
        "interpreter": sys.executable,
        "system": platform.system(),
        "machine": os.uname().machine,
        "platform_tag": wheel_platform(),
        "host": os.uname().nodename,
        "home": str(Path.home()),
        "folder": str(folders.base),
        "free_bytes": shutil.disk_usage(folders.base).free,
        "free_files": space.f_favail if space.f_files else None,
        "noexec": bool(space.f_flag & os.ST_NOEXEC),
        "bundles": unpacked_bundles(folders),
        "time": time.time(),
        "cores": os.cpu_count() or 1,
    }


def unpacked_bundles(folders: WorkerFolders) -> list[str]:
    """Return the hashes of the bundles unpacked on this machine, the last used one first."""
    found = []
    with suppress(FileNotFoundError):
        for entry in os.scandir(folders.bundles):
            if not entry.name.startswith("."):
                with suppress(FileNotFoundError):
                    found.append((-entry.stat().st_mtime_ns, entry.name))
    return [name for _, name in sorted(found)]
