"""Limits of the agents of an experiment, as a change of a running one."""

from __future__ import annotations

import difflib
from typing import Any

from pydantic.alias_generators import to_camel

from nni.experiment.config.base import ConfigModel, Count, DurationText, PositiveInteger
from nni.experiment.config.training_service_base import Positive
from nni.experiment.errors import ConfigError, Problem


class AgentLimits(ConfigModel):
    """Change of the limits of an experiment's agents; a limit that is not given stays.

    They hold for all platforms of the experiment together. In its configuration the sections of
    the platforms give them.

    Examples:
        >>> AgentLimits(max_agents=8, max_agent_time="50h").max_agent_time
        '50h'
    """

    min_agents: Count | None = None
    """Agents that stay even if no trial waits."""
    max_agents: PositiveInteger | None = None
    """Most agents at once."""
    idle_time: DurationText | None = None
    """Time after which an agent without trials ends, such as `10m`."""
    max_agent_time: DurationText | None = None
    """Time of all agents together, from the start of the experiment, such as `50h`."""
    max_cost: Positive | None = None
    """Most that this time may cost."""
    cost_per_agent_hour: Positive | None = None
    """Price of one agent for an hour, in the currency of `max_cost`."""
    remove: list[str] | None = None
    """Limits that no longer hold, such as `["maxAgents"]`."""


def agent_limits(limits: dict[str, Any]) -> AgentLimits:
    """Return a change of limits; ConfigError if none is given, or one breaks its rule.

    Args:
        limits: fields of `AgentLimits`; those that are `None` are not given. `remove` has names
            of the others, as in Python, JSON or on the command line.

    Raises:
        ConfigError: no limit is given, or one breaks its rule.

    Examples:
        >>> agent_limits({"max_agents": 8, "max_cost": None}).max_agents
        8
    """
    change = AgentLimits(**limits)
    if change == AgentLimits():
        names = ", ".join(map(to_camel, AgentLimits.model_fields))
        raise ConfigError([Problem("agentLimits", f"must have at least one of {names}")])
    if change.remove:
        change.remove = [_removable(name, change) for name in change.remove]
    return change


def _removable(name: str, change: AgentLimits) -> str:
    """Return the name in JSON of a limit to remove; ConfigError if there is none, or it is set."""
    field = AgentLimits.field_of(name.replace("-", "_"))
    limits = [to_camel(known) for known in AgentLimits.model_fields if known != "remove"]
    alias = to_camel(field)
    if alias not in limits:
        close = difflib.get_close_matches(alias, limits, n=1)
        remedy = f"did you mean {close[0]}?" if close else ""
        raise ConfigError([Problem("remove", f"must have only {', '.join(limits)}", name, remedy)])
    value = getattr(change, field)
    if value is not None:
        raise ConfigError([Problem(alias, "must not have a value if it is removed", value)])
    return alias
