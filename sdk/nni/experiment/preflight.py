"""Checks on this machine before an experiment is created."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import psutil

from nni.experiment.environment import nni_home, services_are_elsewhere
from nni.experiment.errors import (
    ConfigError,
    ExperimentError,
    Problem,
    RefusedError,
    WrongStateError,
)
from nni_wire.folders import BUS_FOLDER, BUS_ROOM_BYTES
from nni_wire.pools import LOCAL_PLATFORM

if TYPE_CHECKING:
    # `nnictl up` starts without: they take as long as all else that it does before.
    from nni.experiment.config import ExperimentConfig
    from nni_proto.experiment.v1 import config_pb2

_Answer = TypeVar("_Answer")

LEAST_FREE_BYTES: Final = 100 * 1024 * 1024
"""Below this an experiment would run into a full disk at once."""
_MEGABYTE: Final = 1024 * 1024
_PORT_MAX: Final = 65535
_HOLDER_TIMEOUT_S: Final = 1.0


DEFAULT_PORT: Final = 8080
"""Port of the first experiment's page."""
_PORTS_TRIED: Final = 100


def on_free_port(port: int | None, call: Callable[[int], _Answer]) -> _Answer:
    """Return a call's answer with the given port, else the first free one it accepts, else 0.

    Args:
        port: to call it with; `None`: the first free one from 8080 on, or 0, none, if a hundred are
            taken.
        call: is called again with the next port if another process has taken the one before.
    """
    if port is not None:
        return call(port)
    for candidate in range(DEFAULT_PORT, DEFAULT_PORT + _PORTS_TRIED):
        if not _is_free(candidate):
            continue
        try:
            return call(candidate)
        except WrongStateError as error:
            if error.facts.get("field") != "port":
                raise
    return call(0)


def check_start(config: ExperimentConfig, port: int, option: str = "--port") -> None:
    """Raise unless configuration, port, folders and disk allow an experiment to start.

    Args:
        config: the configuration.
        port: of its page; 0: none.
        option: name of the port's argument, for errors.

    Raises:
        ConfigError: the configuration breaks a rule.
        RefusedError: port, disk or folder stands against it.
    """
    config.validate()
    check_code(config)
    if services_are_elsewhere():
        return  # ports and disks of this machine do not matter
    check_port(port, option)
    check_folders([config.experiment_working_directory, nni_home(), Path(tempfile.gettempdir())])
    # Usually on the disk of the folder above it.
    check_folders([nni_home() / BUS_FOLDER], least_free_bytes=BUS_ROOM_BYTES)


def check_code(config: ExperimentConfig) -> None:
    """Raise ConfigError unless the code directory can be sent to platforms besides `local`.

    Raises:
        ConfigError: it has too many files, is too large, or has a file that cannot be named there.
    """
    if any(service.platform != LOCAL_PLATFORM for service in config.training_services()):
        from nni.experiment.code_archive import code_files

        code_files(config.trial_code_directory)


def check_code_folder(config: config_pb2.ExperimentConfig) -> None:
    """Raise RefusedError if the code directory of a resumed experiment is gone and not stored.

    Args:
        config: of the experiment.

    Raises:
        RefusedError: it was removed, and no copy of it is stored.
    """
    directory = config.trial_code_directory
    if not directory or config.HasField("code_archive") or services_are_elsewhere():
        return
    if not Path(directory).is_dir():
        raise RefusedError(
            f"trialCodeDirectory must exist, got {directory!r}, which was removed or renamed; "
            "bring it back, then resume again"
        )


def secret_in_code(config: ExperimentConfig, file: Path) -> str:
    """Return a warning if a configuration with secrets is copied to machines; empty: it is not.

    Args:
        config: the configuration.
        file: where it was read from.
    """
    secret = next((path for one in config.training_services() for path in one.secret_paths()), "")
    if not secret:
        return ""
    from nni.experiment.code_archive import code_files

    place = file.resolve()
    if all(one.path.resolve() != place for one in code_files(config.trial_code_directory)):
        return ""
    return (
        f"{file.name} holds trainingService {secret} and lies in trialCodeDirectory, which is "
        "copied to the machines of the trials; add its name to .nniignore there, or use a key"
    )


def check_port(port: int, option: str = "--port") -> None:
    """Raise unless a port can be opened for an experiment's listener; 0: none is wanted.

    Args:
        port: the number.
        option: name of the argument, for errors.

    Raises:
        ConfigError: it is no port number.
        RefusedError: another process holds it; names the holder.
    """
    if not 0 <= port <= _PORT_MAX:
        rule = f"must be an integer from 1 to {_PORT_MAX}"
        raise ConfigError([Problem(option.rstrip("="), rule, port)])
    if port == 0 or _is_free(port, option):
        return
    holder = port_holder(port)
    by = f" by {holder}" if holder else ""
    raise RefusedError(
        f"port {port} is in use{by}; choose another one with {option}",
        {"field": "port", "value": str(port), "holder": holder},
    )


def _is_free(port: int, option: str = "--port") -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError as error:
            rule = "must be one that you may use; those below 1024 are for administrators"
            raise ConfigError([Problem(option.rstrip("="), rule, port)]) from error
        except OSError:
            return False
    return True


def port_holder(port: int) -> str:
    """Return a description of the process that listens on a port; empty if unknown."""
    from nni.experiment.rest import get_json

    with contextlib.suppress(ExperimentError):
        url = f"http://127.0.0.1:{port}/api/v1/nni/version"
        answer = get_json(url, timeout_s=_HOLDER_TIMEOUT_S)
        if isinstance(answer, dict) and answer.get("experimentId"):
            return f"experiment {answer['experimentId']}"
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.pid
            if listens and getattr(connection.laddr, "port", None) == port:
                name = psutil.Process(connection.pid).name()
                return f"program {name} (pid {connection.pid})"
    return ""


def check_folders(folders: Iterable[Path], *, least_free_bytes: int = LEAST_FREE_BYTES) -> None:
    """Raise RefusedError unless files can be written below each folder, and its disk has room.

    Args:
        folders: need not exist.
        least_free_bytes: a disk with fewer free bytes is full.

    Raises:
        RefusedError: a folder is not writable, or its disk is full.
    """
    for folder in folders:
        existing = _existing(folder)
        if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
            raise RefusedError(
                f"cannot write to {folder}: {existing} is not a writable folder; "
                "give yourself write permission, or name another folder"
            )
        free = free_bytes(existing)
        if free < least_free_bytes:
            raise RefusedError(
                f"the disk of {folder} is full: {free // _MEGABYTE} MB are free, "
                f"at least {least_free_bytes // _MEGABYTE} MB are needed; make room, or name a "
                "folder on another disk"
            )


def free_bytes(folder: Path) -> int:
    """Return the free bytes on the disk of a folder, which need not exist."""
    return shutil.disk_usage(_existing(folder)).free


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    for candidate in (folder, *folder.parents):
        if candidate.exists():
            return candidate
    return Path("/")
