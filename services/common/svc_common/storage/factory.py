"""Factory of the blob store that the settings of a service name."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from svc_common.clock import SystemClock
from svc_common.storage.directory import DirectoryBlobStore
from svc_common.storage.ports import BlobStore
from svc_common.storage.retries import RetryingBlobStore
from svc_common.storage.s3_settings import S3Settings

BLOB_FOLDER: Final = "blobs"
"""Folder of the blobs of the local shape, below that of the installation's state."""


@asynccontextmanager
async def open_blob_store(
    home: Path, s3: S3Settings | None, *, waits: bool = False
) -> AsyncIterator[BlobStore]:
    """Open S3 or the folder for a block; with `waits` calls wait for S3 instead of raising.

    The server need not be reachable.

    Args:
        home: folder of the installation's state.
        s3: from `s3_settings.read_s3_settings`; None: a folder.
        waits: whether calls wait for an unreachable server (for background work), or raise
            `UnavailableError` after some seconds (for requests of clients).
    """
    if s3 is None:
        yield DirectoryBlobStore(home / BLOB_FOLDER)
        return
    # The import costs 6 MB, which the local shape saves.
    from svc_common.storage.s3 import S3BlobStore

    async with S3BlobStore(s3) as store:
        yield RetryingBlobStore(store, SystemClock()) if waits else store
