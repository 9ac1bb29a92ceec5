"""Port of the adapter to a Ray cluster, with the values that pass through it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from svc_trial_runner.fleet.adapters.bundles.worker_commands import CommandResult
from svc_trial_runner.fleet.adapters.ray_actors.demand import ClusterDemand
from svc_trial_runner.fleet.domain.agents import AgentPhase


@dataclass(frozen=True, slots=True)
class ActorPlan:
    """Plan of one agent's actor: name, resources, bundle, folder, settings, Ray's own options."""

    name: str
    """Of agent and actor."""
    request: Mapping[str, float]
    """Resources by Ray's names."""
    digest: str
    """Of the bundle."""
    holder: str
    """Name of the actor that has the bundle."""
    folder: str
    """Of NNI on the node."""
    settings: Mapping[str, bytes] = field(repr=False)
    """Content of the file of settings by the network that the agent is in; `""`: any other one."""
    runtime_env: Mapping[str, Any] = field(default_factory=dict)
    scheduling_strategy: str = ""
    placement_group: str = ""


@dataclass(frozen=True, slots=True)
class ActorState:
    """State of one actor as the cluster reports it: phase, host, reason."""

    phase: AgentPhase
    host: str = ""
    reason: str = ""


class RayCluster(Protocol):
    """Interface of a Ray cluster with named, detached actors in one namespace.

    Each method connects if there is no connection, and drops it after an error of the cluster: the
    next call connects anew. All raise `PlatformError` with Ray's words.
    """

    async def connect(self) -> None:
        """Connect; do nothing if there is a connection."""
        ...

    async def demand(self) -> ClusterDemand:
        """Return the nodes that are alive, and what the autoscaler reports."""
        ...

    async def run(
        self, arguments: Sequence[str], *, on_all_nodes: bool = False
    ) -> list[CommandResult]:
        """Run the worker's program on one node, or on all; return the results.

        Args:
            arguments: of the program, see `worker`.
            on_all_nodes: True: once on each node that is alive.
        """
        ...

    async def hold_bundle(self, name: str, bundle: Path) -> None:
        """Start the actor that holds a bundle for the nodes, unless it exists."""
        ...

    async def names(self) -> set[str]:
        """Return the names of all actors that have not ended."""
        ...

    async def create(self, plan: ActorPlan) -> None:
        """Create the actor of an agent, unless one of its name exists.

        Raises:
            ActorRefusedError: Ray does not take it.
        """
        ...

    async def states(self, names: Sequence[str]) -> dict[str, ActorState]:
        """Return the states of agents' actors; those that have ended are ENDED, with the reason."""
        ...

    async def end(self, names: Sequence[str], grace_s: float) -> None:
        """End agents with their trials, remove their folders, then their actors.

        Args:
            names: of actors; those that do not exist are left alone.
            grace_s: time between the request to end and the kill.
        """
        ...

    async def kill(self, names: Sequence[str]) -> None:
        """Kill actors of any kind; those that do not exist are left alone."""
        ...

    async def aclose(self) -> None:
        """Drop the connection; actors stay. May be called twice."""
        ...
