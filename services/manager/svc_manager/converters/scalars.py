"""Converters of times, metrics and configurations, which the other converters share."""

from collections.abc import Mapping
from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.experiment.v1 import config_pb2
from nni_wire.pools import (
    LOCAL_PLATFORM,
    LOCAL_POOL,
    POOL_NAME_OPTION,
    POOL_PLATFORM,
    broken_name_rule,
    experiment_pool,
)
from nni_wire.values import from_value
from svc_common import subjects
from svc_common.errors import InvalidArgumentError
from svc_manager.converters.agent_limits import limits_of_sections
from svc_manager.domain.experiment import DEFAULT_TRIAL_RETRIES, Budget, ExperimentSettings
from svc_manager.domain.values import (
    DEFAULT_METRIC,
    Metric,
    MetricType,
    Numbers,
    OptimizeMode,
)

_METRIC_TYPES = {int(member): member for member in MetricType}
_PERIODICAL: Final = MetricType.PERIODICAL
"""Members that each message needs stand here: as attributes of their class they take longer."""


def to_ms(moment: Timestamp | Duration) -> int:
    """Return a timestamp as ms since 1970, or a duration as ms, rounded down."""
    return moment.seconds * 1000 + moment.nanos // 1_000_000


def set_ms(moment: Timestamp | Duration, ms: int) -> None:
    """Set a timestamp to ms since 1970, or a duration to ms."""
    moment.seconds, rest = divmod(ms, 1000)
    moment.nanos = rest * 1_000_000


def numbers_of(value: value_pb2.Value) -> Numbers:
    """Return a metric value's number (None: it has none), or those of its dictionary by key."""
    kind = value.WhichOneof("kind")
    if kind == "map_value":
        return {
            entry.key: number
            for entry in value.map_value.entries
            if (number := _number(entry.value, entry.value.WhichOneof("kind"))) is not None
        }
    return _number(value, kind)


def _number(value: value_pb2.Value, kind: str | None) -> float | None:
    if kind == "float_value":
        return value.float_value
    if kind == "int_value":
        return float(value.int_value)
    if kind == "big_int_value":
        try:
            return float(value.big_int_value)
        except ValueError:
            return None
    return None


def metric_from(message: metric_pb2.Metric) -> Metric:
    """Convert a proto metric to the domain's: value still encoded, with its numbers; time in ms."""
    value = message.value
    kind = value.WhichOneof("kind")
    return Metric(
        _METRIC_TYPES.get(message.type, _PERIODICAL),
        message.sequence,
        value.SerializeToString(),
        value.float_value if kind == "float_value" else numbers_of(value),
        to_ms(message.reported_at),
        kind == "blob_value",
    )


def write_metric(message: metric_pb2.Metric, metric: Metric) -> None:
    """Write a domain metric (type, sequence, value, time) into an empty proto message."""
    message.type = metric.type  # type: ignore[assignment] # the numbers are the contract's
    message.sequence = metric.sequence
    message.value.MergeFromString(metric.value)
    set_ms(message.reported_at, metric.reported_at_ms)


def mode_of(config: config_pb2.ExperimentConfig, resolved: int) -> OptimizeMode | None:
    """Return the first objective's mode, without objectives the resolved one; None: unspecified."""
    number = config.objectives[0].mode if config.objectives else resolved
    return OptimizeMode(number) if number else None


def pool_of(experiment_id: str, config: config_pb2.ExperimentConfig) -> str:
    """Return the pool of an experiment's trials: the named one, `local`, or one of its own.

    An experiment with a platform besides `local` has a pool of its own, which all its platforms
    feed, unless it names a pool of the installation.

    Raises:
        InvalidArgumentError: the id is too long for the name of a pool, or no pool has the name.
    """
    for service in config.training_services:
        if service.platform == POOL_PLATFORM:
            return _named_pool(service)
    if all(service.platform == LOCAL_PLATFORM for service in config.training_services):
        return LOCAL_POOL
    return subjects.check_id("pool", experiment_pool(experiment_id))


def _named_pool(service: config_pb2.TrainingServiceConfig) -> str:
    """Return the pool name in a section's options; raise if it is missing or invalid.

    Raises:
        InvalidArgumentError: there is none, or it is not that of an installation's pool.
    """
    options = from_value(service.options) if service.HasField("options") else {}
    name = str(options.get(POOL_NAME_OPTION, "")) if isinstance(options, Mapping) else ""
    broken = broken_name_rule(name)
    if broken:
        raise InvalidArgumentError(f"trainingService.{POOL_NAME_OPTION}", broken, name[:80])
    return name


def settings_of(
    experiment_id: str, config: config_pb2.ExperimentConfig, resolved_mode: int
) -> ExperimentSettings:
    """Extract from a configuration the settings that decisions need, with defaults applied.

    Raises:
        InvalidArgumentError: see `pool_of`.
    """
    return ExperimentSettings(
        pool=pool_of(experiment_id, config),
        platforms=tuple(
            dict.fromkeys(
                one.platform for one in config.training_services if one.platform != POOL_PLATFORM
            )
        ),
        max_trial_retries=(
            config.max_trial_retries
            if config.HasField("max_trial_retries")
            else DEFAULT_TRIAL_RETRIES
        ),
        retry_failed_trials=config.retry_failed_trials,
        include_intermediate_results=config.include_intermediate_results,
        objective=config.objectives[0].metric if config.objectives else DEFAULT_METRIC,
        optimize_mode=mode_of(config, resolved_mode) or OptimizeMode.MAXIMIZE,
        limits=tuple((one.metric, one.max) for one in config.constraints),
        debug=config.log_level in {"debug", "trace"} or (config.debug and not config.log_level),
        algorithm_service=_service_of(config),
        least_concurrency=0 if config.HasField("nas") else 1,
        lease_ms=to_ms(config.callers.lease) if config.HasField("callers") else 0,
    )


def _service_of(config: config_pb2.ExperimentConfig) -> str:
    if config.HasField("nas"):
        return subjects.NAS
    return subjects.COMPRESSOR if config.HasField("compression") else ""


def budget_of(config: config_pb2.ExperimentConfig) -> Budget:
    """Extract concurrency and the limits of trials, duration and agents from a configuration."""
    return Budget(
        trial_concurrency=config.trial_concurrency,
        max_trial_number=(config.max_trial_number if config.HasField("max_trial_number") else None),
        max_duration_ms=(
            to_ms(config.max_experiment_duration)
            if config.HasField("max_experiment_duration")
            else None
        ),
        agents=limits_of_sections(config.training_services),
    )
