"""Converters of limits of agents: sections of platforms, messages, and the domain's value."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2
from nni_proto.runner.v1 import pool_pb2
from nni_wire.values import from_value, to_value
from svc_manager.domain.agent_limits import AgentLimits

Section: TypeAlias = config_pb2.TrainingServiceConfig | pool_pb2.PoolPlatform
"""Section of a platform, of an experiment or of a pool of the installation."""

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])\Z")
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MS_PER_S: Final = 1000


def limits_of_sections(services: Iterable[Section]) -> AgentLimits:
    """Return platforms' limits combined: agents summed, longest idle time, least time and cost.

    Least and most agents are sums, and the idle time is the longest one. A platform without a
    largest number of agents makes the sum unlimited. Limits of time and cost hold for all platforms
    together: should sections differ, the tightest one.

    Args:
        services: the sections.
    """
    sections = [_options(service) for service in services]
    most = [_count(section, "maxAgents") for section in sections]
    costs = [cost for section in sections if (cost := _amount(section, "maxCost"))]
    prices = [price for one in sections if (price := _amount(one, "costPerAgentHour"))]
    return AgentLimits(
        sum(_count(section, "minAgents") for section in sections) or None,
        sum(most) if most and all(most) else None,
        max(_durations_ms(sections, "idleTime"), default=None),
        min(_durations_ms(sections, "maxAgentTime"), default=None),
        min(costs, default=None),
        max(prices, default=None),
    )


def write_pool_limits(message: pool_pb2.PoolLimits, limits: AgentLimits) -> None:
    """Replace all fields of a pool's message by limits; None becomes 0 or unset."""
    message.Clear()
    message.min_agents = limits.min_agents or 0
    message.max_agents = limits.max_agents or 0
    message.max_cost = limits.max_cost or 0.0
    message.cost_per_agent_hour = limits.cost_per_agent_hour or 0.0
    if limits.idle_time_ms is not None:
        message.idle.FromMilliseconds(limits.idle_time_ms)
    if limits.max_agent_time_ms is not None:
        message.max_agent_time.FromMilliseconds(limits.max_agent_time_ms)


def agent_limits_from(message: config_pb2.AgentLimits) -> AgentLimits:
    """Return the limits of a message; unset fields are None."""
    return AgentLimits(
        message.min_agents if message.HasField("min_agents") else None,
        message.max_agents if message.HasField("max_agents") else None,
        message.idle_time.ToMilliseconds() if message.HasField("idle_time") else None,
        (message.max_agent_time.ToMilliseconds() if message.HasField("max_agent_time") else None),
        message.max_cost if message.HasField("max_cost") else None,
        message.cost_per_agent_hour if message.HasField("cost_per_agent_hour") else None,
        tuple(message.removed),
    )


def write_agent_limits(message: config_pb2.AgentLimits, limits: AgentLimits) -> None:
    """Write the limits that are not None, and the names of removed ones, into a message."""
    message.removed.extend(limits.removed)
    for name in ("min_agents", "max_agents", "max_cost", "cost_per_agent_hour"):
        value = getattr(limits, name)
        if value is not None:
            setattr(message, name, value)
    for name in ("idle_time", "max_agent_time"):
        ms = getattr(limits, f"{name}_ms")
        if ms is not None:
            getattr(message, name).FromMilliseconds(ms)


def apply_limits(services: Sequence[Section], limits: AgentLimits) -> None:
    """Change platforms' sections, in place, so that combined they give these limits.

    Numbers of agents are shared out evenly. Other limits are written to sections that have them,
    else to the first one. Limits that are None are taken out of all sections.

    Args:
        services: the sections; `limits_of_sections` then returns the limits.
        limits: the limits.
    """
    given = limits_of_sections(services)
    for name, option in (("min_agents", "minAgents"), ("max_agents", "maxAgents")):
        total = getattr(limits, name)
        if total == getattr(given, name):
            continue
        if total is None:
            _remove(services, option)
        else:
            for service, part in zip(services, _shares(total, len(services)), strict=True):
                _set(service, option, part)
    for name, option in _TEXTS.items():
        value = getattr(limits, name)
        if value == getattr(given, name):
            continue
        if value is None:
            _remove(services, option)
        else:
            text = _duration_text(value) if name.endswith("_ms") else value
            having = [one for one in services if option in _options(one)]
            for service in having or services[:1]:
                _set(service, option, text)


_TEXTS: Final = {
    "idle_time_ms": "idleTime",
    "max_agent_time_ms": "maxAgentTime",
    "max_cost": "maxCost",
    "cost_per_agent_hour": "costPerAgentHour",
}
"""Option of a section, by the limit that holds for all sections together."""


def _shares(total: int, count: int) -> list[int]:
    """Return a total split into `count` numbers that differ by no more than 1."""
    share, rest = divmod(total, count)
    return [share + (index < rest) for index in range(count)]


def _set(service: Section, option: str, value: float | str) -> None:
    entries = service.options.map_value.entries
    for entry in entries:
        if entry.key == option:
            entry.value.CopyFrom(to_value(value))
            return
    entries.append(value_pb2.MapEntry(key=option, value=to_value(value)))


def _remove(services: Iterable[Section], option: str) -> None:
    for service in services:
        entries = service.options.map_value.entries
        for index in reversed(range(len(entries))):
            if entries[index].key == option:
                del entries[index]


def _options(service: Section) -> Mapping[str, object]:
    options = from_value(service.options) if service.HasField("options") else {}
    return options if isinstance(options, Mapping) else {}


def _count(section: Mapping[str, object], name: str) -> int:
    number = section.get(name)
    return number if isinstance(number, int) and number > 0 else 0


def _amount(section: Mapping[str, object], name: str) -> float:
    number = section.get(name)
    return float(number) if isinstance(number, int | float) and number > 0 else 0.0


def _durations_ms(sections: Iterable[Mapping[str, object]], name: str) -> list[int]:
    """Return the durations of an option, of the sections that have it; 0: it is no duration."""
    texts = [str(section[name]) for section in sections if name in section]
    return [
        round(float(match[1]) * _UNIT_MS[match[2]]) if (match := _DURATION.match(text)) else 0
        for text in texts
    ]


def _duration_text(ms: int) -> str:
    """Return a duration as text, such as `90m`, in the largest unit whose number is whole."""
    for unit in ("h", "m", "s"):
        number, rest = divmod(ms, _UNIT_MS[unit])
        if not rest:
            return f"{number}{unit}"
    return f"{ms / _MS_PER_S:.3f}s"
