"""Runner of commands on a login node, whose SSH library is imported when it is used first."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from nni_wire.own_platforms import load_reference
from svc_trial_runner.fleet.adapters.bundles.worker_commands import CommandResult
from svc_trial_runner.fleet.adapters.remote.machines import Machine
from svc_trial_runner.fleet.ports import AdapterContext, PlatformError

if TYPE_CHECKING:
    from svc_trial_runner.fleet.adapters.slurm.login_node import LoginNode

_NODE: Final = "svc_trial_runner.fleet.adapters.slurm.login_node:LoginNode"
REQUIREMENT: Final = "nni-svc-trial-runner[remote]"
"""The library is an extra, and takes the event loop's thread too long to import."""


class LoginRunner:
    """`CommandRunner` of a login node; see `LoginNode`.

    Args:
        machine: the login.
        context: of the pool.
        on_change: called when the login node is lost or found.
    """

    def __init__(
        self, machine: Machine, context: AdapterContext, on_change: Callable[[], None]
    ) -> None:
        self._machine = machine
        self._context = context
        self._on_change = on_change
        self._loading = asyncio.Lock()
        self._node: LoginNode | None = None

    @property
    def is_here(self) -> bool:
        """False: the commands do not run on this machine."""
        return False

    @property
    def relay_address(self) -> str:
        """`host:port` by which compute nodes reach the relay; empty: none was opened."""
        return "" if self._node is None else self._node.relay_address

    async def connect(self) -> None:
        """Connect now, even after a permanent error such as a refused login.

        Raises:
            PlatformError: the extra is not installed, or the login node cannot be connected.
        """
        await (await self._loaded()).connect()

    async def run(
        self, arguments: Sequence[str], *, content: Iterable[bytes] = (), limit_s: float
    ) -> CommandResult:
        """Run a command on the login node; return its outcome; see `CommandRunner`."""
        node = await self._loaded()
        return await node.run(arguments, content=content, limit_s=limit_s)

    async def open_relay(self, python: str, front_port: int, peers: Iterable[str]) -> str:
        """Open the relay; return the address by which compute nodes reach it; see `LoginNode`.

        Raises:
            PlatformError: the extra is not installed, or the login node refuses.
        """
        return await (await self._loaded()).open_relay(python, front_port, peers)

    async def aclose(self) -> None:
        """Close the connection, and the relay with it; may be called twice."""
        if self._node is not None:
            await self._node.aclose()

    async def _loaded(self) -> "LoginNode":
        async with self._loading:
            if self._node is None:
                try:
                    node = await asyncio.to_thread(load_reference, _NODE)
                except ImportError as error:
                    raise PlatformError(
                        f"a login node needs a package that is not installed: {error}",
                        f"pip install '{REQUIREMENT}' where NNI's services are installed",
                        permanent=True,
                    ) from error
                self._node = node(self._machine, self._context, self._on_change)
            return self._node
