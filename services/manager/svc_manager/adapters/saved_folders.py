"""`SavedFolders` on this machine's file system."""

import asyncio
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from svc_common.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    ResourceExhaustedError,
)
from svc_common.experiment_files import ExperimentRoots
from svc_common.logs import get_logger
from svc_common.safe_folders import DEPTH_LIMIT, SafeFolder
from svc_manager.adapters.event_file import experiment_of
from svc_manager.event_log.file_format import whole_records
from svc_manager.usecases.archive_names import EVENTS, FOLDER, OUTPUTS, VALUES, is_saved

PIECE_BYTES: Final = 256 * 1024
_STAGE_PREFIX: Final = ".loading-"
_LEAST_FREE_BYTES: Final = 64 * 1024 * 1024
"""Free disk space that loading an experiment must leave."""
_SUBFOLDERS: Final = ("log", "checkpoint", "db", "trials")


class StagedExperiment:
    """Temporary folder into which an archived experiment is unpacked before it is placed.

    Args:
        parent: open folder that holds the stage; it is closed by `discard`.
        name: of the stage, which others may not enter.
        roots: of experiment folders.
    """

    def __init__(self, parent: SafeFolder, name: str, roots: ExperimentRoots) -> None:
        self._parent = parent
        self._name = name
        self._roots = roots
        self._folder = parent.folder(name)
        self._open: tuple[str, BinaryIO] | None = None
        self._since_check = 0

    async def write(self, name: str, data: bytes, *, last: bool) -> None:
        """Append a piece of an archived file to the stage; raise if the disk cannot take it."""
        try:
            await asyncio.to_thread(self._write, name, data, last)
        except OSError as error:
            raise ResourceExhaustedError(
                f"the experiment cannot be written below {self._parent.path}: "
                f"{error.strerror or error}; choose another folder or make room"
            ) from error

    def _write(self, name: str, data: bytes, last: bool) -> None:  # noqa: FBT001 - private
        self._since_check += len(data)
        if self._since_check > _LEAST_FREE_BYTES // 4:
            self._since_check = 0
            if self._folder.free_bytes() < _LEAST_FREE_BYTES:
                raise OSError(28, "No space left on device")
        if self._open is None:
            above = name.rpartition("/")[0]
            if above:
                self._folder.make_folder(above).close()
            self._open = (name, self._folder.create_file(name))
        _, file = self._open
        file.write(data)
        if last:
            file.close()
            self._open = None

    async def records(self) -> list[tuple[int, bytes]]:
        """Return (old stream sequence, batch bytes) of the staged log; raise if missing or bad."""
        return await asyncio.to_thread(self._all_records)

    def values(self) -> list[tuple[str, Path]]:
        """Return the name (the claimed hash) and the file of each staged large value."""
        return self._files_in(VALUES)

    def outputs(self) -> list[tuple[str, Path]]:
        """Return `<trial>/<attempt>/<file>` and the file of each staged output."""
        return self._files_in(OUTPUTS)

    def _files_in(self, prefix: str) -> list[tuple[str, Path]]:
        """Return the sorted (name, path) of all regular files below one folder of the stage.

        The paths begin with the descriptor of the stage: they stay valid while it is open.
        """
        name = prefix.rstrip("/")
        if not self._folder.is_folder(name):
            return []
        root = Path(self._folder.descriptor_path()) / name
        with self._folder.folder(name) as folder:
            return sorted(
                (name, root / name)
                for name, status in folder.walk()
                if stat.S_ISREG(status.st_mode)
            )

    async def place(self, directory: Path) -> None:
        """Move the staged experiment's files to ``directory``; raise if that is not free."""
        await asyncio.to_thread(self._place, directory)

    def _place(self, directory: Path) -> None:
        source = FOLDER.rstrip("/")
        for name in _SUBFOLDERS:
            self._folder.make_folder(f"{source}/{name}").close()
        try:
            target, last = self._roots.open_parent(directory)
            with target:
                self._folder.rename(source, target, last)
        except OSError as error:  # a non-empty folder, a file, or another file system
            raise FailedPreconditionError(
                f"the folder {directory} cannot be made: {error.strerror}; "
                "remove it, or choose another folder"
            ) from error

    async def discard(self) -> None:
        """Close the stage and delete its folder; what was placed elsewhere stays."""
        if self._open is not None:
            self._open[1].close()
        self._folder.close()
        with self._parent, suppress(OSError):
            await asyncio.to_thread(self._parent.remove, self._name)

    def _all_records(self) -> list[tuple[int, bytes]]:
        try:
            with self._folder.read_file(EVENTS) as file:
                found = list(whole_records(file))
                size = os.fstat(file.fileno()).st_size
        except FileNotFoundError as error:
            raise InvalidArgumentError(EVENTS, "must be there", None) from error
        except ValueError as error:
            raise InvalidArgumentError(EVENTS, "must be an event log", None, str(error)) from error
        if not found or found[-1][2] != size:
            raise InvalidArgumentError(
                EVENTS, "must consist of whole records", None, "it is damaged: save it again"
            )
        return [(sequence, payload) for sequence, payload, _ in found]


class LocalSavedFolders:
    """Adapter that reads an experiment's files for an archive, and stages them at loading.

    Args:
        roots: of experiment folders.
    """

    def __init__(self, roots: ExperimentRoots | None = None) -> None:
        self._roots = roots or ExperimentRoots()

    async def files(
        self, directory: Path, experiment_id: str
    ) -> AsyncGenerator[tuple[str, bytes, bool], None]:
        """Yield (path, piece, last) of the folder's files, if it holds this experiment's log."""
        try:
            folder = await asyncio.to_thread(self._roots.open, directory)
        except OSError:
            return
        with folder:
            found = await asyncio.to_thread(experiment_of, folder)
            if found != experiment_id:
                get_logger().warning(
                    "files not saved: the folder does not hold this experiment's log",
                    folder=str(directory),
                    experiment=experiment_id,
                    found=found or "",
                )
                return
            for name in await asyncio.to_thread(_saved_names, folder):
                try:
                    file = await asyncio.to_thread(folder.read_file, name)
                except OSError as error:  # deleted meanwhile, or not readable
                    get_logger().warning("file not saved", path=name, error=str(error))
                    continue
                with file:
                    async for piece, last in _pieces(file):
                        yield name, piece, last

    async def pieces(
        self, fetch: Callable[[Path], Awaitable[None]]
    ) -> AsyncGenerator[tuple[bytes, bool], None]:
        """Fetch a blob to a temporary file; yield it as (piece, last); delete it afterwards."""
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
        """Create and return a temporary folder below ``root``, to unpack an archive into."""
        try:
            return await asyncio.to_thread(self._stage, root)
        except OSError as error:
            raise InvalidArgumentError(
                "experiment_working_directory",
                "must be a folder that can be written",
                str(root),
                f"{error.strerror or error}: choose another folder",
            ) from error

    def _stage(self, root: Path) -> StagedExperiment:
        name = f"{_STAGE_PREFIX}{secrets.token_hex(8)}"
        parent, last = self._roots.open_parent(root / name, create=True)
        try:
            parent.create_folder(last, 0o700)
            return StagedExperiment(parent, last, self._roots)
        except OSError:
            parent.close()
            raise

    async def remove(self, directory: Path) -> None:
        """Delete the folder of an experiment; failures are ignored."""
        with suppress(OSError):
            parent, name = self._roots.open_parent(directory)
            with parent:
                await asyncio.to_thread(parent.remove, name)


async def _pieces(file: BinaryIO) -> AsyncGenerator[tuple[bytes, bool], None]:
    # A log that is written continuously must not be read for ever.
    left = os.fstat(file.fileno()).st_size
    while left > PIECE_BYTES:
        piece = await asyncio.to_thread(file.read, PIECE_BYTES)
        left = left - len(piece) if piece else 0
        yield piece, False
    yield await asyncio.to_thread(file.read, left), True


def _saved_names(folder: SafeFolder) -> list[str]:
    """Return the names of a folder's regular files that an archive holds; no links, pipes."""
    return [
        name
        for name, status in folder.walk(depth_limit=DEPTH_LIMIT)
        if stat.S_ISREG(status.st_mode) and is_saved(name)
    ]
