"""Connections of a pool's agents to bus and manager, opened before agents are started."""

from collections.abc import Sequence

from svc_common.logs import get_logger
from svc_trial_runner.agent_settings import ConnectionSettings
from svc_trial_runner.fleet.adapters.slurm.agent_files import AgentFiles
from svc_trial_runner.fleet.adapters.slurm.commands import SlurmCommands
from svc_trial_runner.fleet.adapters.slurm.listings import ComputeNode, Partition
from svc_trial_runner.fleet.adapters.slurm.options import SlurmOptions
from svc_trial_runner.fleet.adapters.slurm.partition_limits import chosen_partition, nodes_of
from svc_trial_runner.fleet.adapters.slurm.reachability import LoginRelay, relayed, way_in
from svc_trial_runner.fleet.ports import AdapterContext, PlatformError


class AgentConnections:
    """Connection of agents to bus and manager: by loopback, TLS front or a login node's relay.

    The relay is used where Slurm's commands are on a login node, unless the configuration has a
    `nniManagerIp`, by which nodes reach this machine.

    Args:
        context: of the pool.
        options: of the section.
        slurm: names partitions and nodes.
        files: know the interpreter of the machine with Slurm's commands.
        login: the login node; None: Slurm's commands are called on this machine.
    """

    def __init__(
        self,
        context: AdapterContext,
        options: SlurmOptions,
        slurm: SlurmCommands,
        files: AgentFiles,
        login: LoginRelay | None,
    ) -> None:
        self._context = context
        self._options = options
        self._slurm = slurm
        self._files = files
        self._login = login if login is not None and not context.front_host else None
        self._known: ConnectionSettings | None = None

    async def open(self, partitions: Sequence[Partition], nodes: Sequence[ComputeNode]) -> None:
        """Choose how the partition's nodes connect; open TLS front and relay if needed.

        Raises:
            PlatformError: there is no way.
        """
        partition = chosen_partition(self._options, partitions)
        used = nodes if partition is None else nodes_of(partition, nodes)
        context = self._context
        facts = await self._files.facts()
        if self._login is not None:
            self._known = await relayed(
                context.endpoints, used, context.front, self._login, facts.interpreter
            )
        else:
            self._known = await way_in(
                context.endpoints,
                used,
                context.front,
                commands_are_here=self._slurm.are_here,
            )

    async def settings(self) -> ConnectionSettings:
        """Return the connection settings of an agent started now; open front or relay before.

        Raises:
            PlatformError: there is no way.
        """
        if self._known is None or self._has_moved(self._known):
            await self.open(await self._slurm.partitions(), await self._slurm.nodes())
        assert self._known is not None
        return self._known

    async def reopen_relay(self) -> None:
        """Open the relay for agents of an earlier process of the fleet; log if that fails."""
        if self._login is None or self._known is not None:
            return
        try:
            await self.settings()
        except PlatformError as error:
            get_logger().warning("relay not opened", pool=self._context.pool, error=str(error))

    def _has_moved(self, known: ConnectionSettings) -> bool:
        """Return whether the relay was opened again, after a cut, at another address."""
        address = "" if self._login is None else self._login.relay_address
        return address not in {"", known.manager}
