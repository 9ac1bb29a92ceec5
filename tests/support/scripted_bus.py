"""Scripted NATS server for tests: loses answers, skips messages, lets requests expire."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

NO_RESPONDERS = b"NATS/1.0 503\r\n\r\n"


def encode_headers(headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"NATS/1.0\r\n{lines}\r\n".encode()


def decode_headers(block: bytes) -> dict[str, str]:
    lines = (line.partition(": ") for line in block.decode().split("\r\n")[1:] if line)
    return {name: value for name, _, value in lines}


@dataclass(frozen=True)
class Published:
    """Message published by the client."""

    subject: str
    reply: str
    headers: bytes
    payload: bytes


@dataclass
class ScriptedBus:
    """Server for one client after the other; `on_publish` answers, `deliver` sends by subject."""

    on_publish: Callable[["ScriptedBus", Published], None]
    published: list[Published] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    """Control lines of the client in use."""
    line_arrived: asyncio.Event = field(default_factory=asyncio.Event)
    connections: int = 0
    """Number of clients that have connected so far."""
    _subscriptions: dict[int, str] = field(default_factory=dict)
    _writer: asyncio.StreamWriter | None = None
    _server: asyncio.Server | None = None
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self.disconnect()
        self._server.close()
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def answer(self, message: Published, value: object) -> None:
        """Answer a request with a JSON value."""
        self.deliver(message.reply, message.reply, payload=json.dumps(value).encode())

    def deliver(
        self, to: str, subject: str, reply: str = "", headers: bytes = b"", payload: bytes = b""
    ) -> None:
        """Send a message to the client's subscriptions to `to`."""
        assert self._writer is not None
        for sid, pattern in self._subscriptions.items():
            if re.fullmatch(re.escape(pattern).replace(r"\*", r"[^.]+"), to):
                back = f" {reply}" if reply else ""
                sizes = f"{len(headers)} {len(headers) + len(payload)}"
                line = (
                    f"HMSG {subject} {sid}{back} {sizes}"
                    if headers
                    else f"MSG {subject} {sid}{back} {len(payload)}"
                )
                self._writer.write(line.encode() + b"\r\n" + headers + payload + b"\r\n")

    def sid_of(self, pattern: str) -> int:
        """Return the id of the client's subscription to a pattern."""
        return next(sid for sid, found in self._subscriptions.items() if found == pattern)

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are, and let the client read them."""
        assert self._writer is not None
        self._writer.write(data)
        await self._writer.drain()
        await asyncio.sleep(0)

    def disconnect(self) -> None:
        """Close the connection to the client."""
        if self._writer is not None:
            self._writer.close()

    async def seen(self, start: str, count: int = 1) -> list[Published]:
        """Wait for `count` messages whose subject starts with `start`."""
        while True:
            found = [one for one in self.published if one.subject.startswith(start)]
            if len(found) >= count:
                return found
            self._arrived.clear()
            await self._arrived.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._subscriptions.clear()
        self.lines.clear()
        self.connections += 1
        self._writer = writer
        writer.write(b'INFO {"max_payload": 1048576, "headers": true}\r\n')
        try:
            while line := await reader.readline():
                self.lines.append(line)
                self.line_arrived.set()
                await self._handle(line.split(), reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the test went on without this connection
        finally:
            writer.close()

    async def _handle(
        self, words: list[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        match words[0]:
            case b"PING":
                writer.write(b"PONG\r\n")
            case b"SUB":
                self._subscriptions[int(words[-1])] = words[1].decode()
            case b"UNSUB":
                self._subscriptions.pop(int(words[1]), None)
            case b"PUB" | b"HPUB":
                with_headers = words[0] == b"HPUB"
                content = await reader.readexactly(int(words[-1]) + 2)
                size = int(words[-2]) if with_headers else 0
                has_reply = len(words) == (5 if with_headers else 4)
                message = Published(
                    words[1].decode(),
                    words[2].decode() if has_reply else "",
                    content[:size],
                    content[size:-2],
                )
                if message.subject.startswith("_INBOX."):
                    # Nothing subscribes to an inbox that is only published to.
                    self.deliver(message.reply, message.reply, headers=NO_RESPONDERS)
                    return
                self.published.append(message)
                self._arrived.set()
                self.on_publish(self, message)
            case _:
                pass  # CONNECT, PONG
