"""Converters of needs and states of pools, which manager and fleet exchange on the bus."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from nni_proto.experiment.v1 import config_pb2
from nni_proto.runner.v1 import pool_pb2
from nni_wire.pools import FRONT_HOST_OPTION, experiment_of_pool
from nni_wire.values import from_value
from svc_common.agent_time import counted_until
from svc_common.pool_secrets import secrets_id_of
from svc_manager.domain.demand import ExperimentDemand
from svc_manager.domain.state import Experiment

Section: TypeAlias = config_pb2.TrainingServiceConfig | pool_pb2.PoolPlatform
"""Section of a platform, of an experiment or of a pool of the installation."""

TEXT_LIMIT: Final = 2_000
"""Most characters that are shown of a text of a platform."""
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])\Z")
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def need_template(experiment: Experiment) -> pool_pb2.PoolNeed:
    """Return the part of a pool's need that does not change: platforms, limits, GPUs."""
    config = config_pb2.ExperimentConfig.FromString(experiment.config)
    pool = experiment.settings.pool
    need = pool_pb2.PoolNeed(pool=pool, experiment_id=experiment.id)
    if config.HasField("trial_gpu_number"):
        need.gpus_per_trial = config.trial_gpu_number
    if experiment_of_pool(pool) is None:
        return need  # its platforms and limits are those of the pool's definition
    need.platforms.extend(platforms_of(config))
    for index, service in enumerate(config.training_services):
        if service.secret_paths:
            need.platforms[index].secrets_id = secrets_id_of(pool, index)
    write_limits(need.limits, config.training_services)
    return need


def platforms_of(config: config_pb2.ExperimentConfig) -> list[pool_pb2.PoolPlatform]:
    """Return a configuration's platforms, with `nniManagerIp` added to their options if set."""
    platforms = []
    for service in config.training_services:
        platform = pool_pb2.PoolPlatform(platform=service.platform, options=service.options)
        if config.nni_manager_ip:
            entry = platform.options.map_value.entries.add(key=FRONT_HOST_OPTION)
            entry.value.string_value = config.nni_manager_ip
        platforms.append(platform)
    return platforms


def need_to_bytes(
    template: pool_pb2.PoolNeed, demand: ExperimentDemand, log_sequence: int
) -> bytes:
    """Fill the present demand into a pool's need template, in place; return it encoded.

    Args:
        template: see `need_template`; it is filled in.
        demand: the present one.
        log_sequence: sequence of the last appended batch.
    """
    template.waiting_count = demand.waiting_count
    template.running_count = demand.running_count
    template.concurrency = demand.concurrency
    template.closed = demand.closed
    template.log_sequence = log_sequence
    return template.SerializeToString()


def _options(service: Section) -> Mapping[str, object]:
    options = from_value(service.options) if service.HasField("options") else {}
    return options if isinstance(options, Mapping) else {}


def write_limits(limits: pool_pb2.PoolLimits, services: Iterable[Section]) -> None:
    """Write a pool's limits: sums of the platforms' least and most agents, and longest idle time.

    A platform without a largest number of agents makes the sum unlimited. Limits of time and cost
    hold for all platforms together: should sections differ, the tightest one.

    Args:
        limits: limits that are set are replaced.
        services: the platforms' sections.
    """
    sections = [_options(service) for service in services]
    limits.min_agents = sum(_count(section, "minAgents") for section in sections)
    largest = [_count(section, "maxAgents") for section in sections]
    limits.max_agents = sum(largest) if all(largest) else 0
    idle = [_duration_s(str(section["idleTime"])) for section in sections if "idleTime" in section]
    if idle:
        limits.idle.FromMilliseconds(round(max(idle) * 1000))
    times = [
        _duration_s(str(section["maxAgentTime"]))
        for section in sections
        if "maxAgentTime" in section
    ]
    if times:
        limits.max_agent_time.FromMilliseconds(round(min(times) * 1000))
    costs = [cost for section in sections if (cost := _amount(section, "maxCost"))]
    limits.max_cost = min(costs, default=0.0)
    limits.cost_per_agent_hour = max(
        (_amount(one, "costPerAgentHour") for one in sections), default=0.0
    )


def _count(section: Mapping[str, object], name: str) -> int:
    number = section.get(name)
    return number if isinstance(number, int) and number > 0 else 0


def _amount(section: Mapping[str, object], name: str) -> float:
    number = section.get(name)
    return float(number) if isinstance(number, int | float) and number > 0 else 0.0


def _duration_s(text: str) -> float:
    match = _DURATION.match(text)
    return float(match[1]) * _UNIT_S[match[2]] if match else 0.0


def state_from_bytes(payload: bytes) -> pool_pb2.PoolState:
    """Parse a pool's state, texts of platforms cut to a limit; raise DecodeError if invalid.

    Raises:
        google.protobuf.message.DecodeError: it is no state.
    """
    state = pool_pb2.PoolState.FromString(payload)
    state.reason = state.reason[:TEXT_LIMIT]
    state.remedy = state.remedy[:TEXT_LIMIT]
    for agent in state.agents:
        agent.reason = agent.reason[:TEXT_LIMIT]
        agent.machine = agent.machine[:TEXT_LIMIT]
    return state


def complete_limits(definition: pool_pb2.PoolDefinition) -> None:
    """Fill limits that a pool's definition lacks from its platforms' sections, in place."""
    limits = pool_pb2.PoolLimits()
    write_limits(limits, definition.platforms)
    limits.MergeFrom(definition.limits)
    definition.limits.CopyFrom(limits)


def agent_time(state: pool_pb2.PoolState, now: datetime) -> timedelta:
    """Return the summed running time of a pool's agents, ended and present.

    Present ones count until now, but not beyond `SILENCE_LIMIT` after the fleet's last message.

    Args:
        state: as the fleet published it last.
        now: time of day; aware, UTC.
    """
    now = counted_until(state, now)
    used = state.ended_agent_time.ToTimedelta()
    for agent in state.agents:
        if agent.HasField("started_at"):
            used += max(timedelta(0), now - agent.started_at.ToDatetime(now.tzinfo))
    return used
