"""`SavedFolders` on this machine's file system."""

import asyncio
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from svc_common.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    ResourceExhaustedError,
)
from svc_common.experiment_files import open_inside
from svc_common.logs import get_logger
from svc_manager.event_log.file_format import whole_records
from svc_manager.usecases.archive_names import EVENTS, FOLDER, OUTPUTS, VALUES, is_saved

PIECE_BYTES: Final = 256 * 1024
_STAGE_PREFIX: Final = ".loading-"
_LEAST_FREE_BYTES: Final = 64 * 1024 * 1024
"""Free disk space that loading an experiment must leave."""
_SUBFOLDERS: Final = ("log", "checkpoint", "db", "trials")


class StagedExperiment:
    """See `svc_manager.ports.Stage`.

    Args:
        folder: exclusive folder of the stage.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: tuple[str, BinaryIO] | None = None
        self._since_check = 0

    async def write(self, name: str, data: bytes, *, last: bool) -> None:
        """See `Stage.write`."""
        try:
            await asyncio.to_thread(self._write, name, data, last)
        except OSError as error:
            raise ResourceExhaustedError(
                f"the experiment cannot be written below {self._folder.parent}: "
                f"{error.strerror or error}; choose another folder or make room"
            ) from error

    def _write(self, name: str, data: bytes, last: bool) -> None:  # noqa: FBT001 - private
        self._since_check += len(data)
        if self._since_check > _LEAST_FREE_BYTES // 4:
            self._since_check = 0
            if shutil.disk_usage(self._folder).free < _LEAST_FREE_BYTES:
                raise OSError(28, "No space left on device")
        if self._open is None:
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            self._open = (name, path.open("xb"))
        _, file = self._open
        file.write(data)
        if last:
            file.close()
            self._open = None

    async def records(self) -> list[tuple[int, bytes]]:
        """See `Stage.records`."""
        return await asyncio.to_thread(_all_records, self._folder / EVENTS)

    def values(self) -> list[tuple[str, Path]]:
        """See `Stage.values`."""
        folder = self._folder / VALUES
        return sorted((path.name, path) for path in folder.iterdir()) if folder.is_dir() else []

    def outputs(self) -> list[tuple[str, Path]]:
        """See `Stage.outputs`."""
        folder = self._folder / OUTPUTS
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return [(path.relative_to(folder).as_posix(), path) for path in files]

    async def place(self, directory: Path) -> None:
        """See `Stage.place`."""
        await asyncio.to_thread(self._place, directory)

    def _place(self, directory: Path) -> None:
        source = self._folder / FOLDER
        source.mkdir(exist_ok=True)
        for name in _SUBFOLDERS:
            (source / name).mkdir(exist_ok=True)
        try:
            source.rename(directory)
        except OSError as error:  # a non-empty folder, a file, or another file system
            raise FailedPreconditionError(
                f"the folder {directory} cannot be made: {error.strerror}; "
                "remove it, or choose another folder"
            ) from error

    async def discard(self) -> None:
        """See `Stage.discard`."""
        if self._open is not None:
            self._open[1].close()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)


class LocalSavedFolders:
    """See `svc_manager.ports.SavedFolders`."""

    async def files(self, directory: Path) -> AsyncGenerator[tuple[str, bytes, bool], None]:
        """See `SavedFolders.files`."""
        for path, name in await asyncio.to_thread(lambda: list(_files_of(directory))):
            try:
                file = await asyncio.to_thread(open_inside, directory, path)
            except OSError as error:  # deleted meanwhile, or not readable
                get_logger().warning("file not saved", path=str(path), error=str(error))
                continue
            with file:
                async for piece, last in _pieces(file):
                    yield name, piece, last

    async def pieces(
        self, fetch: Callable[[Path], Awaitable[None]]
    ) -> AsyncGenerator[tuple[bytes, bool], None]:
        """See `SavedFolders.pieces`."""
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="nni-save-"))
        try:
            path = folder / "file"
            await fetch(path)
            with await asyncio.to_thread(path.open, "rb") as file:
                async for piece in _pieces(file):
                    yield piece
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def stage(self, root: Path) -> StagedExperiment:
        """See `SavedFolders.stage`."""
        folder = root / f"{_STAGE_PREFIX}{secrets.token_hex(8)}"
        try:
            await asyncio.to_thread(folder.mkdir, 0o700, parents=True)
        except OSError as error:
            raise InvalidArgumentError(
                "experiment_working_directory",
                "must be a folder that can be written",
                str(root),
                f"{error.strerror or error}: choose another folder",
            ) from error
        return StagedExperiment(folder)

    async def remove(self, directory: Path) -> None:
        """See `SavedFolders.remove`."""
        await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)


async def _pieces(file: BinaryIO) -> AsyncGenerator[tuple[bytes, bool], None]:
    # A log that is written continuously must not be read for ever.
    left = os.fstat(file.fileno()).st_size
    while left > PIECE_BYTES:
        piece = await asyncio.to_thread(file.read, PIECE_BYTES)
        left = left - len(piece) if piece else 0
        yield piece, False
    yield await asyncio.to_thread(file.read, left), True


def _files_of(directory: Path) -> Iterator[tuple[Path, str]]:
    """Yield the regular files of a folder with their names, without links and sockets."""
    for folder, subfolders, names in os.walk(directory):
        subfolders.sort()
        for name in sorted(names):
            path = Path(folder) / name
            inside = path.relative_to(directory).as_posix()
            try:
                regular = stat.S_ISREG(path.lstat().st_mode)
            except OSError:
                continue
            if regular and is_saved(inside):
                yield path, inside


def _all_records(path: Path) -> list[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            found = list(whole_records(file))
            size = path.stat().st_size
    except FileNotFoundError as error:
        raise InvalidArgumentError(EVENTS, "must be there", None) from error
    except ValueError as error:
        raise InvalidArgumentError(EVENTS, "must be an event log", None, str(error)) from error
    if not found or found[-1][2] != size:
        raise InvalidArgumentError(
            EVENTS, "must consist of whole records", None, "it is damaged: save it again"
        )
    return [(sequence, payload) for sequence, payload, _ in found]
