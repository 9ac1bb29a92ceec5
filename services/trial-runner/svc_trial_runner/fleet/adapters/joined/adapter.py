"""Platform `joined`: agents that people have started by `nnictl runner join` on any machine.

The fleet starts none of them. It ends one by revoking its credentials: the agent, which is ordered
to drain before, ends itself within seconds when the bus refuses it.
"""

import asyncio
from collections.abc import Iterable, Sequence

from svc_trial_runner.fleet.adapters.joined.machines import MachineFile
from svc_trial_runner.fleet.domain.agents import (
    AgentName,
    AgentOrder,
    AgentPhase,
    LaunchFailure,
    PlatformAgent,
    PlatformProblem,
)
from svc_trial_runner.fleet.ports import AdapterContext


class JoinedAdapter:
    """`PlatformAdapter` of agents that people start by hand: lists and ends them, launches none.

    Args:
        context: of the pool.
    """

    def __init__(self, context: AdapterContext) -> None:
        self._context = context
        self._machines = MachineFile(context.folder)

    async def check(self) -> list[PlatformProblem]:
        """Return no problem: there is nothing to configure."""
        return []

    async def prepare(self) -> None:
        """Open the TLS front, through which the agents connect."""
        await self._context.front.open()

    async def capacity(self) -> int | None:
        """Return the number of present agents: no more can be launched."""
        return len(await self.agents())

    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        """Return a failure for each order: agents enrol themselves."""
        return [
            LaunchFailure(
                order.name,
                "agents join this pool by hand",
                "run `nnictl runner invite`",
                permanent=True,
            )
            for order in orders
        ]

    async def agents(self) -> list[PlatformAgent]:
        """Return enrolled machines not marked as ended, as running agents; none is contacted."""
        machines = await asyncio.to_thread(self._machines.read)
        return [
            PlatformAgent(
                AgentName(self._context.installation, self._context.pool, one.number),
                AgentPhase.RUNNING,
                one.host_name,
                slots=one.slots,
            )
            for one in machines
            if not one.ended
        ]

    async def terminate(self, names: Sequence[AgentName]) -> None:
        """Mark agents as ended; their credentials are revoked next."""
        await self._end(name.number for name in names)

    async def clean(self) -> None:
        """Mark all agents as ended."""
        await self._end(agent.name.number for agent in await self.agents())

    async def wait_changed(self) -> None:
        """Wait for ever: an enrolment reaches the pool as an event."""
        await asyncio.Event().wait()

    async def aclose(self) -> None:
        """Do nothing: the TLS front stays open for the agents."""

    async def _end(self, numbers: Iterable[int]) -> None:
        await asyncio.to_thread(self._machines.end, list(numbers))
