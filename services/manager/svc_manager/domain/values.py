"""Values that many parts of the domain share."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, TypeAlias

EncodedValue: TypeAlias = bytes
"""A user's value (parameters, metric, space) as the wire encodes it; the domain carries it
unopened."""

Numbers: TypeAlias = float | Mapping[str, float] | None
"""The numeric content of a metric: a number is the metric `default`, a map holds several."""

Position: TypeAlias = tuple[int, int]
"""Place of an event: stream sequence of its batch, index there."""

DEFAULT_METRIC = "default"


class MetricType(IntEnum):
    """The part a report plays; the numbers are those of the contract."""

    PERIODICAL = 1
    FINAL = 2


class OptimizeMode(IntEnum):
    """Which way an objective improves; the numbers are those of the contract."""

    MINIMIZE = 1
    MAXIMIZE = 2


class ParameterSource(IntEnum):
    """Who chose the parameters of a trial; the numbers are those of the contract."""

    ALGORITHM = 1
    CUSTOMIZED = 2


@dataclass(frozen=True, slots=True)
class Metric:
    """One report of one trial."""

    type: MetricType
    sequence: int
    """0-based, per trial and type."""
    value: EncodedValue
    numbers: Numbers
    reported_at_ms: int

    def number(self, name: str) -> float | None:
        """Return the metric called ``name``, or None if it has no such number."""
        numbers = self.numbers
        if numbers is None or isinstance(numbers, float):
            return numbers if name == DEFAULT_METRIC else None
        return numbers.get(name)


@dataclass(frozen=True, slots=True)
class Parameters:
    """What an algorithm suggested."""

    parameter_id: int
    parameters: EncodedValue
    provenance: EncodedValue
    """Where they come from."""


class TrialIds(Protocol):
    """Where new ids come from; passed in, so that decisions can be repeated."""

    def trial_id(self) -> str:
        """Draw 5 characters of [A-Za-z0-9]; not necessarily unused."""
        ...
