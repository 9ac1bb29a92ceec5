"""TLS front of an installation that has none: opening it always fails."""

import asyncio

from svc_trial_runner.fleet.adapters.front.listener import Serve
from svc_trial_runner.fleet.ports import FrontEndpoint, PlatformError


class NoFront:
    """`Front` and `FrontRegistry` of a front that cannot be opened."""

    def of_platform(self, pool: str, key: str, host: str = "") -> "NoFront":
        """Return this object, whatever the platform is."""
        del pool, key, host
        return self

    def add_route(self, protocol: str, serve: Serve) -> None:
        """Do nothing: there are no connections."""
        del protocol, serve

    async def release(self, pool: str) -> None:
        """Do nothing: no TLS front is open."""

    @property
    def endpoint(self) -> FrontEndpoint | None:
        """None: it is never open."""
        return None

    async def wait_changed(self, known: FrontEndpoint | None) -> None:
        """Wait for ever, unless an endpoint is known."""
        if known is None:
            await asyncio.Event().wait()

    async def open(self) -> FrontEndpoint:
        """Raise PlatformError: this installation has no TLS front."""
        raise PlatformError(
            "this installation has no TLS front for agents of other machines",
            "run `nnictl` on a machine with the local shape of NNI's services, or set "
            "NNI_AGENT_USERS as the compose file does",
            permanent=True,
        )
