"""`BlobStore` decorator that counts calls and bytes."""

from collections.abc import Awaitable
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from svc_common.errors import NotFoundError, ServiceError
from svc_common.storage.ports import BlobInfo, BlobStore, PresignedUrls
from svc_common.telemetry.metrics import Counter, Registry

T = TypeVar("T")


class BlobMetrics:
    """Prometheus metrics of a blob store: calls by operation and result, bytes by direction.

    Args:
        registry: renders them.
    """

    def __init__(self, registry: Registry) -> None:
        self.calls: Counter = registry.counter(
            "nni_blob_requests_total", "Calls of the byte store", ("operation", "result")
        )
        self.bytes: Counter = registry.counter(
            "nni_blob_bytes_total", "Bytes written to and read from the store", ("direction",)
        )


class MeteredBlobStore:
    """`BlobStore` that passes calls to another one and counts calls, results and bytes.

    Args:
        store: executes the calls.
        metrics: counts them.
    """

    def __init__(self, store: BlobStore, metrics: BlobMetrics) -> None:
        self._store = store
        self._metrics = metrics

    async def put(self, data: bytes) -> str:
        """Store data under its SHA-256 and return the key; count the call and the bytes."""
        return await self._counted("put", self._store.put(data), written=len(data))

    async def put_file(self, path: Path) -> str:
        """Store a file under its SHA-256 and return the key; count the call and the bytes."""
        return await self._counted("put", self._store.put_file(path), written=_size(path))

    async def put_named(self, key: str, data: bytes) -> None:
        """Store data under `<kind>/<id>/…`, replacing a blob; count the call and the bytes."""
        await self._counted("put", self._store.put_named(key, data), written=len(data))

    async def put_named_file(self, key: str, path: Path) -> None:
        """Store a file under `<kind>/<id>/…`, replacing a blob; count the call and the bytes."""
        await self._counted("put", self._store.put_named_file(key, path), written=_size(path))

    async def get(self, key: str) -> bytes:
        """Return a blob's content from the inner store; count the call and the bytes read."""
        data = await self._counted("get", self._store.get(key))
        self._metrics.bytes.inc("read", by=len(data))
        return data

    async def fetch(self, key: str, path: Path) -> None:
        """Write a blob's content to a file, atomically; count the call and the bytes read."""
        await self._counted("get", self._store.fetch(key, path))
        self._metrics.bytes.inc("read", by=_size(path))

    async def exists(self, key: str) -> bool:
        """Return whether a blob has this key; count the call."""
        return await self._counted("exists", self._store.exists(key))

    async def info(self, key: str) -> BlobInfo:
        """Return a blob's size and time, or raise NotFoundError; count the call either way."""
        return await self._counted("info", self._store.info(key))

    async def delete(self, key: str) -> None:
        """Delete a blob if it exists; count the call."""
        await self._counted("delete", self._store.delete(key))

    async def keys(self, prefix: str) -> list[str]:
        """Return the keys below `<kind>/` or `<kind>/<id>/`, sorted; count the call."""
        return await self._counted("list", self._store.keys(prefix))

    async def listing(self, prefix: str) -> list[BlobInfo]:
        """Return the metadata of the blobs below a prefix, sorted by key; count the call."""
        return await self._counted("list", self._store.listing(prefix))

    async def _counted(self, operation: str, call: Awaitable[T], written: int = 0) -> T:
        try:
            answer = await call
        except NotFoundError:
            self._metrics.calls.inc(operation, "not_found")
            raise
        except ServiceError:
            self._metrics.calls.inc(operation, "failed")
            raise
        self._metrics.calls.inc(operation, "ok")
        if written:
            self._metrics.bytes.inc("written", by=written)
        return answer


class MeteredPresigningStore(MeteredBlobStore):
    """Metered store that also has presigned URLs, whose traffic is not counted.

    Args:
        store: executes the calls.
        urls: the same store.
        metrics: counts them.
    """

    def __init__(self, store: BlobStore, urls: PresignedUrls, metrics: BlobMetrics) -> None:
        super().__init__(store, metrics)
        self._urls = urls

    async def get_url(self, key: str, lifetime: timedelta) -> str:
        """Return a URL to GET a blob within `lifetime`; count the call, not the download."""
        return await self._counted("sign", self._urls.get_url(key, lifetime))

    async def put_url(self, key: str, lifetime: timedelta, size_bytes: int | None = None) -> str:
        """Return a URL to PUT content within `lifetime`; count the call, not the upload."""
        return await self._counted("sign", self._urls.put_url(key, lifetime, size_bytes))

    async def take(self, staged: str, key: str, sha256: str, size_bytes: int) -> None:
        """Move an upload to its key if hash and size match, else delete it and raise; count it."""
        await self._counted("take", self._urls.take(staged, key, sha256, size_bytes))


def with_metrics(store: BlobStore, metrics: BlobMetrics) -> BlobStore:
    """Wrap a blob store so that its calls are counted; keep its presigned URLs if it has any."""
    if isinstance(store, PresignedUrls):
        return MeteredPresigningStore(store, store, metrics)
    return MeteredBlobStore(store, metrics)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
