"""`db/events.log`: the batches of an experiment's log in one file, see `kept.event_records`.

What follows the last whole record is cut off when the file is opened for writing: it is the rest of
a write that a kill has cut in two.
"""

from collections.abc import Iterator
from pathlib import Path

from svc_common.experiment_files import append_to
from svc_manager.event_log.file_format import MAGIC, record_of, whole_records


def read_records(path: Path) -> Iterator[tuple[int, bytes]]:
    """Give (stream sequence, batch) of every whole record, in order, each once.

    A manager that was stopped, and continued after another had taken its place, may have added a
    record that the other one had written before.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no such file.
    """
    last = 0
    with path.open("rb") as file:
        for sequence, payload, _ in whole_records(file):
            if sequence > last:
                last = sequence
                yield sequence, payload


class EventFile:
    """The file, open for appending.

    Args:
        path: the file; made if it is missing, cut behind its last whole record if not.

    Raises:
        OSError: it cannot be opened or cut.
        ValueError: it is no such file.
    """

    def __init__(self, path: Path) -> None:
        self.last_sequence = 0
        self._buffer: list[bytes] = []
        if path.exists() and path.stat().st_size >= len(MAGIC):
            end = len(MAGIC)
            with path.open("rb") as old:
                for sequence, _, record_end in whole_records(old):
                    self.last_sequence, end = max(sequence, self.last_sequence), record_end
            # Always at the end of the file, wherever another manager has brought that.
            self._file = append_to(path)
            self._file.truncate(end)
        else:
            path.unlink(missing_ok=True)
            self._file = append_to(path)
            self._file.write(MAGIC)

    def append(self, sequence: int, payload: bytes) -> None:
        """Add a batch; it is written by the next `flush`."""
        self._buffer.append(record_of(sequence, payload))
        self.last_sequence = sequence

    def flush(self) -> None:
        """Write what was added, in one system call.

        Raises:
            OSError: the disk is full, or the file is gone.
        """
        if self._buffer:
            data = b"".join(self._buffer)
            self._buffer.clear()
            while data:
                data = data[self._file.write(data) :]

    def close(self) -> None:
        """Write what was added and close."""
        if not self._file.closed:
            self.flush()
            self._file.close()
