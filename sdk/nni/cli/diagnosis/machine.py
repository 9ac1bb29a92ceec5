"""Checks of the machine: disk space, system limits, clock, GPUs."""

from __future__ import annotations

import importlib
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from nni.cli.diagnosis.finding import Finding

LEAST_DESCRIPTORS: Final = 4096
"""A running trial costs its agent four, a client its manager one."""
LEAST_WATCHES: Final = 64
"""Followers of logs take one inotify instance each."""
_MEGABYTE: Final = 1024 * 1024
_WATCH_LIMIT: Final = Path("/proc/sys/fs/inotify/max_user_instances")
CLOCK_LIMIT_S: Final = 2.0
_GPU_DEVICES: Final = Path("/dev")


def check_disk(least_free_bytes: int | None = None) -> Iterator[Finding]:
    """Yield a finding per folder of experiments and services: bad if unwritable or out of room.

    Args:
        least_free_bytes: a disk with fewer free bytes is full; None: as for an experiment's start.
    """
    from nni.experiment.config.experiment_fields import DEFAULT_WORKING_DIRECTORY
    from nni.experiment.environment import nni_home
    from nni.experiment.errors import RefusedError
    from nni.experiment.preflight import LEAST_FREE_BYTES, check_folders

    least = LEAST_FREE_BYTES if least_free_bytes is None else least_free_bytes
    experiments = Path(DEFAULT_WORKING_DIRECTORY).expanduser()
    for folder in (experiments, nni_home(), Path(tempfile.gettempdir())):
        try:
            check_folders([folder], least_free_bytes=least)
        except RefusedError as error:
            yield Finding("disk", "bad", str(error))
        else:
            yield Finding("disk", "ok", f"{folder} can be written and has room")


def check_bus_room() -> Iterator[Finding]:
    """Yield a finding on the room on the disk of the bus: what is free and what the bus needs."""
    from nni.experiment.environment import nni_home
    from nni.experiment.preflight import free_bytes
    from nni_wire.folders import BUS_FOLDER, BUS_ROOM_BYTES, BUS_START_BYTES

    folder = nni_home() / BUS_FOLDER
    free = free_bytes(folder)
    needs = (
        f"{free // _MEGABYTE} MB are free for {folder}; the bus starts with "
        f"{BUS_START_BYTES // _MEGABYTE} MB, the first time and later, and after a full disk it "
        f"goes on with {BUS_ROOM_BYTES // _MEGABYTE} MB"
    )
    if free < BUS_ROOM_BYTES:
        yield Finding("room of the bus", "bad", f"{needs}: make room")
    else:
        yield Finding("room of the bus", "ok", needs)


def check_descriptors() -> Iterator[Finding]:
    """Yield ok, or bad if the hard limit of open files, up to which services go, is too low."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < LEAST_DESCRIPTORS:
        text = (
            f"a process may have {hard} files open, which is enough for about {hard // 8} trials "
            f"at once; raise the hard limit to {LEAST_DESCRIPTORS} or more (ulimit -H -n, "
            "/etc/security/limits.conf, or LimitNOFILE= of the unit)"
        )
        yield Finding("open files", "bad", text)
    else:
        shown = "any number" if hard == resource.RLIM_INFINITY else str(hard)
        yield Finding("open files", "ok", f"{shown} per process")


def check_watches(limit_file: Path = _WATCH_LIMIT) -> Iterator[Finding]:
    """Yield ok, bad if too few inotify instances for logs are allowed, or a note if unknown."""
    try:
        limit = int(limit_file.read_text("ascii"))
    except (OSError, ValueError):
        yield Finding("inotify", "note", "this system does not say how many files can be watched")
        return
    if limit < LEAST_WATCHES:
        text = (
            f"only {limit} programs of yours may watch files, so logs cannot be followed while "
            f"they grow; run: sysctl fs.inotify.max_user_instances={2 * LEAST_WATCHES}"
        )
        yield Finding("inotify", "bad", text)
    else:
        yield Finding("inotify", "ok", f"{limit} instances")


def check_clock() -> Iterator[Finding]:
    """Yield ok, bad if file times differ from this machine's clock, note if not readable."""
    from nni.experiment.environment import nni_home

    folder = nni_home() if nni_home().is_dir() else Path(tempfile.gettempdir())
    began_s = time.time()
    try:
        with tempfile.NamedTemporaryFile(dir=folder) as probe:
            probe.write(b"nni")
            probe.flush()
            written_s = Path(probe.name).stat().st_mtime
    except OSError as error:
        yield Finding("clock", "note", f"cannot be compared: {error}")
        return
    yield judge_clock(written_s, began_s, time.time(), str(folder))


def judge_clock(disk_s: float, began_s: float, ended_s: float, folder: str) -> Finding:
    """Return a bad finding if clocks of disk and machine differ by more than the limit, else ok.

    Args:
        disk_s: time that the disk gave to a file.
        began_s: own time before the file was written.
        ended_s: own time afterwards; the writing may have taken long.
        folder: of the file.
    """
    apart_s = min(max(disk_s, began_s), ended_s) - disk_s
    if abs(apart_s) <= CLOCK_LIMIT_S:
        return Finding("clock", "ok", "agrees with that of the disk")
    way = "ahead of" if apart_s > 0 else "behind"
    text = (
        f"is {abs(apart_s):.0f} s {way} that of the disk of {folder}: let this machine and its "
        "file server follow a time server (timedatectl set-ntp true)"
    )
    return Finding("clock", "bad", text)


def _nvml() -> Any:  # noqa: ANN401 - a module
    return importlib.import_module("pynvml")


def check_gpus(devices: Path = _GPU_DEVICES, load: Callable[[], Any] = _nvml) -> Iterator[Finding]:
    """Yield ok, bad if there are GPUs that NVML cannot query, or a note if a driver has none.

    Args:
        devices: the folder of devices.
        load: gives NVIDIA's management library, the module `pynvml`.
    """
    present = sorted(path.name for path in devices.glob("nvidia[0-9]*"))
    try:
        names = _gpu_names(load)
    except ImportError:
        problem = "the package nvidia-ml-py is missing; install it with: pip install nvidia-ml-py"
    except OSError as error:
        problem = f"the driver does not answer ({error}); reload or reinstall it, see: nvidia-smi"
    else:
        if names:
            yield Finding("gpus", "ok", f"{len(names)}: {', '.join(sorted(set(names)))}")
        else:
            text = "none; trials with trialGpuNumber would wait for ever on this machine"
            yield Finding("gpus", "note" if os.path.exists("/proc/driver/nvidia") else "ok", text)  # noqa: PTH110 - a question only
        return
    if present:
        yield Finding("gpus", "bad", f"{', '.join(present)} is there, but {problem}")
    else:
        yield Finding("gpus", "ok", "none; trials with trialGpuNumber would wait for ever here")


def _gpu_names(load: Callable[[], Any]) -> list[str]:
    """Return the names of the GPUs by NVML; raise ImportError or OSError without it.

    Raises:
        ImportError: the package that asks the driver is missing.
        OSError: the driver does not answer.
    """
    library = load()
    try:
        library.nvmlInit()
    except library.NVMLError as error:
        raise OSError(str(error)) from error
    try:
        count = int(library.nvmlDeviceGetCount())
        handles = [library.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
        names = [library.nvmlDeviceGetName(handle) for handle in handles]
    except library.NVMLError as error:
        raise OSError(str(error)) from error
    finally:
        library.nvmlShutdown()
    # Older releases of the library give bytes.
    return [name.decode() if isinstance(name, bytes) else str(name) for name in names]
