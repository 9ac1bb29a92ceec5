"""Choice of several values out of many."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from nni.mutable.annotation import ExpressionConstraint
from nni.mutable.base import LabeledMutable, Mutable, RandomState, Sample
from nni.mutable.categorical import (
    Categorical,
    checked_values,
    checked_weights,
    position_of,
    positions_of,
)
from nni.mutable.errors import SampleValidationError
from nni.mutable.labels import SEPARATOR, Label
from nni.mutable.symbol import MutableSymbol


class CategoricalMultiple(MutableSymbol):
    """Several values out of many, as a list in the order of the values.

    A strategy that knows plain choices only can take it apart: `simplify` with an `is_leaf` that
    refuses it has one `Categorical` of true and false for each value, labelled `x/0`, `x/1`, …,
    and for a fixed number the constraint `x/n`. A sample may have the label itself or those.

    Args:
        values: distinct values of any type; at least one, none of them mutable.
        n_chosen: how many are chosen, from 1 to all; `None`: any number, each independently.
        weights: of a fixed number, the probability of each value to be drawn next, with the sum 1;
            otherwise the probability of each value to be chosen, by default 0.5.
        default: list of values; by default the first `n_chosen`, or all.
        label: name of the dimension; `None`: the next number of the surrounding scope.

    Raises:
        ValueError: an argument breaks its rule.

    Examples:
        >>> list(CategoricalMultiple([1, 2, 3], n_chosen=2, label="pair").grid())
        [[1, 2], [1, 3], [2, 3]]
        >>> list(CategoricalMultiple([1, 2], label="any").grid())
        [[], [1], [2], [1, 2]]
        >>> inputs = CategoricalMultiple("ab", n_chosen=1, label="x")
        >>> list(inputs.simplify(is_leaf=lambda leaf: isinstance(leaf, Categorical)))
        ['x/0', 'x/1', 'x/n']
        >>> inputs.freeze({"x/0": False, "x/1": True})
        ['b']
    """

    def __init__(
        self,
        values: Iterable[Any],
        *,
        n_chosen: int | None = None,
        weights: Sequence[float] | None = None,
        default: Sequence[Any] | None = None,
        label: str | None = None,
    ) -> None:
        self.values = checked_values(values)
        if n_chosen is not None and not 1 <= n_chosen <= len(self.values):
            raise ValueError(f"n_chosen must be in [1, {len(self.values)}], got {n_chosen}")
        self.n_chosen = n_chosen
        self.weights = (
            None
            if weights is None
            else checked_weights(weights, len(self.values), is_distribution=n_chosen is not None)
        )
        if n_chosen is not None and sum(map(bool, self.weights or [1] * n_chosen)) < n_chosen:
            raise ValueError(f"weights must be > 0 for {n_chosen} values, got {self.weights}")
        self._positions = positions_of(self.values)
        rule = None if default is None else self.check_value(list(default))
        if rule is not None:
            raise ValueError(f"default must be {rule}, got {default!r}")
        self._default = None if default is None else self._ordered(default)
        super().__init__(label)
        self._parts: tuple[list[Categorical], ExpressionConstraint | None] | None = None

    def constructor_arguments(self) -> dict[str, Any]:
        """Return keyword arguments that construct an equal mutable, without those at defaults."""
        optional = {"n_chosen": self.n_chosen, "weights": self.weights, "default": self._default}
        given = {name: value for name, value in optional.items() if value is not None}
        return {"values": self.values, **given, "label": self.label}

    def __len__(self) -> int:
        return len(self.values)

    def leaf_mutables(self, is_leaf: Callable[[Mutable], bool]) -> Iterable[LabeledMutable]:
        """Yield this mutable, or if it is refused its plain choices and their constraint."""
        if is_leaf(self):
            yield self
            return
        choices, constraint = self.decomposition()
        yield from choices
        if constraint is not None:
            yield constraint

    def decomposition(self) -> tuple[list[Categorical], ExpressionConstraint | None]:
        """Return a plain choice per value, and the constraint on their number, None without one.

        Returns:
            Choices of true and false; the constraint is `None` for any number.
        """
        if self._parts is None:
            default = [at for at, kept in enumerate(self._kept(self.default_value())) if kept]
            choices = [
                Categorical(
                    [True, False],
                    weights=self._weights_of_part(at),
                    default=at in default,
                    label=Label(f"{self.label}{SEPARATOR}{at}"),
                )
                for at in range(len(self.values))
            ]
            constraint = None
            if self.n_chosen is not None:
                total = sum(choices[1:], start=choices[0] + 0)
                constraint = ExpressionConstraint(
                    total == self.n_chosen, label=Label(f"{self.label}{SEPARATOR}n")
                )
            self._parts = choices, constraint
        return self._parts

    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return why a sample has neither a valid list nor valid plain choices; else None."""
        if self.label in sample or f"{self.label}{SEPARATOR}0" not in sample:
            return super().check_contains(sample)
        choices, constraint = self.decomposition()
        for part in [*choices, *filter(None, [constraint])]:
            error = part.check_contains(sample)
            if error is not None:
                return error.inside(self.label)
        return None

    def check_value(self, value: Any) -> str | None:  # noqa: ANN401 - it is to be checked
        """Return the rule that the value breaks: list, number, distinct values; else None."""
        number = "any number of" if self.n_chosen is None else str(self.n_chosen)
        rule = f"a list of {number} distinct values of {self.values}"
        if not isinstance(value, list | tuple):
            return rule
        if self.n_chosen is not None and len(value) != self.n_chosen:
            return rule
        if any(position_of(one, self.values, self._positions) is None for one in value):
            return rule
        return None if sum(self._kept(value)) == len(value) else rule

    def value_in(self, sample: Sample) -> list[Any]:
        """Return the list of chosen values, in the order of the values."""
        if self.label in sample:
            return self._ordered(sample[self.label])
        kept = [sample[choice.label] for choice in self.decomposition()[0]]
        return list(itertools.compress(self.values, kept))

    def default_value(self) -> list[Any]:
        """Return the default: by default the first values, or all."""
        return self.values[: self.n_chosen] if self._default is None else list(self._default)

    def random_value(self, random_state: RandomState) -> list[Any]:
        """Return a random list: each value by its weight, or `n_chosen` without repeats."""
        if self.n_chosen is None:
            weights = self.weights or [0.5] * len(self.values)
            return [
                value
                for value, weight in zip(self.values, weights, strict=True)
                if random_state.random() < weight
            ]
        left = list(range(len(self.values)))
        weights = list(self.weights or [1.0] * len(left))
        chosen = []
        for _ in range(self.n_chosen):
            at = _weighted_position(weights, random_state)
            chosen.append(left.pop(at))
            weights.pop(at)
        return [self.values[at] for at in sorted(chosen)]

    def grid_values(self, granularity: int) -> Iterator[list[Any]]:
        """Yield the combinations as lists; without `n_chosen` of all sizes, from the empty list."""
        sizes = range(len(self.values) + 1) if self.n_chosen is None else [self.n_chosen]
        for size in sizes:
            yield from map(list, itertools.combinations(self.values, size))

    def _weights_of_part(self, at: int) -> list[float] | None:
        if self.n_chosen is not None or self.weights is None:
            return None
        return [self.weights[at], 1 - self.weights[at]]

    def _kept(self, chosen: Sequence[Any]) -> list[bool]:
        """Return for each value whether it is chosen."""
        chosen_at = {position_of(one, self.values, self._positions) for one in chosen}
        return [at in chosen_at for at in range(len(self.values))]

    def _ordered(self, chosen: Sequence[Any]) -> list[Any]:
        return list(itertools.compress(self.values, self._kept(chosen)))


def _weighted_position(weights: list[float], random_state: RandomState) -> int:
    """Return a random position, by weights that need not have the sum 1."""
    number = random_state.random() * sum(weights)
    possible = [at for at, weight in enumerate(weights) if weight > 0]
    for at in possible:
        number -= weights[at]
        if number < 0:
            return at
    return possible[-1]
