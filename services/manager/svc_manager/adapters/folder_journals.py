"""`Journals` on this machine's file system."""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from svc_common.errors import InvalidArgumentError, NotFoundError
from svc_common.experiment_files import ExperimentRoots
from svc_common.logs import get_logger
from svc_common.own_files import DAMAGED
from svc_common.safe_folders import SafeFolder
from svc_manager.adapters.event_file import (
    EVENT_FILE,
    EventFile,
    damage_of,
    experiment_of,
    read_readable,
    torn_end_of,
)
from svc_manager.event_log.file_format import file_of

TEXT_FILE = "log/nnimanager.log"
_DATA: Final = str(Path(EVENT_FILE).parent)
_PENDING_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Maximum of what waits in memory for room on the disk; beyond, the file is completed from the log
when the experiment is loaded again."""


class FolderJournal:
    """Writer of one experiment's `events.log` and text log; write errors are only logged.

    Args:
        folder: open; used during construction only.
        debug: whether debug lines are written.
    """

    def __init__(self, folder: SafeFolder, *, debug: bool) -> None:
        self._directory = folder.path
        self._debug = debug
        self._lines: list[str] = []
        self._stamp = (0, "")
        self._events: EventFile | None = None
        self._text = None
        self._trouble = ""
        """Error of the last flush; empty after a success."""
        try:
            self._events = EventFile(Path(EVENT_FILE), folder)
            self._text = folder.append_file(TEXT_FILE)
        except (OSError, ValueError) as error:
            self._disable(error)
        if self._events is not None and self._events.damaged_bytes:
            get_logger().warning(
                "event file damaged: cut behind its last whole record, and completed from the log",
                directory=str(self._directory),
                lost_bytes=self._events.damaged_bytes,
            )

    @property
    def last_sequence(self) -> int:
        """Sequence of the last batch in `events.log`; 0: none."""
        return self._events.last_sequence if self._events else 0

    def record(self, sequence: int, payload: bytes) -> None:
        """Buffer a batch for `events.log` until `flush`; drop it once writing was given up."""
        if self._events is not None:
            self._events.append(sequence, payload)

    def add_line(self, time_ms: int, level: str, logger: str, text: str) -> None:
        """Buffer a time-stamped line for the text log; a debug line only if debug is on."""
        if level == "DEBUG" and not self._debug:
            return
        self._lines.append(f"[{self._local(time_ms // 1000)}] {level} ({logger}) {text}\n")

    def flush(self) -> None:
        """Write the buffered batches and text lines; after an error keep batches and drop lines."""
        try:
            if self._events is not None:
                self._events.flush()
            if self._lines and self._text is not None:
                self._text.write("".join(self._lines).encode())
            if self._trouble:
                self._trouble = ""
                get_logger().info("experiment folder written again", directory=str(self._directory))
        except OSError as error:
            self._wait_for_room(error)
        self._lines.clear()

    def _wait_for_room(self, error: OSError) -> None:
        """Warn once that the folder cannot be written; stop writing if too much is pending."""
        if self._events is None or self._events.pending_bytes > _PENDING_LIMIT_BYTES:
            self._disable(error)
        elif not self._trouble:
            self._trouble = str(error)
            get_logger().warning(
                "experiment folder cannot be written now",
                directory=str(self._directory),
                error=str(error),
            )

    def close(self) -> None:
        """Flush and close the event log and the text log; may be called twice."""
        self.flush()
        try:
            if self._events is not None:
                self._events.close()
        except OSError as error:
            self._disable(error)
        if self._text is not None:
            self._text.close()
        self._events = self._text = None

    def _local(self, second: int) -> str:
        """Return a time as `YYYY-MM-DD HH:MM:SS` in local time; the last second is cached."""
        if self._stamp[0] != second:
            moment = datetime.fromtimestamp(second).astimezone()
            self._stamp = (second, moment.strftime("%Y-%m-%d %H:%M:%S"))
        return self._stamp[1]

    def _disable(self, error: Exception) -> None:
        get_logger().warning(
            "experiment folder not written", directory=str(self._directory), error=str(error)
        )
        events, self._events = self._events, None
        if events is not None:
            events.abandon()


class NoJournal:
    """Null `Journal`, which discards all writes, for experiment folders on other machines."""

    last_sequence = 0

    def record(self, sequence: int, payload: bytes) -> None:
        """Do nothing: the batch is not written."""

    def add_line(self, time_ms: int, level: str, logger: str, text: str) -> None:
        """Do nothing: there is no text log."""

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def close(self) -> None:
        """Do nothing: no file is open."""


class FolderJournals:
    """Factory of `FolderJournal`s, and reader and repairer of their event log files.

    Args:
        roots: of the folders.
    """

    def __init__(self, roots: ExperimentRoots | None = None) -> None:
        self._roots = roots or ExperimentRoots()

    def open(self, directory: str, *, debug: bool) -> FolderJournal | NoJournal:
        """Return a journal that writes an experiment's folder; a null journal if it cannot."""
        try:
            with self._roots.open(Path(directory)) as folder:
                if folder.is_folder(_DATA):
                    return FolderJournal(folder, debug=debug)
        except FileNotFoundError:
            return NoJournal()
        except OSError as error:
            get_logger().warning(
                "experiment folder not written", directory=directory, error=str(error)
            )
        return NoJournal()

    async def experiment_of(self, directory: Path) -> str | None:
        """Return the id in a folder's `events.log`; empty if damaged, None if it has no log."""

        def found() -> str | None:
            with self._roots.open(directory) as folder:
                return experiment_of(folder)

        try:
            return await asyncio.to_thread(found)
        except OSError:
            return None

    async def damage_of(self, directory: Path) -> str:
        """Return where a folder's `events.log` is damaged or why unreadable; empty: whole."""
        return await self._text(directory, damage_of)

    async def torn_end_of(self, directory: Path) -> str:
        """Return whether a folder's `events.log` ends in the middle of a record, as text."""
        return await self._text(directory, torn_end_of)

    async def _text(self, directory: Path, look: Callable[[SafeFolder], str]) -> str:
        """Return what ``look`` says about a folder, or why the file cannot be read."""

        def found() -> str:
            with self._roots.open(directory) as folder:
                return look(folder)

        try:
            return await asyncio.to_thread(found)
        except (OSError, ValueError) as error:
            return str(error)

    async def rewrite(self, directory: Path, records: Sequence[tuple[int, bytes]]) -> bool:
        """Replace a folder's `events.log` by records in one step; log a failure, return False."""

        def write() -> None:
            with self._roots.open(directory) as folder:
                folder.replace_file(EVENT_FILE, file_of(records))

        try:
            await asyncio.to_thread(write)
        except OSError as error:
            get_logger().warning(
                "event file not rewritten", directory=str(directory), error=str(error)
            )
            return False
        return True

    async def set_aside(self, directory: Path, reason: str) -> None:
        """Rename a folder's unusable `events.log`, or a file in the place of `db`; log it.

        A missing `db` is created. A failure is logged.
        """
        try:
            place = await asyncio.to_thread(self._move_aside, directory)
        except OSError as error:
            get_logger().error(
                "event file cannot be used",
                directory=str(directory),
                reason=reason,
                error=str(error),
            )
            return
        if place is not None:
            get_logger().error(
                "event file set aside, and written anew from the log",
                directory=str(directory),
                reason=reason,
                moved_to=place,
            )

    def _move_aside(self, directory: Path) -> str | None:
        """Rename an event file or what is in place of its folder; return the new name.

        Returns:
            Empty: there was no file. None: the experiment's folder is on another machine, or gone.
        """
        try:
            opened = self._roots.open(directory)
        except FileNotFoundError:
            return None
        with opened as folder:
            unusable = EVENT_FILE if folder.is_folder(_DATA) else _DATA
            place = ""
            if folder.status(unusable) is not None:
                place = f"{unusable}{DAMAGED}{time.time_ns()}"
                folder.rename(unusable, folder, place)
            folder.make_folder(_DATA).close()
            return place

    async def read(self, directory: Path) -> list[tuple[int, bytes]]:
        """Return (sequence, batch) of all whole records of `events.log`; raise if unreadable.

        Those behind damaged bytes are among them.
        """
        path = directory / EVENT_FILE

        def found() -> list[tuple[int, bytes]]:
            with self._roots.open(directory) as folder:
                return read_readable(folder)

        try:
            return await asyncio.to_thread(found)
        except FileNotFoundError as error:
            raise NotFoundError("experiment folder with an event log", str(path)) from error
        except (OSError, ValueError) as error:
            raise InvalidArgumentError(
                "experiment_directory",
                "must hold a readable db/events.log",
                str(directory),
                str(error),
            ) from error
