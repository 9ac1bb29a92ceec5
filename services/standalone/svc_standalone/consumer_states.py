"""Check of nats-server's files with the read positions of its consumers.

The server writes them in place and does not sync them, so a cut of power may leave half of one. It
then refuses to create the consumer, or reads the file for ever. Without the file it delivers again
what was not acknowledged, which every reader of ours allows. A folder in place of a file keeps
the server from creating the stream or consumer, too.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

from svc_common.own_files import DAMAGED, place_for_file, set_aside

_FILES: Final = (
    *("jetstream/*/streams/*/meta.*", "jetstream/*/streams/*/msgs/*.*"),
    "jetstream/*/streams/*/obs/*/*.*",
)
"""Paths at which nats-server writes files: descriptions, checksums, blocks, states."""
_PATTERN: Final = "jetstream/*/streams/*/obs/*/o.dat"
_MAGIC: Final = 22
_VERSIONS: Final = (1, 2)
_HEADER_BYTES: Final = 2
_POSITIONS: Final = 4
"""Consumer and stream sequences of the last acknowledged and of the last delivered message."""
_LONGEST_VARINT: Final = 10


def set_damaged_states_aside(store: Path) -> None:
    """Rename and log damaged consumer state files, which nats-server could not read at its start.

    Folders in place of its files are renamed, too.

    Args:
        store: the folder that nats-server was given; it must not run.
    """
    for pattern in _FILES:
        for path in store.glob(pattern):
            if DAMAGED not in path.name:
                with suppress(OSError):  # the server says what is wrong with it
                    place_for_file(path)
    for path in store.glob(_PATTERN):
        try:
            data = path.read_bytes()
        except OSError:
            continue  # the server says what is wrong with it
        if not is_readable(data):
            set_aside(path, "it is no state of a consumer; messages are delivered again")


def is_readable(data: bytes) -> bool:
    """Return whether nats-server can read these bytes as a consumer's state; True if empty.

    Args:
        data: content of the file; an empty one is a new consumer.

    Examples:
        >>> is_readable(bytes([22, 2, 1, 1, 1, 1, 0, 0])), is_readable(bytes([22, 2, 1]))
        (True, False)
    """
    if not data:
        return True
    if len(data) < _HEADER_BYTES or data[0] != _MAGIC or data[1] not in _VERSIONS:
        return False
    try:
        numbers = _varints(data[_HEADER_BYTES:])
    except ValueError:
        return False
    if len(numbers) < _POSITIONS:
        return False
    pending = numbers[_POSITIONS] if len(numbers) > _POSITIONS else 0
    if pending == 0:
        return True
    # A time for all of them; then sequence, time and, since version 2, the consumer's sequence.
    return len(numbers) >= _POSITIONS + 2 + pending * (1 + data[1])


def _varints(data: bytes) -> list[int]:
    """Decode little-endian base-128 integers; raise ValueError if one is cut or too long.

    Raises:
        ValueError: the last one is incomplete, or one is longer than 64 bits.
    """
    found, value, length = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << (7 * length)
        length += 1
        if length > _LONGEST_VARINT:
            raise ValueError("a number is longer than 64 bits")
        if byte < 0x80:  # noqa: PLR2004 - the other bit says that the number goes on
            found.append(value)
            value, length = 0, 0
    if length:
        raise ValueError("the last number is incomplete")
    return found
