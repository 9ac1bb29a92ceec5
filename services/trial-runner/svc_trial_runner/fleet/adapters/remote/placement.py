"""Decision which machine gets which ordered agent; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from svc_trial_runner.fleet.domain.agents import AgentName, AgentOrder, LaunchFailure


@dataclass(frozen=True, slots=True)
class MachineState:
    """Machine as placement sees it: limit and number of agents, or the error that excludes it."""

    limit: int | None
    """Agents that it may have at once; None: as many as are ordered."""
    agents: int
    """Agents that it has."""
    error: str = ""
    """Why it cannot have more now; empty: it can."""
    remedy: str = ""
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class Placement:
    """Machines of orders by index, and orders without a machine."""

    places: tuple[tuple[int, AgentOrder], ...]
    failures: tuple[LaunchFailure, ...]


def place(orders: Sequence[AgentOrder], machines: Sequence[MachineState]) -> Placement:
    """Place each order on the emptiest free machine; return failures for those without one.

    Args:
        orders: of agents that do not exist.
        machines: in the order of the list.
    """
    counts = [machine.agents for machine in machines]
    places: list[tuple[int, AgentOrder]] = []
    failures: list[LaunchFailure] = []
    for order in orders:
        free = [
            index
            for index, machine in enumerate(machines)
            if not machine.error and (machine.limit is None or counts[index] < machine.limit)
        ]
        if not free:
            failures.append(_failure(order.name, machines))
            continue
        index = min(free, key=lambda one: (counts[one], one))
        counts[index] += 1
        places.append((index, order))
    return Placement(tuple(places), tuple(failures))


def _failure(name: AgentName, machines: Sequence[MachineState]) -> LaunchFailure:
    refused = [machine for machine in machines if machine.error]
    if not refused:
        return LaunchFailure(
            name, f"all {len(machines)} machines of machineList have as many agents as they may"
        )
    return LaunchFailure(
        name,
        "; ".join(machine.error for machine in refused[:3]),
        refused[0].remedy,
        permanent=all(machine.permanent for machine in machines),
    )


def owners(
    found: Mapping[AgentName, Sequence[int]], recorded: Mapping[AgentName, int]
) -> dict[AgentName, int]:
    """Return each agent's machine index: the recorded one if it lists the agent, else the first.

    Args:
        found: indices of the machines that list an agent as theirs; several if two entries lead to
            one machine.
        recorded: index of the machine on which an agent was launched, as far as it is written down.
    """
    chosen = {}
    for name, indices in found.items():
        known = recorded.get(name)
        chosen[name] = known if known is not None and known in indices else indices[0]
    return chosen
