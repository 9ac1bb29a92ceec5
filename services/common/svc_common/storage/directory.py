"""`BlobStore` in a folder: one file per blob, written beside its place and moved there."""

import asyncio
import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from svc_common.errors import NotFoundError, ResourceExhaustedError, UnavailableError
from svc_common.storage.ports import CONTENT_KIND, check_key, check_prefix, content_key

T = TypeVar("T")

_CHUNK_BYTES: Final = 1024 * 1024
_TEMPORARY: Final = ".new-"
"""Start of the names of files that are not whole yet; no key has such a part."""
_OUT_OF_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class DirectoryBlobStore:
    """`BlobStore` below one folder, which is made when needed.

    File operations run in threads, not on the loop.

    Args:
        folder: the root of the store; only this user may read it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, data: bytes) -> str:
        """See `BlobStore.put`."""
        key = content_key(data)
        await _in_thread(lambda: self._write_once(key, data))
        return key

    async def put_file(self, path: Path) -> str:
        """See `BlobStore.put_file`."""
        return await _in_thread(lambda: self._copy_in(path))

    async def put_named(self, key: str, data: bytes) -> None:
        """See `BlobStore.put_named`."""
        place = self._place(key)
        await _in_thread(lambda: _write_whole(place, data))

    async def get(self, key: str) -> bytes:
        """See `BlobStore.get`."""
        place = self._place(key)
        return await _in_thread(lambda: _found(key, place).read_bytes())

    async def fetch(self, key: str, path: Path) -> None:
        """See `BlobStore.fetch`."""
        place = self._place(key)
        await _in_thread(lambda: _copy_whole(_found(key, place), path))

    async def exists(self, key: str) -> bool:
        """See `BlobStore.exists`."""
        return await _in_thread(self._place(key).is_file)

    async def delete(self, key: str) -> None:
        """See `BlobStore.delete`."""
        place = self._place(key)
        await _in_thread(lambda: place.unlink(missing_ok=True))

    async def keys(self, prefix: str) -> list[str]:
        """See `BlobStore.keys`."""
        root = self._folder / check_prefix(prefix)
        return await _in_thread(lambda: self._keys_below(root))

    def _place(self, key: str) -> Path:
        return self._folder / check_key(key)

    def _keys_below(self, root: Path) -> list[str]:
        return sorted(
            path.relative_to(self._folder).as_posix()
            for path in root.rglob("*")
            if path.is_file() and not path.name.startswith(_TEMPORARY)
        )

    def _write_once(self, key: str, data: bytes) -> None:
        place = self._place(key)
        if not place.exists():
            _write_whole(place, data)

    def _copy_in(self, path: Path) -> str:
        """Copy and hash in one pass, so that a file that changes meanwhile keeps its promise."""
        folder = self._folder / CONTENT_KIND
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        digest = hashlib.sha256()
        descriptor, name = tempfile.mkstemp(prefix=_TEMPORARY, dir=folder)
        temporary = Path(name)
        try:
            with open(descriptor, "wb") as target, path.open("rb") as source:  # noqa: PTH123 - a descriptor
                while chunk := source.read(_CHUNK_BYTES):
                    digest.update(chunk)
                    target.write(chunk)
            key = f"{CONTENT_KIND}/{digest.hexdigest()}"
            temporary.replace(self._place(key))
        finally:
            temporary.unlink(missing_ok=True)
        return key


async def _in_thread(work: Callable[[], T]) -> T:
    """Run file operations off the loop and translate their errors."""
    try:
        return await asyncio.to_thread(work)
    except OSError as error:
        if error.errno in _OUT_OF_ROOM:
            raise ResourceExhaustedError(
                f"no room to store {error.filename}: {error.strerror}; free disk space"
            ) from error
        raise UnavailableError(f"the store of bytes cannot be used: {error}") from error


def _found(key: str, place: Path) -> Path:
    if not place.is_file():
        raise NotFoundError("blob", key)
    return place


def _write_whole(place: Path, data: bytes) -> None:
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=_TEMPORARY, dir=place.parent)
    try:
        with open(descriptor, "wb") as target:  # noqa: PTH123 - a descriptor
            target.write(data)
        os.replace(name, place)  # noqa: PTH105 - a name, not a Path
    finally:
        Path(name).unlink(missing_ok=True)


def _copy_whole(source: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=_TEMPORARY, dir=path.parent)
    try:
        with open(descriptor, "wb") as target, source.open("rb") as opened:  # noqa: PTH123 - a descriptor
            shutil.copyfileobj(opened, target, _CHUNK_BYTES)
        os.replace(name, path)  # noqa: PTH105 - a name, not a Path
    finally:
        Path(name).unlink(missing_ok=True)
