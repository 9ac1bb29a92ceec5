"""File format of an experiment's event log: `db/events.log`, and `events.log` of an archive.

Layout: the magic line, then records of a header (stream sequence, length, CRC-32 of the payload;
big-endian) and the payload.
"""

import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final

MAGIC: Final = b"NNI events 1\n"
_HEADER: Final = struct.Struct(">QII")
_PAYLOAD_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Larger payloads are damaged lengths: the bus takes messages of 8 MB."""


def file_of(records: Iterable[tuple[int, bytes]]) -> bytes:
    """Return the content of a file with these records."""
    return b"".join([MAGIC, *(record_of(sequence, payload) for sequence, payload in records)])


def damaged_bytes(file: BinaryIO, end: int) -> int:
    """Return how many bytes after a log file's last whole record are damaged; 0 for a torn write.

    Args:
        file: open file.
        end: end of its last whole record.

    Returns:
        0: there are none, or they begin a record whose write was interrupted, as by a kill.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(end)
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return 0
    length = _HEADER.unpack(header)[1]
    is_torn = length <= _PAYLOAD_LIMIT_BYTES and end + _HEADER.size + length > size
    return 0 if is_torn else size - end


def record_of(sequence: int, payload: bytes) -> bytes:
    """Return one record."""
    return _HEADER.pack(sequence, len(payload), zlib.crc32(payload)) + payload


def whole_records(file: BinaryIO) -> Iterator[tuple[int, bytes, int]]:
    """Yield (sequence, payload, end offset) of records up to the first damaged; raise if no log.

    Stops before the first torn or damaged record.

    Args:
        file: open at its beginning.

    Raises:
        ValueError: the file does not start with the magic line.
    """
    if file.read(len(MAGIC)) != MAGIC:
        raise ValueError("not an event log: it does not start with the magic line")
    end = len(MAGIC)
    while True:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return
        sequence, length, checksum = _HEADER.unpack(header)
        payload = file.read(length) if length <= _PAYLOAD_LIMIT_BYTES else b""
        if len(payload) < length or zlib.crc32(payload) != checksum:
            return
        end += _HEADER.size + length
        yield sequence, payload, end
