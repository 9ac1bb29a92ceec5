"""Event log of an experiment in one file, `db/events.log`; format: `event_log.file_format`.

Bytes behind the last whole record are cut off when the file is opened for writing: a kill has
interrupted their write.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from google.protobuf.message import DecodeError

from svc_common.safe_folders import SafeFolder
from svc_manager.converters.events import batch_from_bytes
from svc_manager.event_log.file_format import (
    MAGIC,
    damaged_bytes,
    growing,
    readable_records,
    record_of,
    whole_records,
)

EVENT_FILE: Final = "db/events.log"


def experiment_of(folder: SafeFolder) -> str | None:
    """Return the id in the first event of a folder's event log; empty: bad; None: no record.

    Returns:
        Empty: another file, or one that names no experiment. None: there is no log, or it has no
        whole record.

    Raises:
        OSError: it cannot be read.
    """
    try:
        with folder.read_file(EVENT_FILE) as file:
            _, payload, _ = next(whole_records(file))
            events = batch_from_bytes(payload).events
    except (FileNotFoundError, StopIteration):
        return None
    except (ValueError, DecodeError):
        return ""
    return events[0].experiment_created.experiment_id if events else ""


def damage_of(folder: SafeFolder) -> str:
    """Return a text that names the first damaged byte of a folder's event log; empty: whole.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not an event log.
    """
    with folder.read_file(EVENT_FILE) as file:
        begins_well = file.read(len(MAGIC)) == MAGIC
        file.seek(0)
        whole: list[tuple[int, bytes]] = []
        end = len(MAGIC)
        for sequence, _, end in whole_records(file):  # noqa: B007 - the last one counts
            whole.append((sequence, b""))
        count = len(whole)
        misplaced = count - len(growing(whole))
        damaged = damaged_bytes(file, end)
        file.seek(0)
        behind = len(readable_records(file)) - count if damaged else 0
    if damaged:
        return (
            f"{EVENT_FILE} is damaged at byte {end}: {count} records before are whole, {behind} "
            f"of those in the last {damaged} bytes can be read, and the others are lost"
        )
    if misplaced:
        return f"{EVENT_FILE} is damaged: {misplaced} of {count} records are out of order"
    return "" if begins_well else f"{EVENT_FILE} is damaged in its first {len(MAGIC)} bytes"


def torn_end_of(folder: SafeFolder) -> str:
    """Return a text if a folder's event log ends in the middle of a record; empty: it does not.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not an event log.
    """
    with folder.read_file(EVENT_FILE) as file:
        count, end = 0, len(MAGIC)
        for _, _, end in whole_records(file):  # noqa: B007 - the last one counts
            count += 1
        is_torn = file.seek(0, os.SEEK_END) > end and not damaged_bytes(file, end)
    if not is_torn:
        return ""
    return (
        f"{EVENT_FILE} ends in the middle of a record: {count} records before are whole, and that "
        "one and all that followed are lost"
    )


def read_records(path: Path, within: SafeFolder | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield (sequence, batch) of an event log's records up to the first damaged, each once.

    A manager that was suspended, and resumed after another had taken over, may have appended a
    record that the other one had written before.

    Args:
        path: the file.
        within: folder in which the path is a name; None: the path is trusted.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not an event log.
    """
    last = 0
    with _folder_of(path, within) as folder, folder.read_file(path.name) as file:
        for sequence, payload, _ in whole_records(file):
            if sequence > last:
                last = sequence
                yield sequence, payload


def read_readable(folder: SafeFolder) -> list[tuple[int, bytes]]:
    """Return (sequence, batch) of all whole records of a folder's event log, in order, each once.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not an event log.
    """
    with folder.read_file(EVENT_FILE) as file:
        return readable_records(file)


class EventFile:
    """Event log file, cut to its whole records and open for appending; buffered until `flush`.

    Args:
        path: the file; created if it is missing, else cut behind its last whole record.
        within: folder in which the path is a name; None: the path is trusted.

    Raises:
        OSError: it cannot be opened or cut.
        ValueError: it is not an event log.
    """

    def __init__(self, path: Path, within: SafeFolder | None = None) -> None:
        self.last_sequence = 0
        self.damaged_bytes = 0
        """Number of damaged bytes that were cut off; 0 also after an interrupted write."""
        self._buffer: list[bytes] = []
        self._rest = b""
        """Bytes whose write was interrupted; the file ends in the middle of a record."""
        with _folder_of(path, within) as folder:
            self._open(folder, path.name)

    def _open(self, folder: SafeFolder, name: str) -> None:
        status = folder.status(name)
        if status is not None and status.st_size >= len(MAGIC):
            end = len(MAGIC)
            with folder.read_file(name) as old:
                for sequence, _, record_end in whole_records(old):
                    self.last_sequence, end = max(sequence, self.last_sequence), record_end
                self.damaged_bytes = damaged_bytes(old, end)
            # Writes go to the end of the file, which another manager may have moved.
            self._file = folder.append_file(name)
            self._file.truncate(end)
        else:
            if folder.is_file(name):
                folder.remove(name)
            self._file = folder.append_file(name)
            self._file.write(MAGIC)

    def append(self, sequence: int, payload: bytes) -> None:
        """Buffer a batch for the next `flush`."""
        self._buffer.append(record_of(sequence, payload))
        self.last_sequence = sequence

    def flush(self) -> None:
        """Write the buffered batches to the event log; after a failure the next call resumes.

        Raises:
            OSError: the disk is full, or cannot be written; the next call goes on from there.
        """
        self._rest += b"".join(self._buffer)
        self._buffer.clear()
        while self._rest:
            self._rest = self._rest[self._file.write(self._rest) :]

    @property
    def pending_bytes(self) -> int:
        """Number of bytes that a failed `flush` has left to write."""
        return len(self._rest)

    def abandon(self) -> None:
        """Close the event log file and drop the batches that were not yet written."""
        self._buffer.clear()
        self._rest = b""
        self._file.close()

    def close(self) -> None:
        """Write the buffered batches to the event log, and close the file; may be called twice."""
        if not self._file.closed:
            self.flush()
            self._file.close()


def _folder_of(path: Path, within: SafeFolder | None) -> SafeFolder:
    """Open and return the parent folder of a path, below the trusted folder ``within`` if given."""
    if within is None:
        return SafeFolder.open(path.parent)
    return within.folder(path.parent.as_posix())
