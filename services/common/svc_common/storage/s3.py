"""`BlobStore` and `PresignedUrls` in a bucket of any S3 server.

Downloads are verified: by the key if it is content-addressed, else by a hash in the metadata of the
object.
"""

import asyncio
import hashlib
import io
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Self, TypeVar

from minio import Minio
from minio.commonconfig import REPLACE, CopySource
from minio.error import MinioException, S3Error
from urllib3.exceptions import HTTPError

from svc_common.errors import AbortedError, DataLossError, InvalidArgumentError, NotFoundError
from svc_common.storage.atomic_files import CHUNK_BYTES, atomic_file, storage_error
from svc_common.storage.ports import (
    CONTENT_KIND,
    REFRESH_AFTER,
    STAGING_KIND,
    BlobInfo,
    ContentMismatchError,
    check_key,
    check_prefix,
    content_key,
    digest_of,
)
from svc_common.storage.s3_connection import (
    CONNECTIONS,
    RetryingPool,
    ServerUnreachableError,
    service_error,
)
from svc_common.storage.s3_settings import S3Settings
from svc_common.storage.s3_signatures import presigned_put

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

T = TypeVar("T")

PART_BYTES: Final = 8 * 1024 * 1024
"""Larger files are uploaded in parts of this size, one at a time."""
_PARTS_LIMIT: Final = 10_000
"""Most parts of one upload, by the S3 protocol; still larger files have larger parts."""
_CHECK_FIRST_BYTES: Final = 64 * 1024
"""From this size on, checking whether content exists is cheaper than uploading it again."""
_ATTEMPTS: Final = 3
"""Attempts of a whole call whose response was incomplete or damaged; `RetryingPool` repeats single
requests."""
_HASHES: Final = 3
"""Attempts to upload a file that changes meanwhile."""
_LONGEST_LIFETIME: Final = timedelta(days=7)
"""Longest validity of a presigned URL, by the S3 protocol."""
_NEVER: Final = datetime.fromtimestamp(0, UTC)
"""Time of storing, for servers that do not return it."""
_DIGEST_HEADER: Final = "x-amz-meta-sha256"
_BUCKET_EXISTS: Final = frozenset({"BucketAlreadyOwnedByYou", "BucketAlreadyExists"})


class S3BlobStore:
    """`BlobStore` with presigned URLs in a bucket of an S3 server.

    Opening needs no server. The first write that finds no bucket creates it. Uploads that a crash
    interrupted stay in the bucket as unfinished parts: let a lifecycle rule of the bucket delete
    them.

    Args:
        settings: server, account, bucket and prefix.
        refresh_after: content that is older is uploaded again when it is stored once more, which
            resets its age; at most `REFRESH_AFTER`, which callers rely on.
    """

    def __init__(self, settings: S3Settings, *, refresh_after: timedelta = REFRESH_AFTER) -> None:
        self._settings = settings
        self._refresh_after = refresh_after
        self._closing = threading.Event()
        self._pool = RetryingPool(self._closing, settings.ca_file)
        # Its own threads: they block while the server is unreachable, but no other work does.
        self._threads = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="s3")
        self._client = Minio(
            settings.address,
            access_key=settings.access_key,
            secret_key=settings.secret_key,
            secure=settings.secure,
            region=settings.region,
            http_client=self._pool,
        )
        self._bucket = settings.bucket

    async def __aenter__(self) -> Self:
        """Return the store; no request is sent yet."""
        return self

    async def __aexit__(self, *error: object) -> None:
        """End retries, worker threads and connections of the S3 client."""
        self._closing.set()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._pool.clear()

    async def put(self, data: bytes) -> str:
        """Upload data under its SHA-256, unless a fresh copy is stored; return the key."""
        key = content_key(data)
        if len(data) < _CHECK_FIRST_BYTES or not await self._is_fresh(key, len(data)):
            await self._store(key, data)
        return key

    async def put_file(self, path: Path) -> str:
        """Upload a file unless a fresh copy is stored; retry if it changes; return the key."""
        for _ in range(_HASHES):
            digest, size_bytes = await self._run(str(path), lambda: _hashed(path))
            key = f"{CONTENT_KIND}/{digest}"
            if await self._is_fresh(key, size_bytes):
                return key
            try:
                await self._upload(key, path, digest, size_bytes)
            except _FileChangedError:
                continue
            return key
        raise _changing_file_error(path)

    async def put_named(self, key: str, data: bytes) -> None:
        """Store data under a checked key in the bucket; replace an earlier object."""
        await self._store(check_key(key), data)

    async def put_named_file(self, key: str, path: Path) -> None:
        """Hash and upload a file under a name; repeat if it changes meanwhile, in the end raise."""
        check_key(key)
        for _ in range(_HASHES):
            digest, size_bytes = await self._run(str(path), lambda: _hashed(path))
            try:
                await self._upload(key, path, digest, size_bytes)
            except _FileChangedError:
                continue
            return
        raise _changing_file_error(path)

    async def get(self, key: str) -> bytes:
        """Download an object into memory, checking its hash; return the bytes."""
        check_key(key)

        def read() -> bytes:
            target = io.BytesIO()
            self._read(key, target)
            return target.getvalue()

        return await self._run(key, read)

    async def fetch(self, key: str, path: Path) -> None:
        """Download an object to a temporary file, checking its hash; rename it to ``path``."""
        check_key(key)

        def read() -> None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(path) as target:
                self._read(key, target)

        await self._run(key, read)

    async def exists(self, key: str) -> bool:
        """Return whether an object of this key is in the bucket, by a HEAD request."""
        try:
            await self.info(key)
        except NotFoundError:
            return False
        return True

    async def info(self, key: str) -> BlobInfo:
        """Return size and time of an object by a HEAD request; raise NotFoundError if missing."""
        name = self._name(check_key(key))
        found = await self._run(key, lambda: self._client.stat_object(self._bucket, name))
        return BlobInfo(key, found.size or 0, found.last_modified or _NEVER)

    async def delete(self, key: str) -> None:
        """Delete an object from the bucket; do nothing if it is missing."""
        name = self._name(check_key(key))
        try:
            await self._run(key, lambda: self._client.remove_object(self._bucket, name))
        except NotFoundError:
            return

    async def keys(self, prefix: str) -> list[str]:
        """Return the keys below `<kind>/` or `<kind>/<id>/`, sorted."""
        return [info.key for info in await self.listing(prefix)]

    async def listing(self, prefix: str) -> list[BlobInfo]:
        """Return key, size and time of the objects below a prefix, sorted; no bucket: none."""
        start = self._name(check_prefix(prefix))
        cut = len(self._settings.prefix)

        def listed() -> list[BlobInfo]:
            found = self._client.list_objects(self._bucket, start, recursive=True)
            return sorted(
                (
                    BlobInfo(item.object_name[cut:], item.size or 0, item.last_modified or _NEVER)
                    for item in found
                    if item.object_name
                ),
                key=lambda info: info.key,
            )

        try:
            return await self._run(prefix, listed)
        except NotFoundError:
            return []

    async def get_url(self, key: str, lifetime: timedelta) -> str:
        """Return a presigned URL to GET a blob within `lifetime`; it need not exist yet."""
        return await self._url("GET", key, lifetime)

    async def put_url(self, key: str, lifetime: timedelta, size_bytes: int | None = None) -> str:
        """Return a presigned URL to PUT content within `lifetime`, of this size if one is set."""
        return await self._url("PUT", key, lifetime, size_bytes)

    async def take(self, staged: str, key: str, sha256: str, size_bytes: int) -> None:
        """Copy a staged upload to its key if size and hash match, else raise; delete the upload."""
        check_key(key)
        # Its own copy, which no URL can overwrite: the staged object may change at any time, and
        # its ETag is an MD5, for which two contents can be made.
        private = f"{STAGING_KIND}/private/{secrets.token_hex(16)}"
        await self._run(check_key(staged), lambda: self._copy(staged, private, sha256))
        try:
            size, digest = await self._run(private, lambda: self._measured(private))
            if (size, digest) != (size_bytes, sha256):
                raise ContentMismatchError(
                    f"{size} bytes with the hash {digest} were uploaded for {key!r}, {size_bytes} "
                    f"with {sha256} were announced; they were deleted, so send them again"
                )
            await self._run(key, lambda: self._copy(private, key, sha256))
        finally:
            await self.delete(private)
            await self.delete(staged)

    def _copy(self, source: str, target: str, sha256: str) -> None:
        self._client.copy_object(
            self._bucket,
            self._name(target),
            CopySource(self._bucket, self._name(source)),
            metadata={_DIGEST_HEADER: sha256},
            metadata_directive=REPLACE,
        )

    def _measured(self, key: str) -> tuple[int, str]:
        """Download an object in chunks; return its size and SHA-256."""
        response = self._client.get_object(self._bucket, self._name(key))
        digest, size_bytes = hashlib.sha256(), 0
        try:
            for chunk in response.stream(CHUNK_BYTES):
                digest.update(chunk)
                size_bytes += len(chunk)
        finally:
            response.close()
            response.release_conn()
        return size_bytes, digest.hexdigest()

    async def _url(
        self, method: str, key: str, lifetime: timedelta, size_bytes: int | None = None
    ) -> str:
        name = self._name(check_key(key))
        if not timedelta(seconds=1) <= lifetime <= _LONGEST_LIFETIME:
            raise InvalidArgumentError("lifetime", "must be 1 s to 7 days", str(lifetime))
        if size_bytes is not None:
            return await self._run(key, lambda: self._sized_url(name, lifetime, size_bytes))
        return await self._run(
            key,
            lambda: self._client.get_presigned_url(method, self._bucket, name, expires=lifetime),
        )

    def _sized_url(self, name: str, lifetime: timedelta, size_bytes: int) -> str:
        settings = self._settings
        plain = self._client.get_presigned_url("PUT", self._bucket, name, expires=lifetime)
        return presigned_put(
            plain.partition("?")[0],
            access_key=settings.access_key,
            secret_key=settings.secret_key,
            region=settings.region,
            lifetime=lifetime,
            size_bytes=size_bytes,
            now=datetime.now(UTC),
        )

    async def _is_fresh(self, key: str, size_bytes: int) -> bool:
        """Return whether an object has this size and is younger than ``refresh_after``."""
        try:
            found = await self.info(key)
        except NotFoundError:
            return False
        young = datetime.now(UTC) - found.stored_at < self._refresh_after
        return young and found.size_bytes == size_bytes

    def _name(self, key: str) -> str:
        return self._settings.prefix + key

    async def _store(self, key: str, data: bytes) -> None:
        digest = hashlib.sha256(data).hexdigest()
        await self._run(key, lambda: self._write(key, io.BytesIO(data), len(data), digest))

    async def _upload(self, key: str, path: Path, digest: str, size_bytes: int) -> None:
        def upload() -> None:
            with path.open("rb") as file:
                checked = io.BufferedReader(_UnchangedFile(file, size_bytes, digest), CHUNK_BYTES)
                self._write(key, checked, size_bytes, digest)

        await self._run(key, upload)

    def _write(self, key: str, source: BinaryIO, size_bytes: int, digest: str) -> None:
        part_bytes = max(PART_BYTES, -(-size_bytes // _PARTS_LIMIT))
        try:
            self._client.put_object(
                self._bucket,
                self._name(key),
                source,
                size_bytes,
                metadata={_DIGEST_HEADER: digest},
                part_size=part_bytes,
                num_parallel_uploads=1,  # the client leaks threads if a part cannot be read
            )
        except S3Error as error:
            if error.code != "NoSuchBucket":
                raise
            self._make_bucket()
            raise _BucketMadeError from error

    def _make_bucket(self) -> None:
        try:
            self._client.make_bucket(self._bucket)
        except S3Error as error:
            if error.code not in _BUCKET_EXISTS:  # another service has created it
                raise

    def _read(self, key: str, target: BinaryIO) -> None:
        response = self._client.get_object(self._bucket, self._name(key))
        digest = hashlib.sha256()
        try:
            for chunk in response.stream(CHUNK_BYTES):
                digest.update(chunk)
                target.write(chunk)
        finally:
            response.close()
            response.release_conn()
        found = digest.hexdigest()
        expected = digest_of(key) or response.headers.get(_DIGEST_HEADER, found)
        if found != expected:
            raise DataLossError(key, expected, found)

    async def _run(self, key: str, work: Callable[[], T]) -> T:
        """Run blocking S3 work in a thread; retry transient errors; raise service errors."""
        loop = asyncio.get_running_loop()
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return await loop.run_in_executor(self._threads, work)
            except (HTTPError, DataLossError, _BucketMadeError) as error:
                if attempt < _ATTEMPTS:
                    continue
                if isinstance(error, DataLossError):
                    raise
                raise service_error(error, key, self._settings) from error
            except (MinioException, ServerUnreachableError) as error:
                raise service_error(error, key, self._settings) from error
            except OSError as error:
                raise storage_error(error) from error
        raise AssertionError("the last attempt returns or raises")


class _BucketMadeError(Exception):
    """Error: the bucket was missing and has been created: the same call may succeed."""


class _FileChangedError(Exception):
    """Error: a file has changed since it was hashed."""


class _UnchangedFile(io.RawIOBase):
    """File reader that raises at the end if the content's hash is not the expected one.

    So the last part of an upload is never sent if the file has changed, and the whole upload is
    abandoned.
    """

    def __init__(self, file: BinaryIO, size_bytes: int, digest: str) -> None:
        self._file = file
        self._rest_bytes = size_bytes
        self._expected = digest
        self._digest = hashlib.sha256()

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Read bytes into `buffer` and hash them; raise at the end if the file has changed.

        Raises:
            _FileChangedError: at the end, if the hash differs.
        """
        view = memoryview(buffer)
        wanted = min(len(view), self._rest_bytes)
        data = self._file.read(wanted)
        self._digest.update(data)
        self._rest_bytes -= len(data)
        ended = self._rest_bytes == 0 or len(data) < wanted
        if ended and self._digest.hexdigest() != self._expected:
            raise _FileChangedError
        view[: len(data)] = data
        return len(data)


def _changing_file_error(path: Path) -> AbortedError:
    return AbortedError(f"{path} is being written to; store it when it is finished")


def _hashed(path: Path) -> tuple[str, int]:
    """Read a file in chunks; return its SHA-256 and its size."""
    digest = hashlib.sha256()
    size_bytes = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            size_bytes += len(chunk)
    return digest.hexdigest(), size_bytes
