"""Conversion of limits of agents from JSON and to JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from nni_proto.experiment.v1 import config_pb2
from svc_common.errors import InvalidArgumentError
from svc_manager.domain.agent_limits import AgentLimits
from svc_manager.web.records.scalars import duration_text, parse_duration, to_seconds

_LARGEST_COUNT: Final = 2**31 - 1
_MS_PER_S: Final = 1_000


def agent_limits_from_json(data: Mapping[str, Any]) -> AgentLimits:
    """Parse a JSON change of agents' limits; null keeps one; raise for unknown names, or none.

    Args:
        data: at least one of `minAgents`, `maxAgents`, `idleTime`, `maxAgentTime`, `maxCost`,
            `costPerAgentHour` and `remove`, a list of such names; null leaves a limit as it is.

    Raises:
        InvalidArgumentError: a field has another name or type, or none is given.
    """
    given = {name: value for name, value in data.items() if value is not None}
    for name in given:
        if name not in _FIELDS:
            raise InvalidArgumentError("params", f"must have only {_NAMES}", str(name)[:80])
    if not given:
        raise InvalidArgumentError("params", f"must have one of {_NAMES}")
    values = {_FIELDS[name][0]: _FIELDS[name][1](value, name) for name, value in given.items()}
    return AgentLimits(**values)


def agent_limits_to_json(message: config_pb2.AgentLimits) -> dict[str, Any]:
    """Return the set limits as JSON by their names in configurations; times as text like `90s`."""
    out: dict[str, Any] = {}
    if message.HasField("min_agents"):
        out["minAgents"] = message.min_agents
    if message.HasField("max_agents"):
        out["maxAgents"] = message.max_agents
    if message.HasField("idle_time"):
        out["idleTime"] = duration_text(message.idle_time)
    if message.HasField("max_agent_time"):
        out["maxAgentTime"] = duration_text(message.max_agent_time)
    if message.HasField("max_cost"):
        out["maxCost"] = message.max_cost
    if message.HasField("cost_per_agent_hour"):
        out["costPerAgentHour"] = message.cost_per_agent_hour
    return out


def _names(value: object, name: str) -> tuple[str, ...]:
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return tuple(value)
    raise InvalidArgumentError(name, "must be a list of names of limits", value)


def _count(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST_COUNT:
        raise InvalidArgumentError(name, "must be an integer >= 0", value)
    return value


def _amount(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidArgumentError(name, "must be a number > 0", value)
    return float(value)


def _milliseconds(value: object, name: str) -> int:
    return round(to_seconds(parse_duration(value, name)) * _MS_PER_S)


_FIELDS: Final[Mapping[str, tuple[str, Callable[[object, str], Any]]]] = {
    "minAgents": ("min_agents", _count),
    "maxAgents": ("max_agents", _count),
    "idleTime": ("idle_time_ms", _milliseconds),
    "maxAgentTime": ("max_agent_time_ms", _milliseconds),
    "maxCost": ("max_cost", _amount),
    "costPerAgentHour": ("cost_per_agent_hour", _amount),
    "remove": ("removed", _names),
}
"""Field of `AgentLimits`, and the conversion of its value, by JSON name."""
_NAMES: Final = ", ".join(_FIELDS)
