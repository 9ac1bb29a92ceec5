"""Code archives: fetched by content hash, checked, unpacked once, used in place."""

import asyncio
import hashlib
import os
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from svc_common.errors import ServiceError
from svc_common.storage.ports import CONTENT_KIND, BlobStore
from svc_trial_runner.domain.tasks import BlobKey
from svc_trial_runner.ports import LaunchError

FILE_LIMIT: Final = 2000
SIZE_LIMIT_BYTES: Final = 300 * 1024 * 1024
"""What a code directory may have, as documented; checked again here, for the archive is foreign."""


class CachedCodeStore:
    """`ports.CodeStore` in a folder with one folder per archive.

    Args:
        blobs: where archives come from.
        folder: the cache; made when needed.
    """

    def __init__(self, blobs: BlobStore, folder: Path) -> None:
        self._blobs = blobs
        self._folder = folder
        self._locks: dict[str, asyncio.Lock] = {}

    async def materialise(self, archive: BlobKey) -> Path:
        """See `ports.CodeStore.materialise`."""
        place = self._folder / archive.sha256
        if place.is_dir():
            return place
        async with self._locks.setdefault(archive.sha256, asyncio.Lock()):
            if not place.is_dir():
                await self._unpack(archive, place)
        return place

    async def copy(self, place: Path, target: Path) -> None:
        """See `ports.CodeStore.copy`."""
        try:
            await asyncio.to_thread(_copy, place, target)
        except OSError as error:
            raise LaunchError(f"the code cannot be copied to {target}: {error}") from error

    async def _unpack(self, archive: BlobKey, place: Path) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self._folder, prefix=".new-") as name:
                draft = Path(name)
                await self._blobs.fetch(f"{CONTENT_KIND}/{archive.sha256}", draft / "archive")
                await asyncio.to_thread(_check, draft / "archive", archive)
                await asyncio.to_thread(extract, draft / "archive", draft / "code")
                os.rename(draft / "code", place)  # noqa: PTH104 - the folder appears whole
        except (OSError, ServiceError) as error:
            raise LaunchError(f"the code {archive.sha256} cannot be had: {error}") from error


def _copy(place: Path, target: Path) -> None:
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(place, target, symlinks=True)


def _check(path: Path, archive: BlobKey) -> None:
    """Refuse an archive that is not what its name says."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != archive.sha256:
        raise LaunchError(f"the code {archive.sha256} is damaged: its hash is {found}")


def extract(archive: Path, folder: Path) -> None:
    """Unpack a tar archive (plain, gzip, xz) of regular files and folders.

    Raises:
        LaunchError: it is damaged, exceeds a limit, or has a member that is a device, leads
            outside of the folder, or links to outside of it.
    """
    folder.mkdir()
    files = size_bytes = 0
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                files += 1
                size_bytes += member.size
                if files > FILE_LIMIT or size_bytes > SIZE_LIMIT_BYTES:
                    raise LaunchError(
                        f"a code archive must have at most {FILE_LIMIT} files and "
                        f"{SIZE_LIMIT_BYTES >> 20} MB"
                    )
                tar.extract(member, folder, filter="data")
    except (tarfile.TarError, EOFError, OSError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise LaunchError(f"the code archive cannot be unpacked: {error}") from error
