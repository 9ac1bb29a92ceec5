"""The manager's web servers: a base one for all experiments, and one per experiment with a port.

Implements `svc_manager.ports.Listeners`.
"""

from __future__ import annotations

import asyncio
import errno
import re
import socket
from dataclasses import dataclass
from typing import Final

from svc_common.access.security import Guard
from svc_common.access.transport import is_loopback
from svc_common.errors import InvalidArgumentError, PermissionDeniedError
from svc_manager.ports import PortTakenError
from svc_manager.web.dependencies import Installation
from svc_manager.web.listeners.endpoints import BODY_TIMEOUT_S, Listener
from svc_manager.web.listeners.http_listener import HEAD_TIMEOUT_S, HttpListener
from svc_manager.web.listeners.site import create_site
from svc_manager.web.security import AccessPolicy

LOOPBACK: Final = "127.0.0.1"
_PREFIX: Final = re.compile(r"[\w~-][\w.~-]*(?:/[\w~-][\w.~-]*)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Open:
    """The listener of one experiment."""

    port: int
    url_prefix: str
    server: HttpListener


class WebServer:
    """Opens and closes listeners; belongs to one event loop.

    Call order: `serve` once, then `open_listener` and `close_listener` as experiments come and
    go, `aclose` at the end. `urls` may be called at any time.

    Args:
        token: the installation's secret; whoever shows it may change things.
        host: address that all listeners bind; off loopback reading needs the token, too.
        allowed_hosts: names besides loopback ones under which clients may address it.
        guard: who else may call, and how listeners are encrypted; None: nobody, and not at all.
        head_timeout_s: how long a client may take for the head of a request, and for its half of
            a TLS handshake, in seconds.
        body_timeout_s: how long it may take for the body, in seconds.

    Raises:
        FailedPreconditionError: other machines could read what is said there.
        InvalidArgumentError: a file of the guard cannot be used.
    """

    def __init__(
        self,
        token: str,
        host: str = LOOPBACK,
        allowed_hosts: frozenset[str] = frozenset(),
        guard: Guard | None = None,
        *,
        head_timeout_s: float = HEAD_TIMEOUT_S,
        body_timeout_s: float = BODY_TIMEOUT_S,
    ) -> None:
        self._host = host
        self._head_timeout_s = head_timeout_s
        self._body_timeout_s = body_timeout_s
        guard = guard or Guard.of_token(token)
        guard.check_listener("NNI_MANAGER_HTTP", host)
        self._tls = guard.transport.http_server_context()
        self._policy = AccessPolicy(
            token=token,
            reading_needs_token=not is_loopback(host),
            allowed_hosts=allowed_hosts,
            authenticator=guard.authenticator,
            encrypted=self._tls is not None,
        )
        self._installation: Installation | None = None
        self._base: HttpListener | None = None
        self._by_experiment: dict[str, _Open] = {}
        self._closing: set[HttpListener] = set()

    @property
    def scheme(self) -> str:
        """`http`, or `https` where listeners are encrypted."""
        return "http" if self._tls is None else "https"

    async def serve(self, installation: Installation, port: int = 0) -> int:
        """Open the base listener and return its port.

        Args:
            installation: what all listeners work with.
            port: 0 = a free one.

        Raises:
            PortTakenError: the port is in use.
        """
        self._installation = installation
        self._base = await self._listen(port, "", "")
        return self._base.port

    async def open_listener(self, port: int, experiment_id: str, url_prefix: str) -> None:
        """Serve one experiment on a port of its own; see `svc_manager.ports.Listeners`."""
        held = self._by_experiment.get(experiment_id)
        if held and (held.port, held.url_prefix) == (port, url_prefix):
            return
        if url_prefix and not _PREFIX.fullmatch(url_prefix):
            raise InvalidArgumentError(
                "url_prefix", "must be a path of letters, digits and -._~", url_prefix[:80]
            )
        if held and held.port == port:  # only the prefix differs: the port must be free first
            await self.close_listener(experiment_id)
        server = await self._listen(port, experiment_id, url_prefix)
        await self.close_listener(experiment_id)
        self._by_experiment[experiment_id] = _Open(port, url_prefix, server)

    async def close_listener(self, experiment_id: str) -> None:
        """Stop serving an experiment on its own port; see `svc_manager.ports.Listeners`."""
        held = self._by_experiment.pop(experiment_id, None)
        if held is None:
            return
        held.server.close()
        self._closing = {server for server in self._closing if server.busy} | {held.server}
        assert self._installation is not None, "nothing is open before serve()"
        await self._installation.tensorboards.stop_all(experiment_id)

    def urls(self, port: int, url_prefix: str) -> list[str]:
        """Give the addresses under which a listener can be reached, loopback first."""
        path = f"/{url_prefix}/" if url_prefix else ""
        names = [LOOPBACK] if is_loopback(self._host) else [LOOPBACK, self._host]
        return [f"{self.scheme}://{name}:{port}{path}" for name in names]

    async def aclose(self, grace_s: float = 2.0) -> None:
        """Close all listeners and wait for the requests in flight.

        Args:
            grace_s: longest wait, in seconds; what lasts longer is cancelled.
        """
        for experiment_id in list(self._by_experiment):
            await self.close_listener(experiment_id)
        if self._base is not None:
            self._base.close()
            self._closing.add(self._base)
            self._base = None
        if self._installation is not None:
            await self._installation.tensorboards.stop_all()
        closing, self._closing = self._closing, set()
        await asyncio.gather(*(server.drain(grace_s) for server in closing))

    async def _listen(self, port: int, experiment_id: str, url_prefix: str) -> HttpListener:
        assert self._installation is not None, "serve() comes first"
        bound = await self._bind(port)
        stopped = asyncio.Event()

        async def until_stopped() -> None:
            await stopped.wait()

        site = create_site(
            Listener(
                installation=self._installation,
                policy=self._policy,
                until_stopped=until_stopped,
                experiment_id=experiment_id,
                body_timeout_s=self._body_timeout_s,
            ),
            url_prefix,
        )
        return await HttpListener.start(
            site, bound, stopped, self._tls, head_timeout_s=self._head_timeout_s
        )

    async def _bind(self, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        # With the protocol named, asyncio sends small answers at once (TCP_NODELAY); without it
        # each answer on a kept connection would wait 40 ms for the client's delayed ACK.
        bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        # Connections that are fading out must not keep a restarted manager from its port.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setblocking(False)  # noqa: FBT003 - its only way
        try:
            bound.bind((self._host, port))
            bound.listen()  # only now is it known that nobody else listens
        except OSError as error:
            bound.close()
            if error.errno == errno.EADDRINUSE:
                raise PortTakenError(port, await self._holder(port)) from error
            if error.errno == errno.EACCES:
                raise PermissionDeniedError(
                    f"port {port} needs more rights; choose one above 1023"
                ) from error
            raise
        return bound

    async def _holder(self, port: int) -> str:
        for experiment_id, held in self._by_experiment.items():
            if held.port == port:
                return f"experiment {experiment_id}"
        if self._base is not None and self._base.port == port:
            return "the manager itself"
        return await asyncio.to_thread(program_on_port, port)


def program_on_port(port: int) -> str:
    """Return e.g. `program nginx (pid 12)`; empty if the system does not tell.

    Reads the tables of sockets and of processes: some milliseconds, so call it in a thread.
    """
    import psutil

    try:
        found = [
            connection.pid
            for connection in psutil.net_connections(kind="tcp")
            if connection.status == psutil.CONN_LISTEN
            and connection.laddr
            and connection.laddr.port == port
        ]
        pid = next(filter(None, found), None)
        return f"program {psutil.Process(pid).name()} (pid {pid})" if pid else ""
    except psutil.Error:  # it has just ended, or belongs to somebody else
        return ""
