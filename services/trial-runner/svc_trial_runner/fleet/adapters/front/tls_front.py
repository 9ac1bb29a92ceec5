"""TLS front: one listener of the installation, open while a pool uses it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from svc_common.clock import Clock
from svc_common.logs import get_logger
from svc_common.tasks import TaskOwner
from svc_trial_runner.enrolment import AUTHORITY_PROTOCOL
from svc_trial_runner.fleet.adapters.front.authority import (
    FrontCertificate,
    needs_renewal,
    open_certificate,
)
from svc_trial_runner.fleet.adapters.front.connection_limits import ConnectionLimits
from svc_trial_runner.fleet.adapters.front.front_address import (
    EVERYWHERE,
    bracketed,
    check_host,
    listen,
    reachable_host,
    with_host,
)
from svc_trial_runner.fleet.adapters.front.listener import FrontListener, Serve
from svc_trial_runner.fleet.ports import FrontEndpoint, PlatformError

RENEWAL_CHECK: Final = timedelta(hours=6)
"""Interval of the checks whether the certificate has to be replaced."""


@dataclass(frozen=True, slots=True)
class FrontSettings:
    """Folder, host and port of the TLS front."""

    folder: Path
    """Private folder of authority, certificate and port."""
    host: str = ""
    """Name or address by which other machines reach this one; empty: that of the default route."""
    port: int = 0
    """0: the port of the last start, at first the first free one."""
    published: bool = False
    """True in a container, whose engine publishes the port: it listens on all addresses, also if
    the host is loopback, by which programs of the server itself reach it."""


class TlsFront:
    """TLS reverse proxy to bus, manager and enrolment, open while a platform uses it.

    Args:
        settings: folder, host and port.
        routes: what serves a connection, by its ALPN protocol.
        limits: of connections.
        clock: for the validity of certificates.
    """

    def __init__(
        self,
        settings: FrontSettings,
        routes: Mapping[str, Serve],
        limits: ConnectionLimits,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._routes = dict(routes)
        self._limits = limits
        self._clock = clock
        self._users: set[str] = set()
        self._changing = asyncio.Lock()
        self._listener: FrontListener | None = None
        self._endpoint: FrontEndpoint | None = None
        self._changed = asyncio.Event()
        """Set, and replaced, when the endpoint changes."""
        self._certificate: FrontCertificate | None = None
        self._tasks = TaskOwner(_failed)

    @property
    def endpoint(self) -> FrontEndpoint | None:
        """Address and authority; None: the TLS front is closed."""
        return self._endpoint

    @property
    def open_for_pools(self) -> set[str]:
        """Pools that use the TLS front."""
        return {user.partition("/")[0] for user in self._users}

    @property
    def certificate(self) -> FrontCertificate | None:
        """Current certificate; None: the TLS front was never open."""
        return self._certificate

    async def wait_changed(self, known: FrontEndpoint | None) -> None:
        """Wait until the endpoint differs from a known one."""
        while self._endpoint == known:
            await self._changed.wait()

    def add_route(self, protocol: str, serve: Serve) -> None:
        """Register the service for connections of an ALPN protocol, from the next opening on."""
        self._routes[protocol] = serve

    def of_platform(self, pool: str, key: str, host: str = "") -> "PoolFront":
        """Return the TLS front of one platform of a pool; nothing is opened."""
        return PoolFront(self, f"{pool}/{key}", host)

    async def release(self, pool: str) -> None:
        """Remove all platforms of a pool from the users of the TLS front; close it if unused."""
        for user in [user for user in self._users if user.partition("/")[0] == pool]:
            await self.close_for(user)

    async def open_for(self, user: str, host: str = "") -> FrontEndpoint:
        """Register a user of the TLS front and open it if it is closed; return its address.

        Args:
            user: `<pool>/<key of a platform>`.
            host: by which the user's agents reach the front; empty: that of the settings.

        Raises:
            PlatformError: it cannot be opened, or the host is none.
        """
        check_host(host)
        async with self._changing:
            self._users.add(user)
            # An open front stays as it is: agents know its address.
            if self._endpoint is None:
                self._change(await self._open(host))
            assert self._endpoint is not None
            if not host:
                return self._endpoint
            return with_host(self._endpoint, host, published=self._settings.published)

    async def close_for(self, user: str) -> None:
        """Remove a user of the TLS front; close it after its last user."""
        async with self._changing:
            self._users.discard(user)
            if not self._users:
                await self._close()

    async def renew(self) -> None:
        """Replace the certificate if it expires soon; open connections stay.

        Raises:
            PlatformError: another one cannot be made.
        """
        known, listener, now = self._certificate, self._listener, self._clock.now()
        if known is None or listener is None or not needs_renewal(known, now):
            return
        renewed = await asyncio.to_thread(open_certificate, self._settings.folder, now)
        self._certificate = renewed
        listener.context = renewed.server_context([*self._routes, AUTHORITY_PROTOCOL])
        get_logger().info("certificate renewed", expires_at=renewed.expires_at.isoformat())

    async def aclose(self) -> None:
        """Close the TLS front; may be called twice."""
        async with self._changing:
            await self._close()
        await self._tasks.aclose()

    async def _open(self, fallback: str) -> FrontEndpoint:
        settings = self._settings
        certificate = await asyncio.to_thread(open_certificate, settings.folder, self._clock.now())
        routes = {**self._routes, AUTHORITY_PROTOCOL: self._send_authority}
        context = certificate.server_context(list(routes))
        host = reachable_host(settings.host, fallback)
        bound = EVERYWHERE if settings.published else host
        listening = await asyncio.to_thread(listen, bound, settings.port, settings.folder)
        port = listening.getsockname()[1]
        self._certificate = certificate
        self._listener = FrontListener(listening, context, routes, self._limits)
        self._tasks.start(self._renew_for_ever(), "renewal of the front's certificate")
        return FrontEndpoint(f"{bracketed(host)}:{port}", certificate.authority)

    async def _close(self) -> None:
        listener, self._listener = self._listener, None
        self._change(None)
        tasks, self._tasks = self._tasks, TaskOwner(_failed)
        await tasks.aclose()
        if listener is not None:
            await listener.aclose()
            get_logger().info("front closed")

    def _change(self, endpoint: FrontEndpoint | None) -> None:
        if endpoint is not None:
            get_logger().info("front opened", address=endpoint.address)
        self._endpoint = endpoint
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _renew_for_ever(self) -> None:
        while True:
            await self._clock.sleep(RENEWAL_CHECK.total_seconds())
            try:
                await self.renew()
            except PlatformError as error:
                get_logger().error("certificate not renewed", error=error.message)

    async def _send_authority(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str
    ) -> None:
        """Send the authority's certificate to a client, which knows its fingerprint."""
        del reader, address
        if self._certificate is not None:
            writer.write(self._certificate.authority.encode("ascii"))
            await writer.drain()


class PoolFront:
    """`Front` of one platform of a pool: opens the installation's TLS front for it.

    Args:
        front: of the installation.
        user: `<pool>/<key of a platform>`.
        host: by which its agents reach the front; empty: that of the installation.
    """

    def __init__(self, front: TlsFront, user: str, host: str = "") -> None:
        self._front = front
        self._user = user
        self._host = host

    async def open(self) -> FrontEndpoint:
        """Return the address of the TLS front, opened if it is not open."""
        return await self._front.open_for(self._user, self._host)


def _failed(name: str, error: BaseException) -> None:
    get_logger().error("task failed", task=name, exc_info=error)
