"""`db/events.log`: the batches of an experiment's log in one file.

Layout: the magic line, then records of a header (stream sequence, length, CRC-32 of the payload;
big-endian) and the payload. What follows the last whole record is cut off when the file is opened
for writing: it is the rest of a write that a kill has cut in two.
"""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

MAGIC: Final = b"NNI events 1\n"
_HEADER: Final = struct.Struct(">QII")


def read_records(path: Path) -> Iterator[tuple[int, bytes]]:
    """Give (stream sequence, batch) of every whole record, in order.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no such file.
    """
    with path.open("rb") as file:
        for sequence, payload, _ in _records(file):
            yield sequence, payload


def _records(file: BinaryIO) -> Iterator[tuple[int, bytes, int]]:
    """Give (sequence, payload, end of the record in the file)."""
    if file.read(len(MAGIC)) != MAGIC:
        raise ValueError("not a log of events: it does not start with the magic line")
    end = len(MAGIC)
    while True:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return
        sequence, length, checksum = _HEADER.unpack(header)
        payload = file.read(length)
        if len(payload) < length or zlib.crc32(payload) != checksum:
            return
        end += _HEADER.size + length
        yield sequence, payload, end


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
                for sequence, _, record_end in _records(old):
                    self.last_sequence, end = sequence, record_end
            self._file = path.open("r+b", buffering=0)
            self._file.truncate(end)
            self._file.seek(end)
        else:
            self._file = path.open("wb", buffering=0)
            self._file.write(MAGIC)

    def append(self, sequence: int, payload: bytes) -> None:
        """Add a batch; it is written by the next `flush`."""
        self._buffer.append(_HEADER.pack(sequence, len(payload), zlib.crc32(payload)))
        self._buffer.append(payload)
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
