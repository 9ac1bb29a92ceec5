"""TLS fronts of tests, on loopback, and clients of them."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from svc_common.clock import Clock, SystemClock
from svc_trial_runner.enrolment import FRONT_NAME
from svc_trial_runner.fleet.adapters.front.connection_limits import ConnectionLimits
from svc_trial_runner.fleet.adapters.front.listener import Serve
from svc_trial_runner.fleet.adapters.front.tls_front import FrontSettings, TlsFront
from svc_trial_runner.fleet.ports import FrontEndpoint
from tests.support.ports import free_port

FEW = ConnectionLimits(connections=8, of_address=6, handshakes=4, handshakes_of_address=3)
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def tls_front(
    folder: Path,
    routes: Mapping[str, Serve],
    limits: ConnectionLimits = FEW,
    clock: Clock | None = None,
) -> AsyncIterator[TlsFront]:
    """Yield a closed front on loopback; it is closed at the end."""
    settings = FrontSettings(folder / "front", "127.0.0.1", free_port())
    front = TlsFront(settings, routes, limits, clock or SystemClock())
    try:
        yield front
    finally:
        await front.aclose()


def client_context(authority: str, protocols: Sequence[str]) -> ssl.SSLContext:
    """Return a context of clients that trust one authority only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=authority)
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


async def connect(endpoint: FrontEndpoint, *protocols: str, authority: str = "") -> Streams:
    """Connect to a front with its authority, or another one."""
    host, _, port = endpoint.address.rpartition(":")
    context = client_context(authority or endpoint.authority, protocols)
    return await asyncio.open_connection(host, int(port), ssl=context, server_hostname=FRONT_NAME)
