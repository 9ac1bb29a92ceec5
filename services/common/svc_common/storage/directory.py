"""`BlobStore` in a folder: one file per blob, written atomically."""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from svc_common.durable_files import replace_durably
from svc_common.errors import NotFoundError
from svc_common.storage.atomic_files import CHUNK_BYTES, TEMPORARY, atomic_file, storage_error
from svc_common.storage.ports import (
    CONTENT_KIND,
    BlobInfo,
    check_content,
    check_key,
    check_prefix,
    content_key,
    digest_of,
)

T = TypeVar("T")


class DirectoryBlobStore:
    """`BlobStore` of files below one folder; file operations run in threads.

    Args:
        folder: the root of the store; only this user may read it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, data: bytes) -> str:
        """Write data to a file named by its SHA-256, or renew that file's time; return the key."""
        key = content_key(data)
        await _in_thread(lambda: self._write_once(key, data))
        return key

    async def put_file(self, path: Path) -> str:
        """Copy a file into the folder under its content's SHA-256; return the key."""
        return await _in_thread(lambda: self._copy_in(path))

    async def put_named(self, key: str, data: bytes) -> None:
        """Write data to the file of a key, whole or not at all; replace an earlier blob."""
        place = self._place(key)
        await _in_thread(lambda: _write_whole(place, data))

    async def put_named_file(self, key: str, path: Path) -> None:
        """Copy a file to the file of a key, whole or not at all; replace an earlier blob."""
        place = self._place(key)
        await _in_thread(lambda: _copy_whole(path, place))

    async def get(self, key: str) -> bytes:
        """Return a key's content, checked by its hash; NotFoundError if there is none."""
        place = self._place(key)
        return await _in_thread(lambda: _read(key, place))

    async def fetch(self, key: str, path: Path) -> None:
        """Copy a blob to a file, atomically; raise if there is none, or its hash does not match."""
        place = self._place(key)
        await _in_thread(lambda: _copy_out(key, place, path))

    async def exists(self, key: str) -> bool:
        """Return whether a key has a file, looked up in a thread."""
        return await _in_thread(self._place(key).is_file)

    async def info(self, key: str) -> BlobInfo:
        """Return a blob's size and time of storing; raise NotFoundError if there is none."""
        place = self._place(key)
        return await _in_thread(lambda: self._info(_found(key, place)))

    async def delete(self, key: str) -> None:
        """Delete a blob if it exists."""
        place = self._place(key)
        await _in_thread(lambda: place.unlink(missing_ok=True))

    async def keys(self, prefix: str) -> list[str]:
        """Return the sorted keys of all blob files below a prefix `<kind>/` or `<kind>/<id>/`."""
        root = self._folder / check_prefix(prefix)
        return await _in_thread(
            lambda: sorted(path.relative_to(self._folder).as_posix() for path in _blobs_below(root))
        )

    async def listing(self, prefix: str) -> list[BlobInfo]:
        """Return the metadata of the blobs below `<kind>/` or `<kind>/<id>/`, sorted by key."""
        root = self._folder / check_prefix(prefix)
        return await _in_thread(lambda: self._listed(root))

    def _place(self, key: str) -> Path:
        return self._folder / check_key(key)

    def _listed(self, root: Path) -> list[BlobInfo]:
        found = []
        for path in _blobs_below(root):
            try:
                found.append(self._info(path))
            except FileNotFoundError:  # deleted meanwhile
                continue
        return sorted(found, key=lambda info: info.key)

    def _info(self, path: Path) -> BlobInfo:
        status = path.stat()
        key = path.relative_to(self._folder).as_posix()
        return BlobInfo(key, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))

    def _write_once(self, key: str, data: bytes) -> None:
        place = self._place(key)
        try:
            os.utime(place)  # reset its age: see `REFRESH_AFTER`
        except FileNotFoundError:
            _write_whole(place, data)

    def _copy_in(self, path: Path) -> str:
        """Copy a file into the store, hashing it; name the copy by its hash; return the key."""
        folder = self._folder / CONTENT_KIND
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        digest = hashlib.sha256()
        descriptor, name = tempfile.mkstemp(prefix=TEMPORARY, dir=folder)
        temporary = Path(name)
        try:
            with open(descriptor, "wb") as target, path.open("rb") as source:  # noqa: PTH123 - a descriptor
                while chunk := source.read(CHUNK_BYTES):
                    digest.update(chunk)
                    target.write(chunk)
            key = f"{CONTENT_KIND}/{digest.hexdigest()}"
            replace_durably(temporary, self._place(key))
        finally:
            temporary.unlink(missing_ok=True)
        return key


async def _in_thread(work: Callable[[], T]) -> T:
    """Run a function in a thread; raise its OSError as a `ServiceError`."""
    try:
        return await asyncio.to_thread(work)
    except OSError as error:
        raise storage_error(error) from error


def _blobs_below(root: Path) -> Iterator[Path]:
    return (
        path for path in root.rglob("*") if path.is_file() and not path.name.startswith(TEMPORARY)
    )


def _found(key: str, place: Path) -> Path:
    if not place.is_file():
        raise NotFoundError("blob", key)
    return place


def _read(key: str, place: Path) -> bytes:
    data = _found(key, place).read_bytes()
    if digest_of(key):
        check_content(key, hashlib.sha256(data).hexdigest())
    return data


def _write_whole(place: Path, data: bytes) -> None:
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with atomic_file(place) as file:
        file.write(data)


def _copy_whole(source: Path, place: Path) -> None:
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with atomic_file(place) as target, source.open("rb") as content:
        while chunk := content.read(CHUNK_BYTES):
            target.write(chunk)


def _copy_out(key: str, place: Path, path: Path) -> None:
    source_path = _found(key, place)
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with atomic_file(path) as target, source_path.open("rb") as source:
        while chunk := source.read(CHUNK_BYTES):
            digest.update(chunk)
            target.write(chunk)
        check_content(key, digest.hexdigest())
