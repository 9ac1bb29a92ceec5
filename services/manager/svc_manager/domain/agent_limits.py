"""Limits of the agents of an experiment: numbers, idle time, time and cost of all of them."""

import math
from dataclasses import dataclass, replace
from typing import Any, Final

from nni_wire.pools import LOCAL_POOL, experiment_of_pool
from svc_common.errors import InvalidArgumentError

LIMIT_FIELDS: Final = {
    "minAgents": "min_agents",
    "maxAgents": "max_agents",
    "idleTime": "idle_time_ms",
    "maxAgentTime": "max_agent_time_ms",
    "maxCost": "max_cost",
    "costPerAgentHour": "cost_per_agent_hour",
}
"""Field of `AgentLimits`, by the name of the limit in JSON and in configurations."""


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """Limits of the agents of an experiment; as a change, None leaves a limit as it is."""

    min_agents: int | None = None
    """Agents that stay even if no trial waits, >= 0; None: 0."""
    max_agents: int | None = None
    """Most agents at once, >= 1; None: as many as the platforms have."""
    idle_time_ms: int | None = None
    """An agent without trials ends after this time; None: the default of the fleet."""
    max_agent_time_ms: int | None = None
    """Most time of all agents together, ended ones included; None: no limit."""
    max_cost: float | None = None
    """Most that this time may cost; None: no limit."""
    cost_per_agent_hour: float | None = None
    """Price of one agent for an hour; None: unknown."""
    removed: tuple[str, ...] = ()
    """Of a change: limits that become None, by the names of their JSON, such as `maxAgents`."""

    def changed(self, change: "AgentLimits") -> "AgentLimits":
        """Return a copy of these limits with a change's values; those that it removes are None."""
        new: dict[str, Any] = {
            field: value
            for name, field in LIMIT_FIELDS.items()
            if (value := getattr(change, field)) is not None or name in change.removed
        }
        return replace(self, **new)


NO_AGENT_LIMITS: Final = AgentLimits()
"""Of an experiment whose platforms give none; as a change, it changes nothing."""


def check_has_own_agents(pool: str) -> None:
    """Raise InvalidArgumentError unless the agents of a pool serve one experiment alone.

    Args:
        pool: of the experiment.

    Raises:
        InvalidArgumentError: agents of the installation run the trials.
    """
    if experiment_of_pool(pool) is not None:
        return
    remedy = f"change the pool: nnictl pool update {pool} FILE"
    if pool == LOCAL_POOL:
        remedy = "its trials run on the machine of NNI's services; limit its trialConcurrency"
    rule = "can be changed only for an experiment with agents of its own"
    raise InvalidArgumentError("agentLimits", rule, pool, remedy)


def check_removed(change: AgentLimits) -> None:
    """Raise InvalidArgumentError if a change removes an unknown limit, or one that it gives.

    Raises:
        InvalidArgumentError: a name breaks one of these rules.
    """
    for name in change.removed:
        if name not in LIMIT_FIELDS:
            rule = f"must have only {', '.join(LIMIT_FIELDS)}"
            raise InvalidArgumentError("remove", rule, name[:80])
        value = getattr(change, LIMIT_FIELDS[name])
        if value is not None:
            raise InvalidArgumentError(name, "must not have a value if it is removed", value)


def check_agent_limits(limits: AgentLimits) -> None:
    """Raise InvalidArgumentError if limits are out of range, or contradict each other.

    Args:
        limits: all limits, with a change applied.

    Raises:
        InvalidArgumentError: a limit breaks its rule.
    """
    for field, ms in (
        ("idleTime", limits.idle_time_ms),
        ("maxAgentTime", limits.max_agent_time_ms),
    ):
        if ms is not None and ms <= 0:
            raise InvalidArgumentError(field, "must be > 0", f"{ms} ms")
    for field, cost in (
        ("maxCost", limits.max_cost),
        ("costPerAgentHour", limits.cost_per_agent_hour),
    ):
        if cost is not None and not 0 < cost < math.inf:
            raise InvalidArgumentError(field, "must be a finite number > 0", cost)
    _check_agents(limits.min_agents, limits.max_agents)
    if limits.max_cost is not None and limits.cost_per_agent_hour is None:
        raise InvalidArgumentError("costPerAgentHour", "must be given with maxCost")


def _check_agents(least: int | None, most: int | None) -> None:
    if least is not None and least < 0:
        raise InvalidArgumentError("minAgents", "must be >= 0", least)
    if most is not None and most < 1:
        raise InvalidArgumentError("maxAgents", "must be >= 1", most)
    if least is not None and most is not None and most < least:
        raise InvalidArgumentError("maxAgents", f"must be >= minAgents, which is {least}", most)
