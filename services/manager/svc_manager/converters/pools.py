"""Converters of needs and states of pools, which manager and fleet exchange on the bus."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from nni_proto.experiment.v1 import config_pb2
from nni_proto.runner.v1 import pool_pb2
from nni_wire.values import from_value
from svc_common.pool_secrets import secrets_id_of
from svc_manager.domain.demand import ExperimentDemand
from svc_manager.domain.state import Experiment

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])\Z")
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def need_template(experiment: Experiment) -> pool_pb2.PoolNeed:
    """Return the part of a pool's need that does not change: platforms, limits, GPUs."""
    config = config_pb2.ExperimentConfig.FromString(experiment.config)
    pool = experiment.settings.pool
    need = pool_pb2.PoolNeed(pool=pool, experiment_id=experiment.id)
    if config.HasField("trial_gpu_number"):
        need.gpus_per_trial = config.trial_gpu_number
    for index, service in enumerate(config.training_services):
        platform = need.platforms.add(platform=service.platform, options=service.options)
        if service.secret_paths:
            platform.secrets_id = secrets_id_of(pool, index)
    _write_limits(need.limits, [_options(service) for service in config.training_services])
    return need


def need_to_bytes(
    template: pool_pb2.PoolNeed, demand: ExperimentDemand, log_sequence: int
) -> bytes:
    """Encode the need of a pool: the part that does not change, and the present demand.

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


def _options(service: config_pb2.TrainingServiceConfig) -> Mapping[str, object]:
    options = from_value(service.options) if service.HasField("options") else {}
    return options if isinstance(options, Mapping) else {}


def _write_limits(limits: pool_pb2.PoolLimits, sections: Sequence[Mapping[str, object]]) -> None:
    """Write the limits of a pool: the sums and the longest idle time of its platforms.

    A platform without a largest number of agents makes the sum unlimited.
    """
    limits.min_agents = sum(_count(section, "minAgents") for section in sections)
    largest = [_count(section, "maxAgents") for section in sections]
    limits.max_agents = sum(largest) if all(largest) else 0
    idle = [_duration_s(str(section["idleTime"])) for section in sections if "idleTime" in section]
    if idle:
        limits.idle.FromMilliseconds(round(max(idle) * 1000))


def _count(section: Mapping[str, object], name: str) -> int:
    number = section.get(name)
    return number if isinstance(number, int) and number > 0 else 0


def _duration_s(text: str) -> float:
    match = _DURATION.match(text)
    return float(match[1]) * _UNIT_S[match[2]] if match else 0.0
