"""Conversion of scalars between protobuf and JSON: instants, durations, values, enum names."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.experiment.v1 import experiment_pb2
from nni_proto.trial.v1 import trial_pb2
from nni_wire.values import from_value, to_value
from svc_common.errors import InvalidArgumentError
from svc_manager.usecases.request_checks import LONGEST_S

_NS_PER_MS: Final = 1_000_000
_NS_PER_S: Final = 1_000_000_000
_MS_PER_S: Final = 1_000
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])")


def to_ms(time: Timestamp) -> int:
    """Return an instant in milliseconds since 1970 (UTC)."""
    return time.seconds * _MS_PER_S + time.nanos // _NS_PER_MS


def to_seconds(duration: Duration) -> float:
    """Return a duration in seconds."""
    return duration.seconds + duration.nanos / _NS_PER_S


def duration_text(duration: Duration) -> str:
    """Return a duration as text of the configuration, e.g. `90s` or `0.5s`."""
    seconds = to_seconds(duration)
    return f"{int(seconds)}s" if seconds == int(seconds) else f"{seconds}s"


def parse_duration(value: object, field: str) -> Duration:
    """Parse a duration from seconds or text such as `90s` or `0.5h`; raise if not positive.

    Args:
        value: a number of seconds, or text such as `90s`, `30m`, `0.5h`, `2d`.
        field: name of the field, for the error.

    Raises:
        InvalidArgumentError: the value has another form, is <= 0 or over 10,000 years.
    """
    rule = "must be a number of seconds > 0 or text like '90s', '30m', '0.5h' or '2d'"
    if isinstance(value, str) and (match := _DURATION.fullmatch(value.strip())):
        seconds = float(match[1]) * _UNIT_S[match[2]]
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value
    else:
        raise InvalidArgumentError(field, rule, value)
    if not 0 < seconds <= LONGEST_S:
        raise InvalidArgumentError(field, rule, value)
    return Duration(seconds=int(seconds), nanos=int((seconds % 1) * _NS_PER_S))


def value_of(message: value_pb2.Value) -> Any:  # noqa: ANN401 - any JSON value
    """Convert a proto value to JSON; a value in the blob store becomes a text about it."""
    try:
        return from_value(message)
    except LookupError as error:
        return str(error.args[0])


def value_from(data: object, field: str) -> value_pb2.Value:
    """Convert a JSON value to a proto value; raise InvalidArgumentError if it cannot be stored.

    Raises:
        InvalidArgumentError: the value is nested too deeply, or contains text outside UTF-8.
    """
    try:
        return to_value(data)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(field, f"cannot be stored: {error}") from None


def experiment_state_name(state: experiment_pb2.ExperimentState.ValueType) -> str:
    """Return an experiment state's name, e.g. `RUNNING`; `UNKNOWN` for a newer version's number."""
    return _enum_name(experiment_pb2.ExperimentState, state, "EXPERIMENT_STATE_")


def trial_state_name(state: trial_pb2.TrialState.ValueType) -> str:
    """Return a trial state's name, e.g. `FAILED`; `UNKNOWN` also for a newer version's number."""
    return _enum_name(trial_pb2.TrialState, state, "TRIAL_STATE_")


def metric_type_name(kind: metric_pb2.MetricType.ValueType) -> str:
    """Return `PERIODICAL` or `FINAL`; `UNKNOWN` for a newer version's number."""
    return _enum_name(metric_pb2.MetricType, kind, "METRIC_TYPE_")


def source_name(source: trial_pb2.ParameterSource.ValueType) -> str:
    """Return `algorithm` or `customized`; `unknown` for a newer version's number."""
    return _enum_name(trial_pb2.ParameterSource, source, "PARAMETER_SOURCE_").lower()


@lru_cache(maxsize=256)  # protobuf searches its list of members, for each trial and metric
def _enum_name(enum: Any, number: int, prefix: str) -> str:  # noqa: ANN401 - wrappers of protobuf have no common type
    if number not in enum.values():  # written by a newer version
        return "UNKNOWN"
    return str(enum.Name(number)).removeprefix(prefix)
