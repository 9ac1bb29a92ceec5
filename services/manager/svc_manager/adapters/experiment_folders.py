"""`Folders` on this machine's file system."""

import asyncio
import hashlib
import json
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

from svc_common.errors import InvalidArgumentError
from svc_common.experiment_files import ExperimentRoots
from svc_common.logs import get_logger
from svc_common.safe_folders import SafeFolder
from svc_manager.adapters.event_file import experiment_of
from svc_manager.converters.tasks import ENVIRONMENT_FILE

_SUBFOLDERS: Final = ("log", "checkpoint", "db", "trials")
_REMOVERS: Final = 2
"""Threads that delete the folders of trials. The kernel does most of the work, and a disk takes
requests beside each other."""
_LEAST_FREE_BYTES: Final = 16 * 1024 * 1024
"""Minimum free space: below it, logs of the first trials would fail."""


class LocalFolders:
    """Adapter that opens, creates and deletes experiment folders on this machine, in threads.

    Args:
        roots: of the folders.
    """

    def __init__(self, roots: ExperimentRoots | None = None) -> None:
        self._roots = roots or ExperimentRoots()

    def open(self, directory: Path) -> SafeFolder:
        """Open an existing experiment's folder below the allowed roots."""
        return self._roots.open(directory)

    def make(self, directory: Path) -> SafeFolder:
        """Create, if missing, and open a folder below the allowed roots."""
        return self._roots.make(directory)

    async def create(
        self, directory: Path, environment: Mapping[str, str], interpreter: str
    ) -> str:
        """Create a folder tree with `environment.json`, or undo it, raise; return its SHA-256."""
        try:
            return await asyncio.to_thread(
                self._create_or_undo, directory, environment, interpreter
            )
        except OSError as error:
            raise InvalidArgumentError(
                "experiment_working_directory",
                "must be a folder that can be written",
                str(directory.parent),
                f"{error.strerror or error}: choose another folder or make room",
            ) from error

    async def remove(self, directory: Path) -> None:
        """Delete a folder tree in a thread; do nothing if there is none; only log a failure."""
        await asyncio.to_thread(self._remove, directory)

    async def rename_of(self, directory: Path, experiment_id: str, new: Path) -> bool:
        """Rename, or delete, an experiment's folder; True also if missing, False if another's."""
        return await asyncio.to_thread(self._rename_of, directory, experiment_id, new)

    async def dispose(self, directory: Path, on_remaining: Callable[[int], None]) -> None:
        """Delete an experiment's folder in threads, trial by trial; report how many remain."""
        stopped = threading.Event()
        try:
            await asyncio.to_thread(self._dispose, directory, on_remaining, stopped)
        except asyncio.CancelledError:
            stopped.set()
            raise

    def _create_or_undo(
        self, directory: Path, environment: Mapping[str, str], interpreter: str
    ) -> str:
        parent, name = self._roots.open_parent(directory, create=True)
        with parent:
            existed = parent.status(name) is not None
            try:
                return _create(parent, name, environment, interpreter)
            except OSError:
                if not existed:
                    parent.remove(name)
                raise

    def _remove(self, directory: Path) -> None:
        try:
            parent, name = self._roots.open_parent(directory)
            with parent:
                parent.remove(name)
        except FileNotFoundError:
            return
        except OSError as error:
            get_logger().warning("folder not removed", folder=str(directory), error=str(error))

    def _rename_of(self, directory: Path, experiment_id: str, new: Path) -> bool:
        try:
            with self._roots.open(directory) as folder:
                found = experiment_of(folder)
            if found != experiment_id and (found is not None or directory.name != experiment_id):
                return False
            parent, name = self._roots.open_parent(directory)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        with parent:
            try:
                parent.rename(name, parent, new.name)
            except OSError:
                self._remove(directory)
        return True

    def _dispose(
        self, directory: Path, on_remaining: Callable[[int], None], stopped: threading.Event
    ) -> None:
        try:
            with self._roots.open(directory) as folder, folder.folder("trials") as trials:
                _remove_entries(trials, on_remaining, stopped)
        except OSError:
            pass  # no trials, or not readable
        if not stopped.is_set():
            self._remove(directory)


def _remove_entries(
    trials: SafeFolder, on_remaining: Callable[[int], None], stopped: threading.Event
) -> None:
    """Delete the folders of trials in several threads, until stopped; report how many remain."""
    names = deque(name for name, _ in trials.entries())

    def remove() -> None:
        while not stopped.is_set():
            try:
                name = names.popleft()
            except IndexError:
                return
            on_remaining(len(names) + 1)
            with suppress(OSError):  # the rest is tried with the whole folder; its error is logged
                trials.remove(name)

    with ThreadPoolExecutor(_REMOVERS, "nni-remove") as threads:
        for done in [threads.submit(remove) for _ in range(_REMOVERS)]:
            done.result()


def _create(parent: SafeFolder, name: str, environment: Mapping[str, str], interpreter: str) -> str:
    with parent.make_folder(name) as folder:
        if folder.free_bytes() < _LEAST_FREE_BYTES:
            raise OSError(28, "No space left on device")
        for subfolder in _SUBFOLDERS:
            folder.make_folder(subfolder).close()
        text = json.dumps({"environment": dict(environment), "interpreter": interpreter})
        # The environment may hold secrets: the file is never readable by other users, and a link
        # that a trial has put in its place is replaced, not followed.
        folder.replace_file(ENVIRONMENT_FILE, text.encode(), 0o600)
    return hashlib.sha256(text.encode()).hexdigest()
