"""`Folders` on this machine's file system."""

import asyncio
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from svc_common.errors import InvalidArgumentError
from svc_manager.converters.tasks import ENVIRONMENT_FILE

_SUBFOLDERS: Final = ("log", "checkpoint", "db", "trials")
_LEAST_FREE_BYTES: Final = 16 * 1024 * 1024
"""Minimum free space: below it, logs of the first trials would fail."""


class LocalFolders:
    """`Folders` on this machine; work runs in a thread."""

    async def create(
        self, directory: Path, environment: Mapping[str, str], interpreter: str
    ) -> str:
        """See `Folders.create`."""
        try:
            return await asyncio.to_thread(_create_or_undo, directory, environment, interpreter)
        except OSError as error:
            raise InvalidArgumentError(
                "experiment_working_directory",
                "must be a folder that can be written",
                str(directory.parent),
                f"{error.strerror or error}: choose another folder or make room",
            ) from error

    async def remove(self, directory: Path) -> None:
        """See `Folders.remove`."""
        await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)


def _create_or_undo(directory: Path, environment: Mapping[str, str], interpreter: str) -> str:
    existed = directory.exists()
    try:
        return _create(directory, environment, interpreter)
    except OSError:
        if not existed:
            shutil.rmtree(directory, ignore_errors=True)
        raise


def _create(directory: Path, environment: Mapping[str, str], interpreter: str) -> str:
    directory.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(directory).free < _LEAST_FREE_BYTES:
        raise OSError(28, "No space left on device")
    for name in _SUBFOLDERS:
        (directory / name).mkdir(exist_ok=True)
    text = json.dumps({"environment": dict(environment), "interpreter": interpreter})
    path = directory / ENVIRONMENT_FILE
    # The environment may hold secrets: the file is never readable by other users.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
    return hashlib.sha256(text.encode()).hexdigest()
