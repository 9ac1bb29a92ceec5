"""Values that many modules of the domain share."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, TypeAlias

EncodedValue: TypeAlias = bytes
"""A user's value (parameters, metric, space) in its wire encoding; not decoded by the domain."""

Numbers: TypeAlias = float | Mapping[str, float] | None
"""Numeric content of a metric: a number is the metric `default`, a map holds several."""

Position: TypeAlias = tuple[int, int]
"""Position of an event: stream sequence of its batch, index in the batch."""

DEFAULT_METRIC = "default"


class MetricType(IntEnum):
    """Kind of a metric report, intermediate or final; numbers of the proto contract."""

    PERIODICAL = 1
    FINAL = 2


class OptimizeMode(IntEnum):
    """Direction of an objective, minimize or maximize; numbers of the proto contract."""

    MINIMIZE = 1
    MAXIMIZE = 2


class ParameterSource(IntEnum):
    """Origin of a trial's parameters, algorithm or user; numbers of the proto contract."""

    ALGORITHM = 1
    CUSTOMIZED = 2


@dataclass(frozen=True, slots=True)
class Metric:
    """Metric that a trial reported: type, sequence, value, its numbers and the time."""

    type: MetricType
    sequence: int
    """0-based, per trial and type."""
    value: EncodedValue
    numbers: Numbers
    reported_at_ms: int
    large: bool = False
    """Whether the value lies in the byte store, so that its numbers are unknown."""

    def number(self, name: str) -> float | None:
        """Return the number with this key, None if missing; a plain one has the key `default`."""
        numbers = self.numbers
        if numbers is None or isinstance(numbers, float):
            return numbers if name == DEFAULT_METRIC else None
        return numbers.get(name)


@dataclass(frozen=True, slots=True)
class Parameters:
    """Configuration that an algorithm suggested: its id, values and provenance."""

    parameter_id: int
    parameters: EncodedValue
    provenance: EncodedValue
    """How the algorithm chose them."""


class TrialIds(Protocol):
    """Source of new trial ids, passed to decisions so that they can be repeated."""

    def trial_id(self) -> str:
        """Draw 5 characters of [A-Za-z0-9]; not necessarily unused."""
        ...
