"""Converters of needs and states of pools, which manager and fleet exchange on the bus."""

from datetime import datetime, timedelta
from typing import Final

from nni_proto.experiment.v1 import config_pb2
from nni_proto.runner.v1 import pool_pb2
from nni_wire.pools import FRONT_HOST_OPTION, experiment_of_pool
from svc_common.agent_time import counted_until
from svc_common.pool_secrets import secrets_id_of
from svc_manager.converters.agent_limits import limits_of_sections, write_pool_limits
from svc_manager.domain.demand import ExperimentDemand
from svc_manager.domain.state import Experiment

TEXT_LIMIT: Final = 2_000
"""Most characters that are shown of a text of a platform."""


def need_template(experiment: Experiment) -> pool_pb2.PoolNeed:
    """Return the part of a pool's need that does not change: platforms and GPUs."""
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
    """Fill the current demand into a pool's need template, in place; return it encoded.

    Args:
        template: see `need_template`; it is filled in.
        demand: the present one.
        log_sequence: sequence of the last appended batch.
    """
    template.waiting_count = demand.waiting_count
    template.running_count = demand.running_count
    template.concurrency = demand.concurrency
    template.closed = demand.closed
    if experiment_of_pool(template.pool) is not None:
        write_pool_limits(template.limits, demand.limits)
    template.log_sequence = log_sequence
    return template.SerializeToString()


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
    write_pool_limits(limits, limits_of_sections(definition.platforms))
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
