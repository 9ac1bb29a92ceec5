"""How a service opens the store of bytes that its settings name."""

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
"""Store of the local shape, below the folder of the installation's state."""


@asynccontextmanager
async def open_blob_store(
    home: Path, s3: S3Settings | None, *, waits: bool = False
) -> AsyncIterator[BlobStore]:
    """Open the store of bytes: the S3 server if one is named, else a folder.

    The server may be away when this is called.

    Args:
        home: folder of the installation's state.
        s3: from `s3_settings.read_s3_settings`; None: a folder.
        waits: whether calls wait for a server that is away (as work that needs the bytes should),
            or raise `UnavailableError` after some seconds (as answers to a client should).
    """
    if s3 is None:
        yield DirectoryBlobStore(home / BLOB_FOLDER)
        return
    # Costs 6 MB that the local shape need not have.
    from svc_common.storage.s3 import S3BlobStore

    async with S3BlobStore(s3) as store:
        yield RetryingBlobStore(store, SystemClock()) if waits else store
