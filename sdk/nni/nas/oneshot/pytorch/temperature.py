"""Temperature of a relaxed choice over the epochs of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

PAIR = 2
"""Length of a temperature that is given as first and last value."""


@runtime_checkable
class TemperatureSchedule(Protocol):
    """Temperature as a function of the progress of the search."""

    def at(self, epoch: int, total: int) -> float:
        """Return the temperature of an epoch.

        Args:
            epoch: number of finished epochs.
            total: epochs of the whole search, at least 1.

        Returns:
            Temperature, 0 or more; lower means closer to one single choice.
        """
        ...


@dataclass(frozen=True, slots=True)
class LinearTemperature:
    """Temperature that falls linearly with the epochs from `init` towards `min`.

    Raises:
        ValueError: not `init >= min >= 0`.

    Examples:
        >>> LinearTemperature(1.0, 0.33).at(5, 10)
        0.665
    """

    init: float = 1.0
    """Temperature at the start."""
    min: float = 0.33
    """Temperature at the end, 0 or more and at most `init`."""

    def __post_init__(self) -> None:
        if not self.init >= self.min >= 0:
            raise ValueError(
                f"temperature must satisfy init >= min >= 0, got init={self.init}, min={self.min}"
            )

    def at(self, epoch: int, total: int) -> float:
        """Return the temperature after `epoch` of `total` epochs: linear from `init` to `min`."""
        done = min(epoch / max(total, 1), 1.0)
        return (1 - done) * (self.init - self.min) + self.min


def temperature_schedule(value: object) -> TemperatureSchedule:
    """Return a schedule as is, or a linear one for a number, pair or mapping; raise for others.

    Args:
        value: number (constant), pair of first and last value, mapping with `init` and `min`, or
            an object with a method `at(epoch, total)`.

    Returns:
        The schedule.

    Raises:
        ValueError: `value` is none of these, or the last value is negative or above the first.

    Examples:
        >>> temperature_schedule((1.0, 0.5))
        LinearTemperature(init=1.0, min=0.5)
        >>> temperature_schedule(2).at(3, 10)
        2.0
    """
    match value:
        case TemperatureSchedule():
            return value
        case bool():
            pass
        case int() | float():
            return LinearTemperature(float(value), float(value))
        case Mapping() if value.keys() == {"init", "min"}:
            return LinearTemperature(float(value["init"]), float(value["min"]))
        case Sequence() if len(value) == PAIR and not isinstance(value, str):
            return LinearTemperature(float(value[0]), float(value[1]))
    raise ValueError(
        "temperature must be a number, a pair (init, min), a mapping with the keys 'init' and "
        f"'min', or an object with a method at(epoch, total), got {value!r}"
    )
