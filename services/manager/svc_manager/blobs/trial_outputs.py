"""Outputs of trials on other machines, brought into their experiment's folder on this machine."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from nni_wire.trial_blobs import OUTPUT_ARCHIVE, OUTPUT_FILES, output_key
from svc_common.errors import NotFoundError
from svc_common.experiment_files import ExperimentRoots
from svc_common.safe_folders import SafeFolder
from svc_common.storage.archives import ArchiveLimits, extract
from svc_common.storage.atomic_files import storage_error
from svc_common.storage.ports import BlobStore
from svc_common.storage.shared_storage import SharedStorage
from svc_manager.blobs.shared_storages import SharedStorages
from svc_manager.ports import FolderOpener

_LIMITS: Final = ArchiveLimits(files=100_000, size_bytes=5 * 1024**3)
_STREAM: Final = "stdout"
_SECOND_NAME: Final = "trial.log"
_TRIALS: Final = "trials"
_UNPACKED: Final = "trial"
_DRAFT: Final = ".new-"


class TrialOutputs:
    """Downloader of trials' outputs from the byte store, or a shared storage, into their folders.

    Args:
        blobs: store of the archived outputs.
        folders: opens the experiments' folders.
        shared: shared storages; None: no experiment has one.
    """

    def __init__(
        self,
        blobs: BlobStore,
        folders: FolderOpener | None = None,
        shared: SharedStorages | None = None,
    ) -> None:
        self._blobs = blobs
        self._shared = shared
        self._folders = folders or ExperimentRoots()
        self._locks: dict[str, asyncio.Lock] = {}

    async def fetch(
        self,
        directory: Path,
        experiment_id: str,
        trial_id: str,
        attempt: int,
        storage: SharedStorage | None = None,
    ) -> None:
        """Download an ended trial's output into its folder, unless that exists or none is stored.

        Args:
            directory: the experiment's folder.
            experiment_id: experiment of the trial.
            trial_id: the trial.
            attempt: its last attempt.
            storage: shared storage that has the output; None: the byte store has it.

        Raises:
            ServiceError: the store is away, or the archive cannot be unpacked.
        """
        if await asyncio.to_thread(self._is_here, directory, trial_id):
            return
        lock = self._locks.setdefault(trial_id, asyncio.Lock())
        try:
            async with lock:
                if await asyncio.to_thread(self._is_here, directory, trial_id):
                    return
                if storage is not None and self._shared is not None:
                    await self._copy(directory, experiment_id, trial_id, storage, self._shared)
                else:
                    keys = {
                        name: output_key(experiment_id, trial_id, attempt, name)
                        for name in OUTPUT_FILES
                    }
                    await self._make(directory, trial_id, keys)
        except OSError as error:
            raise storage_error(error) from error
        finally:
            if not lock.locked():
                self._locks.pop(trial_id, None)

    def _is_here(self, directory: Path, trial_id: str) -> bool:
        try:
            with self._folders.open(directory) as folder:
                return folder.status(f"{_TRIALS}/{trial_id}") is not None
        except FileNotFoundError:
            return False

    def _trials(self, directory: Path) -> SafeFolder:
        with self._folders.make(directory) as folder:
            return folder.make_folder(_TRIALS)

    async def _make(self, directory: Path, trial_id: str, keys: Mapping[str, str]) -> None:
        if not await self._blobs.exists(keys[OUTPUT_ARCHIVE]):
            return
        async with self._draft(directory) as (folder, trials):
            # Valid whatever is renamed or linked meanwhile.
            place = Path(folder.descriptor_path())
            for file_name, key in keys.items():
                with suppress(NotFoundError):
                    await self._blobs.fetch(key, place / file_name)
            await asyncio.to_thread(_assemble, folder, trials, trial_id)

    async def _copy(
        self,
        directory: Path,
        experiment_id: str,
        trial_id: str,
        storage: SharedStorage,
        shared: SharedStorages,
    ) -> None:
        async with self._draft(directory) as (folder, trials):
            with await asyncio.to_thread(folder.make_folder, _UNPACKED) as copy:
                found = await shared.fetch(experiment_id, trial_id, storage, copy)
            if found:
                await asyncio.to_thread(_publish, folder, trials, trial_id)

    @asynccontextmanager
    async def _draft(self, directory: Path) -> AsyncGenerator[tuple[SafeFolder, SafeFolder], None]:
        """Create a temporary folder; yield it and the trials' folder; remove it at the end."""
        draft = f"{_DRAFT}{secrets.token_hex(8)}"
        with await asyncio.to_thread(self._trials, directory) as trials:
            await asyncio.to_thread(trials.create_folder, draft, 0o700)
            try:
                with trials.folder(draft) as folder:
                    yield folder, trials
            finally:
                await asyncio.to_thread(trials.remove, draft)


def _assemble(fetched: SafeFolder, trials: SafeFolder, trial_id: str) -> None:
    place = Path(fetched.descriptor_path())
    extract(place / OUTPUT_ARCHIVE, place / _UNPACKED, _LIMITS)
    fetched.remove(OUTPUT_ARCHIVE)
    with fetched.folder(_UNPACKED) as unpacked:
        for name, _ in fetched.entries():
            if name != _UNPACKED:
                unpacked.remove(name)
                fetched.rename(name, unpacked, name)
    _publish(fetched, trials, trial_id)


def _publish(fetched: SafeFolder, trials: SafeFolder, trial_id: str) -> None:
    with fetched.folder(_UNPACKED) as unpacked:
        if unpacked.is_file(_STREAM) and unpacked.status(_SECOND_NAME) is None:
            unpacked.link(_STREAM, _SECOND_NAME)
    if trials.status(trial_id) is None:  # an agent of this machine may have created it meanwhile
        fetched.rename(_UNPACKED, trials, trial_id)
