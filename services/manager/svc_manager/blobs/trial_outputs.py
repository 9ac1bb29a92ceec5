"""Outputs of trials on other machines, brought into their experiment's folder on this machine."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from nni_wire.trial_blobs import OUTPUT_ARCHIVE, OUTPUT_FILES, output_key
from svc_common.errors import NotFoundError
from svc_common.storage.archives import ArchiveLimits, extract
from svc_common.storage.atomic_files import storage_error
from svc_common.storage.ports import BlobStore

_LIMITS: Final = ArchiveLimits(files=100_000, size_bytes=5 * 1024**3)
_STREAM: Final = "stdout"
_SECOND_NAME: Final = "trial.log"


class TrialOutputs:
    """Fetcher of stored outputs into trial folders.

    Args:
        blobs: store of the outputs.
    """

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._locks: dict[str, asyncio.Lock] = {}

    async def fetch(self, directory: Path, experiment_id: str, trial_id: str, attempt: int) -> None:
        """Create the folder of an ended trial, if it is missing here and its output is stored.

        Args:
            directory: the experiment's folder.
            experiment_id: experiment of the trial.
            trial_id: the trial.
            attempt: its last attempt.

        Raises:
            ServiceError: the store is away, or the archive cannot be unpacked.
        """
        target = directory / "trials" / trial_id
        if await asyncio.to_thread(target.exists):
            return
        lock = self._locks.setdefault(trial_id, asyncio.Lock())
        try:
            async with lock:
                if not await asyncio.to_thread(target.exists):
                    keys = {
                        name: output_key(experiment_id, trial_id, attempt, name)
                        for name in OUTPUT_FILES
                    }
                    await self._make(target, keys)
        except OSError as error:
            raise storage_error(error) from error
        finally:
            if not lock.locked():
                self._locks.pop(trial_id, None)

    async def _make(self, target: Path, keys: Mapping[str, str]) -> None:
        if not await self._blobs.exists(keys[OUTPUT_ARCHIVE]):
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".new-") as name:
            draft = Path(name) / "trial"
            for file_name, key in keys.items():
                with suppress(NotFoundError):
                    await self._blobs.fetch(key, Path(name) / file_name)
            await asyncio.to_thread(_assemble, Path(name), draft, target)


def _assemble(fetched: Path, draft: Path, target: Path) -> None:
    packed = fetched / OUTPUT_ARCHIVE
    extract(packed, draft, _LIMITS)
    packed.unlink()
    for path in fetched.iterdir():
        if path != draft:
            shutil.move(path, draft / path.name)
    stream = draft / _STREAM
    if stream.exists() and not (draft / _SECOND_NAME).exists():
        os.link(stream, draft / _SECOND_NAME)
    if not target.exists():  # an agent of this machine may have created it meanwhile
        os.rename(draft, target)  # noqa: PTH104 - the folder appears whole
