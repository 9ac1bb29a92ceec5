"""What saving and loading an experiment need of the file system, as promises."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Protocol


class Stage(Protocol):
    """A place for the files of an experiment that is being loaded; nobody else looks there."""

    async def write(self, name: str, data: bytes, *, last: bool) -> None:
        """Add a piece to a file; the pieces of one follow each other.

        Args:
            name: checked by `svc_manager.usecases.archive_names`.
            data: the piece.
            last: the file ends here.

        Raises:
            ResourceExhaustedError: there is no room.
        """
        ...

    async def records(self) -> list[tuple[int, bytes]]:
        """Give (old stream sequence, batch) of the log that came.

        Raises:
            InvalidArgumentError: there is none, or it is damaged.
        """
        ...

    def values(self) -> list[tuple[str, Path]]:
        """Give the name (their hash, as claimed) and the file of the large values that came."""
        ...

    def outputs(self) -> list[tuple[str, Path]]:
        """Give `<trial>/<attempt>/<file>` and the file of what trials wrote on other machines."""
        ...

    async def place(self, directory: Path) -> None:
        """Make what came for the experiment's folder that folder, with all its parts.

        Raises:
            FailedPreconditionError: something is there.
        """
        ...

    async def discard(self) -> None:
        """Remove all that was not placed."""
        ...


class SavedFolders(Protocol):
    """Folders of experiments, to be read whole and to be made."""

    def files(self, directory: Path) -> AsyncGenerator[tuple[str, bytes, bool], None]:
        """Give the files that travel, piece by piece: path in the folder, bytes, last piece.

        Nothing if the folder is not on this machine.
        """
        ...

    def pieces(
        self, fetch: Callable[[Path], Awaitable[None]]
    ) -> AsyncGenerator[tuple[bytes, bool], None]:
        """Give a file piece by piece, with the word whether it is the last; then forget it.

        Args:
            fetch: writes the file to the path that it is given.
        """
        ...

    async def stage(self, root: Path) -> Stage:
        """Make a stage below the folder that will hold the experiment's.

        Raises:
            InvalidArgumentError: it cannot be written.
        """
        ...

    async def remove(self, directory: Path) -> None:
        """Remove a folder."""
        ...
