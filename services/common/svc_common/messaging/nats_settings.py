"""How a process reaches the bus: addresses of its servers, credentials, encryption."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self
from urllib.parse import SplitResult, unquote, urlsplit

from svc_common.access.security import SecuritySettings
from svc_common.environment import NNI_NATS_URL
from svc_common.errors import InvalidArgumentError
from svc_common.socket_loop import ROUTED_SUFFIX

DEFAULT_PORT: Final = 4222
ALPN_PROTOCOL: Final = "nats"
"""Protocol by which a front that serves several ones knows a client of the bus."""
_SOCKET_URL: Final = f"nats://bus{ROUTED_SUFFIX}"


@dataclass(frozen=True, slots=True)
class Server:
    """Host, port and credentials of one NATS server."""

    host: str
    port: int
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class NatsSettings:
    """Settings of one NATS client: addresses, credentials, TLS, replicas, heartbeat."""

    url: str
    """`nats://host:port` (or `tls://`), or several of them separated by commas. User information
    is a token (`nats://token@host`) or user and password; it is used instead of those below."""
    token: str | None = field(default=None, repr=False)
    """None: the address holds the credentials, or the server wants none. Not used with `user`."""
    name: str = ""
    """How the server lists this client."""
    replicas: int = 1
    """Copies of each stream; 3 in a cluster."""
    tls: Callable[[], ssl.SSLContext] | None = None
    """Makes the context that encrypts one connection; None: no encryption."""
    tls_first: bool = False
    """Whether the server speaks TLS from the first byte on (`handshake_first`)."""
    tls_name: str = ""
    """Name in the server's certificate; empty: its host."""
    user: str = ""
    """User whose permissions confine this client; empty: the server knows tokens only. One token
    of a subject: answers to this user's requests go below it."""
    password: str = field(default="", repr=False)
    owns_streams: bool = True
    """Whether this client makes the streams, and consumers of pools; only the manager must."""
    owner: int | None = None
    """Number of the user that runs a bus on this machine, the only one that is talked to; None: not
    checked."""
    folder: Path | None = None
    """Folder of the data of a bus on this machine; None: it is on another one."""
    heartbeat_s: float = 20.0
    """Interval of the round trips that show that the server answers, and the limit of each."""
    socket: Callable[[], Path] | None = None
    """Finds the Unix socket of the next connection, or raises UnavailableError; None: TCP."""

    @classmethod
    def over_socket(
        cls, socket: Callable[[], Path], *, user: str, password: str, name: str
    ) -> Self:
        """Build the settings of an agent that reaches the bus through a forwarded Unix socket.

        Its event loop has to be a `SocketLoop`. The forward encrypts.
        """
        return cls(
            url=_SOCKET_URL,
            name=name,
            user=user,
            password=password,
            owns_streams=False,
            socket=socket,
        )

    @classmethod
    def confined(
        cls, url: str, security: SecuritySettings, *, token: str, name: str, replicas: int = 1
    ) -> Self:
        """Build settings of a service beside the manager: owns streams only on a bus without users.

        Where the bus knows no users, every process may make them, and does.
        """
        settings = cls.of(url, security, token=token, name=name, replicas=replicas)
        return replace(settings, owns_streams=not settings.user)

    @classmethod
    def of(
        cls, url: str, security: SecuritySettings, *, token: str, name: str, replicas: int = 1
    ) -> Self:
        """Build NATS settings from address and security settings; raise for remote plain text.

        Raises:
            FailedPreconditionError: the bus is another machine and would be called in plain text.
            InvalidArgumentError: a file of the settings cannot be used.
        """
        transport, login = security.transport, security.bus
        transport.check_url(NNI_NATS_URL, url)
        encrypted = transport.ca is not None or any(
            part.strip().startswith("tls:") for part in url.split(",")
        )
        if encrypted:
            transport.client_context()  # raises now if a file cannot be used
        return cls(
            url=url,
            token=token,
            name=name,
            replicas=replicas,
            tls=transport.client_context if encrypted else None,
            tls_first=login.tls_first,
            tls_name=transport.server_name,
            user=login.user,
            password=login.password,
            owner=login.owner,
            folder=login.folder,
        )

    def tls_context(self) -> ssl.SSLContext | None:
        """Return a new TLS context for one connection, with ALPN if TLS comes first; None: none."""
        context = self.tls and self.tls()
        if context is not None and self.tls_first:
            context.set_alpn_protocols([ALPN_PROTOCOL])
        return context

    def servers(self) -> list[Server]:
        """Parse the comma-separated address to servers; raise InvalidArgumentError if malformed.

        Raises:
            InvalidArgumentError: the text is not such an address.
        """
        return [self._server(urlsplit(part.strip())) for part in self.url.split(",")]

    def _server(self, url: SplitResult) -> Server:
        if url.scheme not in {"nats", "tls"} or not url.hostname:
            text = url.geturl().rpartition("@")[2]
            raise InvalidArgumentError("address of the bus", "must be nats://HOST:PORT", text)
        host, port = url.hostname, url.port or DEFAULT_PORT
        if url.username and url.password:
            return Server(host, port, unquote(url.username), unquote(url.password))
        if url.username:
            return Server(host, port, token=unquote(url.username))
        if self.user:
            return Server(host, port, self.user, self.password)
        return Server(host, port, token=self.token or "")
