"""Cache of code archives: fetched by content hash, checked, unpacked once."""

import asyncio
import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from svc_common.clock import Clock
from svc_common.durable_files import sync_folder, sync_tree
from svc_common.errors import ServiceError
from svc_common.storage.archives import ArchiveLimits, extract
from svc_common.storage.ports import CONTENT_KIND, BlobExchange

KEPT_S: Final = 7 * 24 * 3600.0
"""Time after which unused code is removed."""
CODE_LIMITS: Final = ArchiveLimits(files=2000, size_bytes=300 * 1024 * 1024)
"""Documented limits of a code directory, checked again here: the archive is untrusted."""


class CodeError(ServiceError):
    """Error: a code archive is missing, damaged, too large, or cannot be unpacked."""


class CodeArchives:
    """Cache of unpacked code by hash, shared by a machine's processes; drops what is long unused.

    Args:
        blobs: source of the archives.
        folder: of the cache; created if missing.
        clock: measures the time since the last use.
        limits: limits of an archive; a larger one is refused.
    """

    def __init__(
        self,
        blobs: BlobExchange,
        folder: Path,
        clock: Clock,
        *,
        limits: ArchiveLimits = CODE_LIMITS,
    ) -> None:
        self._blobs = blobs
        self._folder = folder
        self._clock = clock
        self._limits = limits
        self._used: set[str] = set()
        """Archives in use by this process."""
        self._locks: dict[str, asyncio.Lock] = {}

    async def unpacked(self, sha256: str, source: BlobExchange | None = None) -> Path:
        """Return the folder of an unpacked archive; download and unpack it at first use.

        Args:
            sha256: hash of the archive.
            source: where this archive is downloaded from; None: from `blobs`.

        Raises:
            CodeError: the archive is missing, damaged, too large, or names files outside.
        """
        place = self._folder / sha256
        self._used.add(sha256)
        if place.is_dir():
            os.utime(place)
            return place
        async with self._locks.setdefault(sha256, asyncio.Lock()):
            if not place.is_dir():
                await asyncio.to_thread(self._forget_old)
                await self._unpack(sha256, place, source or self._blobs)
        return place

    def _forget_old(self) -> None:
        """Delete the folders of code archives that were not used for `KEPT_S` seconds."""
        if not self._folder.is_dir():
            return
        before_s = self._clock.now().timestamp() - KEPT_S
        for place in self._folder.iterdir():
            with suppress(FileNotFoundError):  # another archive has just been unpacked
                if place.name not in self._used and place.stat().st_mtime < before_s:
                    shutil.rmtree(place, ignore_errors=True)

    async def _unpack(self, sha256: str, place: Path, source: BlobExchange) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self._folder, prefix=".new-") as name:
                draft = Path(name)
                await source.fetch(f"{CONTENT_KIND}/{sha256}", draft / "archive")
                await asyncio.to_thread(_check, draft / "archive", sha256)
                await asyncio.to_thread(extract, draft / "archive", draft / "code", self._limits)
                await asyncio.to_thread(sync_tree, draft / "code")
                os.rename(draft / "code", place)  # noqa: PTH104 - the folder appears whole
                sync_folder(self._folder)
        except CodeError:
            raise
        except (OSError, ServiceError) as error:
            raise CodeError(f"the code {sha256} cannot be had: {error}") from error


def _check(path: Path, sha256: str) -> None:
    """Raise CodeError unless a downloaded archive's SHA-256 is the expected one."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise CodeError(f"the code {sha256} is damaged: its hash is {found}")
