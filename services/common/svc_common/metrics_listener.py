"""HTTP endpoint `/metrics` of a process without a web server.

Access is that of all listeners: loopback may read, other machines need a token, and off loopback
connections are encrypted unless plain text is explicitly allowed. The server of `prometheus_client`
has no access control and runs in a thread.
"""

import asyncio
from typing import Final

from svc_common import environment
from svc_common.access.security import Guard
from svc_common.access.transport import is_loopback
from svc_common.environment import NNI_METRICS
from svc_common.errors import FailedPreconditionError, ServiceError
from svc_common.lifecycle import Service
from svc_common.telemetry.metrics import CONTENT_TYPE, Registry

_HEAD_LIMIT_BYTES: Final = 16 * 1024
_REQUEST_TIMEOUT_S: Final = 5.0
"""Longest wait for the head of a request."""
_STATUS: Final = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
}


class MetricsListener:
    """HTTP server of `/metrics`, for services without a web server; off loopback for tokens only.

    Args:
        registry: rendered on each request.
        guard: authenticator and transport.

    Attributes:
        port: port of the listener; 0: not started.
    """

    def __init__(self, registry: Registry, guard: Guard) -> None:
        self._registry = registry
        self._guard = guard
        self._server: asyncio.Server | None = None
        self._open_to_all = False
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen on an address, with TLS as configured, for scrapes of `/metrics`.

        Raises:
            FailedPreconditionError: the port is taken, or other machines could read plain text.
        """
        self._guard.check_listener(NNI_METRICS, host)
        self._open_to_all = is_loopback(host)
        try:
            self._server = await asyncio.start_server(
                self._serve,
                host,
                port,
                limit=_HEAD_LIMIT_BYTES,
                ssl=self._guard.transport.http_server_context(),
            )
        except OSError as error:
            raise FailedPreconditionError(
                f"cannot listen on {host}:{port} ({NNI_METRICS}): {error.strerror}"
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]

    async def aclose(self, grace_s: float = 0.0) -> None:
        """Close the listener's socket; may be called twice."""
        del grace_s
        if self._server is not None:
            server, self._server = self._server, None
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                status, body = self._answer(head, _address(writer))
                writer.write(_response(status, body))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client has left, or does not speak HTTP
        finally:
            writer.close()

    def _answer(self, head: bytes, address: str) -> tuple[int, str]:
        lines = head.decode("latin-1").split("\r\n")
        method, _, rest = lines[0].partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        if not rest:
            return 400, "this is no HTTP\n"
        if path != "/metrics":
            return 404, "only /metrics is here\n"
        if method != "GET":
            return 405, "only GET is answered\n"
        try:
            if not self._open_to_all:
                self._guard.authenticator.identify(address, _token(lines), "", "GET /metrics")
        except ServiceError as error:
            return 401, f"{error.message}\n"
        return 200, self._registry.render()


async def serve_metrics(service: Service, registry: Registry, guard: Guard) -> dict[str, str]:
    """Serve `/metrics` at `NNI_METRICS` until the service stops; return the address; unset: {}.

    Returns:
        The address as a field of readiness; empty if the variable is not set.

    Raises:
        ServiceError: see `open_metrics_listener`.
    """
    address = environment.text(NNI_METRICS, "")
    if not address:
        return {}
    listener = await open_metrics_listener(registry, guard, address)
    service.add_server(listener.aclose)
    return {"metrics": f"{address.rpartition(':')[0]}:{listener.port}"}


async def open_metrics_listener(registry: Registry, guard: Guard, address: str) -> MetricsListener:
    """Start and return a `/metrics` listener on `host:port`; raise if malformed or taken.

    Raises:
        InvalidArgumentError: the address is malformed.
        FailedPreconditionError: see `MetricsListener.start`.
    """
    host, port = environment.parse_address(NNI_METRICS, address)
    listener = MetricsListener(registry, guard)
    await listener.start(host.strip("[]"), port)
    return listener


def _token(lines: list[str]) -> str:
    for line in lines[1:]:
        name, _, value = line.partition(":")
        scheme, _, token = value.strip().partition(" ")
        if name.lower() == "authorization" and scheme.lower() == "bearer":
            return token.strip()
    return ""


def _address(writer: asyncio.StreamWriter) -> str:
    peer = writer.get_extra_info("peername")
    return str(peer[0]) if isinstance(peer, tuple) else ""


def _response(status: int, body: str) -> bytes:
    content = body.encode()
    kind = CONTENT_TYPE if status == 200 else "text/plain; charset=utf-8"  # noqa: PLR2004 - HTTP
    head = (
        f"HTTP/1.1 {status} {_STATUS[status]}\r\n"
        f"Content-Type: {kind}\r\n"
        f"Content-Length: {len(content)}\r\n"
        "Cache-Control: no-store\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode("ascii") + content
