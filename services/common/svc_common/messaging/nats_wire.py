"""The NATS client protocol without I/O: bytes in, operations out, and the other way round.

Source: the protocol reference of NATS (client protocol, headers). Written here rather than taken
from nats-py because every message of every trial passes: a publish costs a third of its CPU and a
followed message a seventh (`tests/benchmarks/bench_bus.py`), no subscription needs a task, and
after a reconnection nothing is in doubt that the caller is not told of.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from svc_common.errors import UnavailableError

PING: Final = b"PING\r\n"
PONG: Final = b"PONG\r\n"
_EOL: Final = b"\r\n"
_HEADER_VERSION: Final = b"NATS/1.0"
_LINE_LIMIT_BYTES: Final = 1024 * 1024
"""Longest control line that is believed; INFO of a large cluster has some kB."""


_FORBIDDEN: Final = re.compile(
    r'permissions violation for (publish|subscription) to "([^"]+)"', re.IGNORECASE
)


class ProtocolError(UnavailableError):
    """The server said something that is not the protocol; the connection must be made anew."""


class Parser:
    """Cuts the stream of bytes from the server into operations.

    Args:
        on_message: called with sid, subject, reply, headers (empty if none) and payload.
        on_info: called with the object of an INFO line.
        on_ping: called for each PING.
        on_pong: called for each PONG.
        on_error: called with the text of an -ERR line.
    """

    def __init__(
        self,
        *,
        on_message: Callable[[int, str, str, bytes, bytes], None],
        on_info: Callable[[Mapping[str, object]], None],
        on_ping: Callable[[], None],
        on_pong: Callable[[], None],
        on_error: Callable[[str], None],
    ) -> None:
        self._on_message = on_message
        self._on_info = on_info
        self._on_ping = on_ping
        self._on_pong = on_pong
        self._on_error = on_error
        self._rest = b""
        self._chunks: list[bytes] = []
        self._missing = 0

    def feed(self, data: bytes) -> None:
        """Take bytes as they came; call back for each operation that is complete.

        Raises:
            ProtocolError: they cannot be the protocol.
        """
        if self._missing > len(data):
            # The middle of a large message: joined only once it is complete.
            self._chunks.append(data)
            self._missing -= len(data)
            return
        buffer = b"".join((self._rest, *self._chunks, data)) if self._rest else data
        self._chunks.clear()
        self._missing = 0
        position = 0
        while True:
            end = buffer.find(_EOL, position)
            if end < 0:
                if len(buffer) - position > _LINE_LIMIT_BYTES:
                    raise ProtocolError("the bus sent an endless line")
                break
            line = buffer[position:end]
            after = end + 2
            if line.startswith((b"MSG ", b"HMSG ")):
                following = self._message(buffer, line, after)
                if following < 0:
                    break
                position = following
            else:
                self._control(line)
                position = after
        self._rest = buffer[position:]

    def _message(self, buffer: bytes, line: bytes, start: int) -> int:
        """Handle one message; return where the next operation starts, -1 if it is incomplete."""
        parts = line.split()
        with_headers = line[0] == ord("H")
        try:
            size = int(parts[-1])
            header_size = int(parts[-2]) if with_headers else 0
            sid = int(parts[2])
            reply = parts[3].decode() if len(parts) == (6 if with_headers else 5) else ""
            subject = parts[1].decode()
        except (IndexError, ValueError) as error:
            raise ProtocolError(f"the bus sent a message that starts with {line[:80]!r}") from error
        end = start + size
        if len(buffer) < end + 2:
            self._missing = end + 2 - len(buffer)
            return -1
        middle = start + header_size
        self._on_message(sid, subject, reply, buffer[start:middle], buffer[middle:end])
        return end + 2

    def _control(self, line: bytes) -> None:
        name = line[:5].strip().upper()
        if name == b"PING":
            self._on_ping()
        elif name == b"PONG":
            self._on_pong()
        elif name == b"INFO":
            self._on_info(_json_object(line[5:]))
        elif name == b"-ERR":
            self._on_error(line[5:].strip().strip(b"'").decode(errors="replace"))
        elif name != b"+OK":
            raise ProtocolError(f"the bus sent {line[:80]!r}")


def connect(options: Mapping[str, object]) -> bytes:
    """Encode CONNECT."""
    return b"CONNECT " + json.dumps(options).encode() + _EOL


def subscribe(subject: str, sid: int) -> bytes:
    """Encode SUB."""
    return f"SUB {subject} {sid}\r\n".encode()


def unsubscribe(sid: int) -> bytes:
    """Encode UNSUB."""
    return f"UNSUB {sid}\r\n".encode()


def publish(subject: str, reply: str, headers: bytes, payload: bytes) -> bytes:
    """Encode PUB, or HPUB if there are headers (made by `encode_headers`)."""
    to = f"{subject} {reply}" if reply else subject
    if headers:
        size = len(headers)
        head = f"HPUB {to} {size} {size + len(payload)}\r\n".encode()
        return b"".join((head, headers, payload, _EOL))
    return b"".join((f"PUB {to} {len(payload)}\r\n".encode(), payload, _EOL))


def encode_headers(headers: Mapping[str, str]) -> bytes:
    """Encode a header block; names and values are ours and hold no line breaks."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return _HEADER_VERSION + _EOL + lines.encode() + _EOL


def decode_headers(block: bytes) -> dict[str, str]:
    """Decode a header block; a status line gives `Status` and `Description`."""
    if not block:
        return {}
    first, _, rest = block.partition(_EOL)
    headers: dict[str, str] = {}
    status = first[len(_HEADER_VERSION) :].strip()
    if status:
        code, _, description = status.partition(b" ")
        headers["Status"] = code.decode()
        headers["Description"] = description.strip().decode(errors="replace")
    for line in rest.split(_EOL):
        name, colon, value = line.partition(b":")
        if colon:
            headers[name.decode(errors="replace")] = value.strip().decode(errors="replace")
    return headers


@dataclass(frozen=True, slots=True)
class Forbidden:
    """What a server does not let a user do."""

    subject: str
    to_publish: bool
    """Whether it is about sending; else it is about listening."""


def forbidden(text: str) -> Forbidden | None:
    """Return what the text of an -ERR line forbids; None: it is about something else."""
    found = _FORBIDDEN.search(text)
    return found and Forbidden(found[2], found[1].lower() == "publish")


def status_of(block: bytes) -> str:
    """Give the status code of a header block; empty if it has none. Cheap."""
    if not block.startswith(b"NATS/1.0 "):
        return ""
    return block[9:12].decode(errors="replace")


def _json_object(text: bytes) -> Mapping[str, object]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ProtocolError(f"the bus sent an INFO of {text[:80]!r}") from error
    if not isinstance(value, dict):
        raise ProtocolError(f"the bus sent an INFO of {text[:80]!r}")
    return value
