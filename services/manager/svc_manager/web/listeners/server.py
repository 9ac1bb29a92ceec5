"""The manager's HTTP listeners: the base listener, and one per experiment with a port.

Implements `svc_manager.ports.Listeners`.
"""

from __future__ import annotations

import asyncio
import errno
import re
import socket
from dataclasses import dataclass, replace
from typing import Final

from nni_wire.socket_owners import listening_socket
from svc_common.access.security import Guard
from svc_common.access.transport import is_loopback
from svc_common.errors import InvalidArgumentError, PermissionDeniedError
from svc_common.kept_listeners import KeptListeners
from svc_manager.ports import PortTakenError
from svc_manager.web.dependencies import WebDependencies
from svc_manager.web.listeners.connection_limits import ConnectionLimits, ConnectionQuota
from svc_manager.web.listeners.endpoints import BODY_TIMEOUT_S, EndpointContext
from svc_manager.web.listeners.http_listener import HEAD_TIMEOUT_S, HttpListener
from svc_manager.web.listeners.site import create_site
from svc_manager.web.page_access import ListenerId
from svc_manager.web.security import AccessPolicy

LOOPBACK: Final = "127.0.0.1"
_PREFIX: Final = re.compile(r"[\w~-][\w.~-]*(?:/[\w~-][\w.~-]*)*", re.ASCII)


_SO_COOKIE: Final = 57
"""Option of Linux: a number of the socket that no other socket gets before the next boot."""
_SO_COOKIE_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class _ExperimentListener:
    """Port, path prefix and server of one experiment's listener."""

    port: int
    url_prefix: str
    server: HttpListener
    bound: socket.socket
    """Socket of the server, which closes it."""


class WebServer:
    """Owner of the base HTTP server and of one more server per experiment with a port.

    Call order: `serve` once, then `open_listener` and `close_listener` as experiments come and
    go, `aclose` at the end. `urls` may be called at any time.

    Args:
        token: secret of the installation; grants every role.
        host: address that all listeners bind, one of IPv6 also in brackets; off loopback reading
            needs the token, too.
        allowed_hosts: accepted host names besides loopback names.
        guard: further credentials, and TLS; None: the token only, and plain HTTP.
        head_timeout_s: time limit for the head of a request, and for the client's part of a TLS
            handshake, in seconds.
        body_timeout_s: time limit for the body of a request, in seconds.
        quota: limits of connections; None: those of 1,024 descriptors.
        private: reading needs the token on loopback, too.
        kept: keeper of the sockets of experiments over restarts; None: they close with this
            process.

    Raises:
        FailedPreconditionError: traffic off loopback would not be encrypted.
        InvalidArgumentError: a file of the guard cannot be used.
    """

    def __init__(  # noqa: PLR0913 - all that differs between installations and tests
        self,
        token: str,
        host: str = LOOPBACK,
        allowed_hosts: frozenset[str] = frozenset(),
        guard: Guard | None = None,
        *,
        head_timeout_s: float = HEAD_TIMEOUT_S,
        body_timeout_s: float = BODY_TIMEOUT_S,
        quota: ConnectionQuota | None = None,
        private: bool = False,
        kept: KeptListeners | None = None,
    ) -> None:
        self._host = host.strip("[]")
        self._limits = ConnectionLimits(quota or ConnectionQuota.of_descriptors(1_024))
        self._head_timeout_s = head_timeout_s
        self._body_timeout_s = body_timeout_s
        guard = guard or Guard.of_token(token)
        guard.check_listener("NNI_MANAGER_HTTP", host)
        self._tls = guard.transport.http_server_context()
        self._policy = AccessPolicy(
            token=token,
            reading_needs_token=private or not is_loopback(host),
            private=private and is_loopback(host),
            allowed_hosts=allowed_hosts,
            authenticator=guard.authenticator,
            encrypted=self._tls is not None,
        )
        self._dependencies: WebDependencies | None = None
        self._base: HttpListener | None = None
        self._by_experiment: dict[str, _ExperimentListener] = {}
        self._closing: set[HttpListener] = set()
        self._kept = kept or KeptListeners()

    @property
    def scheme(self) -> str:
        """`https` with TLS, else `http`."""
        return "http" if self._tls is None else "https"

    async def serve(
        self, dependencies: WebDependencies, port: int = 0, bound: socket.socket | None = None
    ) -> int:
        """Start the base listener, which serves all experiments; return its port.

        Args:
            dependencies: dependencies of all listeners.
            port: 0 = a free port.
            bound: socket to use in place of a new one at the port, which the listener closes.

        Raises:
            PortTakenError: the port is in use.
        """
        self._dependencies = dependencies
        self._base = await self._listen(bound or await self._bind(port), "", "")
        return self._base.port

    async def open_listener(self, port: int, experiment_id: str, url_prefix: str) -> None:
        """Serve an experiment on its own port, then close its earlier one; no effect if open."""
        listener = self._by_experiment.get(experiment_id)
        if listener and (listener.port, listener.url_prefix) == (port, url_prefix):
            return
        if url_prefix and not _PREFIX.fullmatch(url_prefix):
            raise InvalidArgumentError(
                "url_prefix", "must be a path of letters, digits and -._~", url_prefix[:80]
            )
        if (
            listener and listener.port == port
        ):  # only the prefix differs: the port must be free first
            await self.close_listener(experiment_id)
        bound = self._kept.take(port) or await self._bind(port)
        server = await self._listen(bound, experiment_id, url_prefix)
        await self.close_listener(experiment_id)
        self._kept.keep(bound)
        self._by_experiment[experiment_id] = _ExperimentListener(port, url_prefix, server, bound)

    async def close_listener(self, experiment_id: str) -> None:
        """Close an experiment's listener, if any; end its streams, stop its TensorBoards."""
        listener = self._by_experiment.pop(experiment_id, None)
        if listener is None:
            return
        self._kept.drop(listener.bound)
        listener.server.close()
        self._closing = {server for server in self._closing if server.busy} | {listener.server}
        assert self._dependencies is not None, "nothing is open before serve()"
        await self._dependencies.tensorboards.stop_all(experiment_id)

    def free_ports(self, used: frozenset[int]) -> None:
        """Close sockets kept for an earlier process whose ports no open experiment uses.

        Args:
            used: ports of all open experiments.
        """
        self._kept.drop_others(used)

    def urls(self, port: int, url_prefix: str) -> list[str]:
        """Return the URLs of a listener by port and prefix: the loopback's, then the host's."""
        path = f"/{url_prefix}/" if url_prefix else ""
        own = f"[{self._host}]" if ":" in self._host else self._host
        if is_loopback(self._host):
            names = [LOOPBACK if own == self._host else own]
        else:
            names = [LOOPBACK, own]
        return [f"{self.scheme}://{name}:{port}{path}" for name in names]

    async def aclose(self, grace_s: float = 2.0) -> None:
        """Close all listeners and TensorBoards; cancel requests still running after ``grace_s``.

        Kept sockets of experiments go on listening in the supervisor: the next process takes them.
        """
        self._closing |= {listener.server for listener in self._by_experiment.values()}
        for listener in self._by_experiment.values():
            listener.server.close()
        self._by_experiment.clear()
        self._kept.close()
        if self._base is not None:
            self._base.close()
            self._closing.add(self._base)
            self._base = None
        if self._dependencies is not None:
            await self._dependencies.tensorboards.stop_all()
        closing, self._closing = self._closing, set()
        await asyncio.gather(*(server.drain(grace_s) for server in closing))

    async def _listen(
        self, bound: socket.socket, experiment_id: str, url_prefix: str
    ) -> HttpListener:
        assert self._dependencies is not None, "serve() comes first"
        stopped = asyncio.Event()

        async def until_stopped() -> None:
            await stopped.wait()

        listener = self._listener_id(bound, experiment_id)
        site = create_site(
            EndpointContext(
                dependencies=self._dependencies,
                policy=replace(self._policy, listener=listener),
                until_stopped=until_stopped,
                experiment_id=experiment_id,
                body_timeout_s=self._body_timeout_s,
                limits=self._limits,
            ),
            url_prefix,
        )
        return await HttpListener.start(
            site,
            bound,
            stopped,
            self._tls,
            head_timeout_s=self._head_timeout_s,
            limits=self._limits,
        )

    def _listener_id(self, bound: socket.socket, experiment_id: str) -> ListenerId:
        """Return a listener's id for cookies: port, experiment; on plain loopback also its socket.

        Where TLS proves who listens, a cookie is valid at every manager and after restarts.
        """
        port = int(bound.getsockname()[1])
        if self._tls is not None or not is_loopback(self._host):
            return ListenerId(port, experiment_id)
        opening = bound.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, _SO_COOKIE_BYTES)
        return ListenerId(port, experiment_id, opening.hex(), listening_socket(port))

    async def _bind(self, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        # With the protocol named, asyncio sets TCP_NODELAY; without it each small response on a
        # kept connection would wait 40 ms for the client's delayed ACK.
        bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        # Connections in TIME_WAIT must not keep a restarted manager from its port.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setblocking(False)  # noqa: FBT003 - its only way
        try:
            if self._host == "::":
                # All addresses are those of IPv4, too, whatever the system's default.
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            bound.bind((self._host, port))
            bound.listen()  # fails if another socket listens; bind alone does not
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
        for experiment_id, listener in self._by_experiment.items():
            if listener.port == port:
                return f"experiment {experiment_id}"
        if self._base is not None and self._base.port == port:
            return "the manager itself"
        return await asyncio.to_thread(program_on_port, port)


def program_on_port(port: int) -> str:
    """Find the process that listens on a port; return `program nginx (pid 12)`; empty: none.

    Reads the system's tables of sockets and processes: some milliseconds, so call it in a thread.
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
    except psutil.Error:  # the process has just ended, or belongs to another user
        return ""
