"""Child process of the fleet: opens one adapter and serves its methods to the fleet.

It ends with the fleet, by the parent-death signal and by the end of the socket. The first call is
`open`, with the context of the adapter; the adapter's requests for bundles and for the front are
calls in the other direction.
"""

import asyncio
import ctypes
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from svc_common import environment
from svc_common.inspection import forbid_inspection
from svc_common.logs import configure
from svc_trial_runner.fleet.adapters.isolated.messages import (
    read_context,
    read_endpoint,
    read_names,
    read_orders,
    write_agents,
    write_failures,
    write_leftovers,
    write_problems,
)
from svc_trial_runner.fleet.adapters.isolated.peer import Peer
from svc_trial_runner.fleet.ports import (
    AdapterFactory,
    FrontEndpoint,
    PlatformAdapter,
    PlatformCleaner,
    PlatformError,
)

LoadPlatform = Callable[[str], AdapterFactory]
"""Imports the factory of a platform by its name."""
_PR_SET_PDEATHSIG: Final = 1


class FleetServices:
    """`BundleStore` and `Front` of the child process, which forward calls to the fleet."""

    def __init__(self) -> None:
        self._peer: Peer | None = None

    def connect(self, peer: Peer) -> None:
        """Set the connection to the fleet."""
        self._peer = peer

    async def bundle(self, python: tuple[int, int], platform_tag: str) -> Path:
        """Return a bundle that the fleet has packed; see `BundleStore`."""
        params = {"python": list(python), "platform_tag": platform_tag}
        return Path(await self._call("bundle", params))

    async def open(self) -> FrontEndpoint:
        """Return the address of the fleet's TLS front; see `Front`."""
        return read_endpoint(await self._call("front"))

    async def _call(self, method: str, params: object = None) -> Any:  # noqa: ANN401 - JSON
        assert self._peer is not None
        return await self._peer.call(method, params)


class AdapterServer:
    """Server of one adapter's methods, called by name with JSON; `open` makes the adapter first.

    Args:
        load: imports the factory of the platform.
        services: of the fleet, for the adapter's context.
    """

    def __init__(self, load: LoadPlatform, services: FleetServices) -> None:
        self._load = load
        self._services = services
        self._adapter: PlatformAdapter | None = None

    async def handle(self, method: str, params: Any) -> Any:  # noqa: ANN401 - JSON
        """Call a method of the adapter by name, `open` first; return its result as JSON.

        Raises:
            PlatformError: the method has failed, or does not exist.
        """
        if method == "open":
            factory = await asyncio.to_thread(self._load, params["platform"])
            self._adapter = factory(read_context(params, self._services, self._services))
            return None
        if self._adapter is None:
            raise PlatformError("the adapter is not open")
        return await _call(self._adapter, method, params)

    async def aclose(self) -> None:
        """Close the adapter, if `open` has made one; may be called twice."""
        if self._adapter is not None:
            await self._adapter.aclose()


async def _call(adapter: PlatformAdapter, method: str, params: Any) -> Any:  # noqa: ANN401 - JSON
    match method:
        case "check":
            return write_problems(await adapter.check())
        case "prepare":
            return await adapter.prepare()
        case "capacity":
            return await adapter.capacity()
        case "launch":
            return write_failures(await adapter.launch(read_orders(params)))
        case "agents":
            return write_agents(await adapter.agents())
        case "terminate":
            return await adapter.terminate(read_names(params))
        case "clean":
            return await adapter.clean()
        case "wait_changed":
            return await adapter.wait_changed()
        case "aclose":
            return await adapter.aclose()
        case _:
            return await _call_cleaner(adapter, method)


async def _call_cleaner(adapter: PlatformAdapter, method: str) -> Any:  # noqa: ANN401 - JSON
    """Call an optional cleaning method of an adapter; raise PlatformError if it has none."""
    if isinstance(adapter, PlatformCleaner):
        match method:
            case "leftovers":
                return write_leftovers(await adapter.leftovers())
            case "clean_rest":
                return await adapter.clean_rest()
            case _:
                pass
    raise PlatformError(f"the adapter has no method {method[:40]!r}")


async def serve(end: socket.socket, load: LoadPlatform) -> None:
    """Serve one adapter until the fleet closes its end of the socket."""
    services = FleetServices()
    server = AdapterServer(load, services)
    peer = await Peer.open(end, server.handle)
    services.connect(peer)
    await peer.run()
    await peer.aclose()
    await server.aclose()


def run_child(descriptor: int, load: LoadPlatform) -> None:
    """Serve one adapter on an inherited socket; return when the fleet has closed its end.

    Args:
        descriptor: of the socket.
        load: imports the factory of the platform.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # If the fleet has ended before that call, the socket is at its end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    forbid_inspection()
    configure("fleet", environment.text(environment.NNI_LOG_LEVEL, "info"))
    end = socket.socket(fileno=descriptor)
    end.set_inheritable(False)
    asyncio.run(serve(end, load))
