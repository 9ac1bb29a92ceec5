"""Login node of a cluster, reached over SSH: runs Slurm's commands, and has the relay of agents.

The relay is a program on the login node that passes connections of compute nodes on to the TLS
front of this machine, through the SSH connection: no port of this machine has to be open. TLS is
between agent and front; the relay sees encrypted bytes.
"""

import asyncio
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from svc_common import environment
from svc_trial_runner.fleet.adapters.bundles.worker_commands import CommandResult
from svc_trial_runner.fleet.adapters.front.front_address import bracketed
from svc_trial_runner.fleet.adapters.remote.connections import open_connection
from svc_trial_runner.fleet.adapters.remote.host_keys import ACCEPTED_HOSTS
from svc_trial_runner.fleet.adapters.remote.links import MachineLink
from svc_trial_runner.fleet.adapters.remote.machines import Machine
from svc_trial_runner.fleet.adapters.remote.sessions import Session
from svc_trial_runner.fleet.adapters.stored_port import read_port, write_port
from svc_trial_runner.fleet.ports import AdapterContext

PORT_FILE: Final = "relay"
"""File of a pool's folder with the port of its relay: agents know it."""
_LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class _RelayOrder:
    """Arguments of the relay at each connection: interpreter, port of the TLS front, peers."""

    python: str
    front_port: int
    peers: tuple[str, ...]


class LoginNode:
    """`CommandRunner` of a login node; connects at the first command, and again after a cut.

    Args:
        machine: the login.
        context: of the pool.
        on_change: called when the login node is lost or found.
        accepted_hosts_file: file of host keys that `accept-new` accepted; None: the installation's.
        config_files: SSH configurations; None: `~/.ssh/config`.
    """

    def __init__(
        self,
        machine: Machine,
        context: AdapterContext,
        on_change: Callable[[], None],
        accepted_hosts_file: Path | None = None,
        config_files: Sequence[Path] | None = None,
    ) -> None:
        self._machine = machine
        self._accepted_hosts_file = accepted_hosts_file or environment.home() / ACCEPTED_HOSTS
        self._config_files = config_files
        self._port_file = context.folder / PORT_FILE
        self._link = MachineLink(machine, self._open_session, context.endpoints, on_change)
        self._order: _RelayOrder | None = None
        self._relay_address = ""

    @property
    def is_here(self) -> bool:
        """False: the commands do not run on this machine."""
        return False

    @property
    def relay_address(self) -> str:
        """`host:port` by which compute nodes reach the relay; empty: none was opened."""
        return self._relay_address

    async def connect(self) -> None:
        """Connect now, even after a permanent error such as a refused login.

        Raises:
            MachineError: it cannot be connected.
        """
        await self._link.session(retry=True)

    async def run(
        self, arguments: Sequence[str], *, content: Iterable[bytes] = (), limit_s: float
    ) -> CommandResult:
        """Run a command on the login node; return its outcome; see `CommandRunner`."""
        session = await self._link.session()
        return await session.run(shlex.join(arguments), content, limit_s)

    async def open_relay(self, python: str, front_port: int, peers: Iterable[str]) -> str:
        """Open the relay unless it is open; return the address by which compute nodes reach it.

        It is opened again, at the same port if that is free, whenever the connection is.

        Args:
            python: interpreter of the login node.
            front_port: port of this machine's loopback at which the TLS front listens.
            peers: names or addresses of compute nodes.

        Raises:
            MachineError: the login node cannot be connected, or refuses.
        """
        session = await self._link.session(retry=True)
        order = _RelayOrder(python, front_port, tuple(peers))
        if self._order is None or order.front_port != self._order.front_port:
            await self._open(session, order)
            self._order = order
        return self._relay_address

    async def aclose(self) -> None:
        """Close the connection, and the relay with it; may be called twice."""
        await self._link.aclose()

    async def _open_session(self, machine: Machine, on_end: Callable[[], None]) -> Session:
        connection = await open_connection(machine, self._accepted_hosts_file, self._config_files)
        session = Session(machine, connection, "", on_end)
        if self._order is not None:
            try:
                await self._open(session, self._order)
            except BaseException:
                await session.aclose()
                raise
        return session

    async def _open(self, session: Session, order: _RelayOrder) -> None:
        wanted = await asyncio.to_thread(read_port, self._port_file)
        target = (_LOOPBACK, order.front_port)
        address, port = await session.open_relay(order.python, target, wanted, order.peers)
        if port != wanted:
            await asyncio.to_thread(write_port, self._port_file, port)
        self._relay_address = f"{bracketed(address or self._machine.host)}:{port}"
