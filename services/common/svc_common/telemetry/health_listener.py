"""HTTP endpoints `/livez` and `/readyz` of a service, for the probes of containers and clusters.

The event loop of the service answers, so that an answer shows that it turns. A probe starts no
process and needs no secret, so the answer tells nothing but the state: no name, version or number.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from svc_common import environment
from svc_common.errors import FailedPreconditionError

_LINE_LIMIT_BYTES: Final = 2048
_REQUEST_TIMEOUT_S: Final = 2.0
"""Longest wait for a request: a probe sends it at once."""
_CONNECTIONS_LIMIT: Final = 16
"""Most connections at a time; further ones are closed."""
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}


class HealthListener:
    """HTTP listener for `/livez` (always 200) and `/readyz` (503 unless `takes_work`).

    Args:
        takes_work: returns whether the service is ready.

    Attributes:
        port: port of the listener; 0: not started.
    """

    def __init__(self, takes_work: Callable[[], bool]) -> None:
        self._takes_work = takes_work
        self._server: asyncio.Server | None = None
        self._connections = 0
        self.port = 0

    async def start(self, address: str) -> None:
        """Listen on `host:port` and set `port`; raise if it is malformed or taken.

        Args:
            address: `host:port`.

        Raises:
            InvalidArgumentError: the address is malformed.
            FailedPreconditionError: the port is taken.
        """
        host, port = environment.parse_address(environment.NNI_HEALTH, address)
        try:
            self._server = await asyncio.start_server(
                self._serve, host.strip("[]"), port, limit=_LINE_LIMIT_BYTES
            )
        except OSError as error:
            raise FailedPreconditionError(
                f"cannot listen on {address} ({environment.NNI_HEALTH}): {error.strerror}"
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Stop listening; may be called twice."""
        if self._server is not None:
            server, self._server = self._server, None
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            if self._connections > _CONNECTIONS_LIMIT:
                return
            async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                line = await reader.readline()
                while (await reader.readline()).strip():
                    pass  # header fields
            writer.write(self._answer(line))
        except (TimeoutError, ConnectionError, ValueError):
            return  # no request, or too long a line
        finally:
            self._connections -= 1
            with suppress(ConnectionError):
                writer.close()

    def _answer(self, line: bytes) -> bytes:
        words = line.split()
        code = self._code(words[0], words[1].partition(b"?")[0]) if len(words) > 1 else 400
        body = f"{_REASONS[code]}\n".encode()
        head = (
            f"HTTP/1.1 {code} {_REASONS[code]}\r\nContent-Type: text/plain\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        ).encode()
        return head if words[:1] == [b"HEAD"] else head + body

    def _code(self, method: bytes, path: bytes) -> int:
        if method not in {b"GET", b"HEAD"}:
            return 405
        if path == b"/livez":
            return 200
        if path == b"/readyz":
            return 200 if self._takes_work() else 503
        return 404
