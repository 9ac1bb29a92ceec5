"""Choice of one value out of several."""

import itertools
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from nni.mutable.base import Mutable, RandomState, Sample
from nni.mutable.record import equal_values
from nni.mutable.symbol import MutableSymbol

_SUM_TOLERANCE: Final = 1e-6
"""Largest distance of a sum of weights from 1."""

_NOT_GIVEN: Final = object()
"""Stands for a default that was not given: `None` may be a value."""


class Categorical(MutableSymbol):
    """Leaf whose value is one of several, with optional weights and default.

    Args:
        values: distinct values of any type; at least one, none of them mutable.
        weights: probability of each value, with the sum 1; `None`: all the same.
        default: one of the values; by default the first.
        label: name of the dimension; `None`: the next number of the surrounding scope.

    Raises:
        ValueError: an argument breaks its rule.

    Examples:
        >>> width = Categorical([16, 32, 64], label="width")
        >>> width.default(), width.freeze({"width": 64}), len(width)
        (16, 64, 3)
        >>> list(Categorical("xyz", weights=[0.2, 0.3, 0.5], label="axis").grid())
        ['z', 'y', 'x']
    """

    def __init__(
        self,
        values: Iterable[Any],
        *,
        weights: Sequence[float] | None = None,
        default: Any = _NOT_GIVEN,  # noqa: ANN401 - one of the values
        label: str | None = None,
    ) -> None:
        self.values = checked_values(values)
        self.weights = None if weights is None else checked_weights(weights, len(self.values))
        self._positions = positions_of(self.values)
        self._default_at: int | None = None
        if default is not _NOT_GIVEN:
            self._default_at = position_of(default, self.values, self._positions)
            if self._default_at is None:
                raise ValueError(f"default must be one of {self.values}, got {default!r}")
        self._cumulated = None if self.weights is None else list(itertools.accumulate(self.weights))
        super().__init__(label)

    def constructor_arguments(self) -> dict[str, Any]:
        """Return keyword arguments that construct an equal mutable."""
        arguments: dict[str, Any] = {"values": self.values}
        if self.weights is not None:
            arguments["weights"] = self.weights
        if self._default_at is not None:
            arguments["default"] = self.values[self._default_at]
        return {**arguments, "label": self.label}

    def __len__(self) -> int:
        return len(self.values)

    def check_value(self, value: Any) -> str | None:  # noqa: ANN401 - it is to be checked
        """Return None for one of the values, else the text `one of` and all values."""
        known = position_of(value, self.values, self._positions) is not None
        return None if known else f"one of {self.values}"

    def value_in(self, sample: Sample) -> Any:  # noqa: ANN401 - the user's value
        """Return the constructor's value that equals the sample's."""
        at = position_of(sample[self.label], self.values, self._positions)
        assert at is not None
        return self.values[at]

    def default_value(self) -> Any:  # noqa: ANN401 - the user's value
        """Return the given default, else the first value."""
        return self.values[self._default_at or 0]

    def random_value(self, random_state: RandomState) -> Any:  # noqa: ANN401 - the user's value
        """Return a random value, by the weights if there are any."""
        number = random_state.random()
        if self._cumulated is None:
            return self.values[int(number * len(self.values))]
        # The last sum may be a little less than 1, and the number between them.
        return self.values[min(bisect(self._cumulated, number), len(self.values) - 1)]

    def grid_values(self, granularity: int) -> Iterator[Any]:
        """Yield the values by falling weight; without weights in their order."""
        if self.weights is None:
            yield from self.values
            return
        weights = self.weights
        for at in sorted(range(len(self.values)), key=lambda at: -weights[at]):
            yield self.values[at]

    def as_legacy_dict(self) -> dict[str, Any]:
        """Return a dict of `_type`, which is `choice`, and `_value`, the list of values.

        Returns:
            A dictionary of `_type` and `_value`.
        """
        return {"_type": "choice", "_value": list(self.values)}


def checked_values(values: Iterable[Any]) -> list[Any]:
    """Return the values of a choice as a new list; raise if none, mutable or equal ones.

    Args:
        values: what the user gave.

    Returns:
        A new list.

    Raises:
        ValueError: there is none, one is mutable, or two are equal.
    """
    checked = list(values)
    if not checked:
        raise ValueError("values must not be empty, got none")
    nested = [value for value in checked if isinstance(value, Mutable)]
    if nested:
        raise ValueError(
            f"values must not be mutable, got {nested[0]!r}; choose with "
            "MutableExpression.switch_case, or a LayerChoice"
        )
    if positions_of(checked) is None:
        for one, other in itertools.combinations(checked, 2):
            if equal_values(one, other):
                raise ValueError(f"values must be distinct, got {one!r} twice")
    elif len(set(checked)) < len(checked):
        equal = next(value for at, value in enumerate(checked) if value in checked[:at])
        raise ValueError(f"values must be distinct, got {equal!r} twice")
    return checked


def checked_weights(
    weights: Sequence[float], number: int, *, is_distribution: bool = True
) -> list[float]:
    """Return weights as floats; raise unless there is one per value, in [0, 1], with the sum 1.

    Args:
        weights: what the user gave.
        number: number of values.
        is_distribution: whether they are the probabilities of exclusive events.

    Returns:
        A new list.

    Raises:
        ValueError: the number is wrong, one is outside `[0, 1]`, or the sum is not 1.
    """
    checked = [float(weight) for weight in weights]
    if len(checked) != number:
        raise ValueError(f"weights must be {number}, one for each value, got {len(checked)}")
    if any(not 0 <= weight <= 1 for weight in checked):
        raise ValueError(f"weights must be in [0, 1], got {checked}")
    if is_distribution and abs(sum(checked) - 1) > _SUM_TOLERANCE:
        raise ValueError(f"weights must have the sum 1, got {checked} with the sum {sum(checked)}")
    return checked


def positions_of(values: Sequence[Any]) -> dict[Any, int] | None:
    """Return the position of each value, `None` if one cannot be a key.

    Args:
        values: the values.

    Returns:
        Value to position.
    """
    try:
        return {value: at for at, value in enumerate(values)}
    except TypeError:
        return None


def position_of(
    value: object, values: Sequence[Any], positions: dict[Any, int] | None
) -> int | None:
    """Return the position of the value that is equal to this one, `None` without one.

    A list stands for a tuple, too: JSON has no tuples, and samples are stored as JSON.

    Args:
        value: anything.
        values: the values.
        positions: what `positions_of` returned for them.

    Returns:
        The position.
    """
    if positions is None:
        found = (at for at, one in enumerate(values) if equal_values(value, one))
        return next(found, _position_of_tuple(value, values))
    try:
        return positions.get(value)
    except TypeError:
        return _position_of_tuple(value, values)


def _position_of_tuple(value: object, values: Sequence[Any]) -> int | None:
    """Return the position of the tuple equal to a list (JSON has no tuples); None: no match."""
    if not isinstance(value, list):
        return None
    found = (
        at
        for at, one in enumerate(values)
        if isinstance(one, tuple) and equal_values(_with_lists(one), value)
    )
    return next(found, None)


def _with_lists(value: object) -> object:
    """Return a value with lists in place of tuples."""
    return [_with_lists(one) for one in value] if isinstance(value, tuple) else value
