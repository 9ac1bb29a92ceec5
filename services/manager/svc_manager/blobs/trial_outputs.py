"""Brings what trials of other machines have written into their experiment's folder here."""

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
    """Outputs that agents have stored, as the folders that they would be on this machine.

    Args:
        blobs: where they are stored.
    """

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._locks: dict[str, asyncio.Lock] = {}

    async def bring(self, directory: Path, experiment_id: str, trial_id: str, attempt: int) -> None:
        """Make the folder of a trial that is over, if it is not here and was stored.

        Args:
            directory: the experiment's folder.
            experiment_id: whose trial.
            trial_id: which trial.
            attempt: its last one.

        Raises:
            ServiceError: the store is away, or what is stored cannot be unpacked.
        """
        place = directory / "trials" / trial_id
        if await asyncio.to_thread(place.exists):
            return
        lock = self._locks.setdefault(trial_id, asyncio.Lock())
        try:
            async with lock:
                if not await asyncio.to_thread(place.exists):
                    keys = {
                        name: output_key(experiment_id, trial_id, attempt, name)
                        for name in OUTPUT_FILES
                    }
                    await self._make(place, keys)
        except OSError as error:
            raise storage_error(error) from error
        finally:
            if not lock.locked():
                self._locks.pop(trial_id, None)

    async def _make(self, place: Path, keys: Mapping[str, str]) -> None:
        if not await self._blobs.exists(keys[OUTPUT_ARCHIVE]):
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=".new-") as name:
            draft = Path(name) / "trial"
            for file_name, key in keys.items():
                with suppress(NotFoundError):
                    await self._blobs.fetch(key, Path(name) / file_name)
            await asyncio.to_thread(_assemble, Path(name), draft, place)


def _assemble(fetched: Path, draft: Path, place: Path) -> None:
    packed = fetched / OUTPUT_ARCHIVE
    extract(packed, draft, _LIMITS)
    packed.unlink()
    for path in fetched.iterdir():
        if path != draft:
            shutil.move(path, draft / path.name)
    stream = draft / _STREAM
    if stream.exists() and not (draft / _SECOND_NAME).exists():
        os.link(stream, draft / _SECOND_NAME)
    if not place.exists():  # an agent of this machine may have been faster
        os.rename(draft, place)  # noqa: PTH104 - the folder appears whole
