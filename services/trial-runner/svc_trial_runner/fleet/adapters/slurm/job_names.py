"""Names of Slurm's jobs: one agent, or an array of them, by number.

The job of one agent has its name. An array has the name of the agent with the lowest number and
an ending; the index of a task is the distance to that number, since indices have a small limit.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from svc_trial_runner.fleet.domain.agents import AgentName, AgentOrder, parse_agent_name

ARRAY_ENDING: Final = ".array"

_TASK: Final = re.compile(r"\d+_(\d+)\Z")


@dataclass(frozen=True, slots=True)
class JobOrder:
    """Orders of agents that are submitted as one job; several are an array."""

    orders: tuple[AgentOrder, ...]

    @property
    def job_name(self) -> str:
        """Name of the job."""
        first = str(self.orders[0].name)
        return first if len(self.orders) == 1 else first + ARRAY_ENDING

    @property
    def indices(self) -> list[int]:
        """Indices of the tasks of the array, in the order of `orders`; empty: it is no array."""
        if len(self.orders) == 1:
            return []
        base = self.orders[0].name.number
        return [order.name.number - base for order in self.orders]


def group_orders(orders: Sequence[AgentOrder], index_limit: int) -> list[JobOrder]:
    """Return the jobs for some orders: those that ask for the same become one array.

    Args:
        orders: of agents of one pool.
        index_limit: largest index of a task; 0: no arrays.
    """
    groups: list[list[AgentOrder]] = []
    for order in sorted(orders, key=lambda one: (_resources(one), one.name.number)):
        group = groups[-1] if groups else None
        if (
            group is not None
            and _resources(group[0]) == _resources(order)
            and order.name.number - group[0].name.number <= index_limit
        ):
            group.append(order)
        else:
            groups.append([order])
    return [JobOrder(tuple(group)) for group in groups]


def _resources(order: AgentOrder) -> tuple[int, int]:
    """Return slots and GPUs of an agent's job."""
    return order.slots, order.slots * (order.gpus_per_trial or 0)


def agent_of_job(job_id: str, job_name: str) -> AgentName | None:
    """Return the agent that a job names, its number plus the index for an array's task; else None.

    Args:
        job_id: `12`, or `12_3` for a task of an array.
        job_name: name of the job.
    """
    name = parse_agent_name(job_name.removesuffix(ARRAY_ENDING))
    if name is None or not job_name.endswith(ARRAY_ENDING):
        return name
    task = _TASK.match(job_id)
    if task is None:
        return None
    # Parsed again: with a larger number the name may be too long for an agent.
    return parse_agent_name(f"{str(name).rpartition('-')[0]}-{name.number + int(task[1])}")
