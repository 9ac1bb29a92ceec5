"""Ray cluster of one node without Ray: its actors are entries of a table, and no agent runs."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from svc_trial_runner.fleet.adapters.bundles.worker import MARKER
from svc_trial_runner.fleet.adapters.bundles.worker_commands import CommandResult, worker_program
from svc_trial_runner.fleet.adapters.ray_actors.agent_actor import run_program
from svc_trial_runner.fleet.adapters.ray_actors.cluster import ActorPlan, ActorState
from svc_trial_runner.fleet.adapters.ray_actors.demand import ClusterDemand, NodeResources
from svc_trial_runner.fleet.adapters.ray_actors.driver import ActorRefusedError
from svc_trial_runner.fleet.domain.agents import AgentPhase
from svc_trial_runner.fleet.ports import PlatformError


@cache
def _probe() -> CommandResult:
    """Return the facts about this machine, which is the node."""
    with tempfile.TemporaryDirectory() as folder:
        return CommandResult(*run_program(worker_program(), ["--folder", folder, "probe"]))


class InMemoryRay:
    """State of a cluster that several adapters share.

    Attributes:
        demand: what the cluster reports of its nodes.
        failure: raised by each call while it is set.
        plans: every plan that was created, in order.
    """

    def __init__(self) -> None:
        node = NodeResources("127.0.0.1", {"CPU": 4.0, "GPU": 1.0}, {})
        self.demand = ClusterDemand((node,))
        self.failure: PlatformError | None = None
        self.plans: list[ActorPlan] = []
        self.bundles: dict[str, bytes] = {}
        self.actors: dict[str, ActorState] = {}
        self.commands: list[Sequence[str]] = []

    def fits(self, plan: ActorPlan) -> bool:
        """Return whether a node has room for an actor."""
        return any(node.has_free(plan.request) for node in self.demand.nodes)


class InMemoryRayCluster:
    """`RayCluster` on an `InMemoryRay`."""

    def __init__(self, shared: InMemoryRay) -> None:
        self._shared = shared

    async def connect(self) -> None:
        self._raise_failure()

    async def demand(self) -> ClusterDemand:
        self._raise_failure()
        return self._shared.demand

    async def run(
        self, arguments: Sequence[str], *, on_all_nodes: bool = False
    ) -> list[CommandResult]:
        self._raise_failure()
        _ = on_all_nodes
        self._shared.commands.append(arguments)
        if "status" in arguments:
            return [CommandResult(f'{MARKER}{{"agents": []}}'.encode(), b"", 0)]
        return [await asyncio.to_thread(_probe)]

    async def hold_bundle(self, name: str, bundle: Path) -> None:
        self._raise_failure()
        self._shared.bundles.setdefault(name, bundle.read_bytes())

    async def names(self) -> set[str]:
        self._raise_failure()
        return {*self._shared.actors, *self._shared.bundles}

    async def create(self, plan: ActorPlan) -> None:
        self._raise_failure()
        if "refused" in plan.runtime_env:
            raise ActorRefusedError("runtime_env has an unknown field", permanent=True)
        self._shared.plans.append(plan)
        assert plan.holder in self._shared.bundles
        phase = AgentPhase.RUNNING if self._shared.fits(plan) else AgentPhase.PENDING
        self._shared.actors[plan.name] = ActorState(phase)

    async def states(self, names: Sequence[str]) -> dict[str, ActorState]:
        self._raise_failure()
        gone = ActorState(AgentPhase.ENDED, reason="its actor is gone")
        return {name: self._shared.actors.get(name, gone) for name in names}

    async def end(self, names: Sequence[str], grace_s: float) -> None:
        self._raise_failure()
        _ = grace_s
        await self.kill(names)

    async def kill(self, names: Sequence[str]) -> None:
        self._raise_failure()
        for name in names:
            self._shared.bundles.pop(name, None)
            self._shared.actors.pop(name, None)

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""

    def _raise_failure(self) -> None:
        if self._shared.failure is not None:
            raise self._shared.failure
