"""Needs of pools: demand, platforms and limits, as the manager publishes them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

SLOTS_OPTION: Final = "slots"
"""Option of every platform: trials at once of one agent; an integer >= 1. By default the
concurrency is divided by the machines of the platforms; where their number is unknown, it is 1."""
REUSE_OPTION: Final = "reuseMode"
"""Option of every platform: false lets each agent run one trial and end."""
JOINED_PLATFORM: Final = "joined"
"""Platform of agents that people start by hand; the fleet launches none there."""
IDLE_S: Final = 60.0
HOUR_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class PoolPlatform:
    """One platform of a pool: its name, options and the id of its secret values."""

    platform: str
    """`local`, `remote`, `slurm`, ..."""
    options: Mapping[str, object]
    """camelCase names, without secret values."""
    secrets_id: str = ""
    """Of the file of secret values; empty: it has none."""

    @property
    def slots(self) -> int | None:
        """Trials at once of one agent; None: not configured."""
        value = self.options.get(SLOTS_OPTION)
        return value if isinstance(value, int) and value >= 1 else None

    @property
    def has_own_slots(self) -> bool:
        """True if slots are configured, for all or a machine, or if people start the agents."""
        lists = [one for one in self.options.values() if isinstance(one, Sequence)]
        machines = [one for several in lists for one in several if isinstance(one, Mapping)]
        if self.by_hand:
            return True
        return self.slots is not None or any(SLOTS_OPTION in machine for machine in machines)

    @property
    def by_hand(self) -> bool:
        """True if people start and end its agents."""
        return self.platform == JOINED_PLATFORM

    @property
    def reuses(self) -> bool:
        """False if each agent runs one trial and ends."""
        return self.options.get(REUSE_OPTION) is not False


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Limits of a pool: least and most agents, idle time, time and cost of all agents."""

    min_agents: int = 0
    """Agents that stay even if no trial waits."""
    max_agents: int | None = None
    """None: as many as the platforms have."""
    idle_s: float = IDLE_S
    """An agent without trials ends after this time."""
    max_agent_s: float | None = None
    """Most time of all agents together, ended ones included; None: no limit."""
    max_cost: float | None = None
    """Most that this time may cost; None: no limit."""
    cost_per_agent_hour: float | None = None
    """None: unknown, so that no cost is limited."""

    @property
    def time_limit_s(self) -> float | None:
        """The smaller one of the limits of time and cost, as time; None: there is none."""
        limits = []
        if self.max_agent_s is not None:
            limits.append(self.max_agent_s)
        if self.max_cost is not None and self.cost_per_agent_hour:
            limits.append(self.max_cost / self.cost_per_agent_hour * HOUR_S)
        return min(limits, default=None)


@dataclass(frozen=True, slots=True)
class PoolNeed:
    """Demand of a pool: waiting and running trials, limits, and platforms for its agents."""

    pool: str
    waiting: int = 0
    """Attempts that no agent has started."""
    running: int = 0
    """Attempts that agents run."""
    concurrency: int = 1
    """Most trials at once that the experiments of the pool allow."""
    gpus_per_trial: int | None = None
    """None: the trials do not ask for GPUs."""
    platforms: tuple[PoolPlatform, ...] = ()
    """In the order of preference."""
    limits: PoolLimits = PoolLimits()
    closed: bool = False
    """True: no trial comes any more; agents end and the platforms are cleaned."""
    draining: bool = False
    """True: agents take no more trials and end, and none is launched."""
    log_sequence: int = 0
    """Of two needs of one pool the one with the larger sequence holds."""
    created_at_ns: int = 0
    """See `PoolDefinition.created_at_ns`; 0: it is the pool of an experiment."""

    @property
    def sections(self) -> dict[str, PoolPlatform]:
        """The platforms by key, in the order of preference.

        The key is the platform's name; that of a second platform of the same name ends in `-2`.
        """
        found: dict[str, PoolPlatform] = {}
        counts: dict[str, int] = {}
        for one in self.platforms:
            count = counts[one.platform] = counts.get(one.platform, 0) + 1
            found[one.platform if count == 1 else f"{one.platform}-{count}"] = one
        return found


def default_slots(concurrency: int, machines: int | None) -> int:
    """Return the slots of an agent without configured ones: concurrency shared by all agents.

    Args:
        concurrency: most trials at once of the pool.
        machines: number of agents that the platforms of the pool can have; None: unknown.
    """
    return 1 if not machines else max(1, math.ceil(concurrency / machines))
