"""Event log of an experiment in one file, `db/events.log`; format: `event_log.file_format`.

Bytes behind the last whole record are cut off when the file is opened for writing: a kill has
interrupted their write.
"""

from collections.abc import Iterator
from pathlib import Path

from svc_common.experiment_files import append_to
from svc_manager.event_log.file_format import MAGIC, record_of, whole_records


def read_records(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (stream sequence, batch) of every whole record, in order, each once.

    A manager that was suspended, and resumed after another had taken over, may have appended a
    record that the other one had written before.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not an event log.
    """
    last = 0
    with path.open("rb") as file:
        for sequence, payload, _ in whole_records(file):
            if sequence > last:
                last = sequence
                yield sequence, payload


class EventFile:
    """Event log file, open for appending.

    Args:
        path: the file; created if it is missing, else cut behind its last whole record.

    Raises:
        OSError: it cannot be opened or cut.
        ValueError: it is not an event log.
    """

    def __init__(self, path: Path) -> None:
        self.last_sequence = 0
        self._buffer: list[bytes] = []
        if path.exists() and path.stat().st_size >= len(MAGIC):
            end = len(MAGIC)
            with path.open("rb") as old:
                for sequence, _, record_end in whole_records(old):
                    self.last_sequence, end = max(sequence, self.last_sequence), record_end
            # Writes go to the end of the file, which another manager may have moved.
            self._file = append_to(path)
            self._file.truncate(end)
        else:
            path.unlink(missing_ok=True)
            self._file = append_to(path)
            self._file.write(MAGIC)

    def append(self, sequence: int, payload: bytes) -> None:
        """Buffer a batch for the next `flush`."""
        self._buffer.append(record_of(sequence, payload))
        self.last_sequence = sequence

    def flush(self) -> None:
        """Write the buffered batches.

        Raises:
            OSError: the disk is full, or the file is gone.
        """
        if self._buffer:
            data = b"".join(self._buffer)
            self._buffer.clear()
            while data:
                data = data[self._file.write(data) :]

    def close(self) -> None:
        """Write the buffered batches and close the file."""
        if not self._file.closed:
            self.flush()
            self._file.close()
