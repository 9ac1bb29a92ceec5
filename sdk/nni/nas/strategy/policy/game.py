"""Choice of a sample as a game: one step for each dimension, and a reward at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nni.mutable import (
    Categorical,
    CategoricalMultiple,
    LabeledMutable,
    MutableAnnotation,
    Sample,
)


class SampleGame:
    """Game whose actions choose the values of a sample, one dimension after another.

    A choice of any subset has a step for each of its values, in which action 0 keeps the value.

    Args:
        leaves: the model space, as `simplify` returns it.

    Raises:
        ValueError: a dimension is numerical, or a choice of a fixed number of several values.

    Examples:
        >>> from nni.mutable import Categorical
        >>> from nni.nas.strategy.policy.game import SampleGame
        >>> game = SampleGame({"op": Categorical(["conv", "pool", "skip"], label="op")})
        >>> game.action_counts
        (3,)
        >>> game.sample([2])
        {'op': 'skip'}
    """

    def __init__(self, leaves: Mapping[str, LabeledMutable]) -> None:
        self._turns = {
            label: _turns_of(leaf)
            for label, leaf in leaves.items()
            if not isinstance(leaf, MutableAnnotation)
        }
        self.action_counts: tuple[int, ...] = tuple(
            turns.actions for turns in self._turns.values() for _ in range(turns.steps)
        )
        """Number of actions of each step."""

    def sample(self, actions: Sequence[int]) -> Sample:
        """Return the sample that the actions of all steps choose."""
        left = iter(actions)
        return {label: turns.value(left) for label, turns in self._turns.items()}


@dataclass(frozen=True, slots=True)
class _Turns(ABC):
    """Base of the steps in which a game's actions choose the value of one dimension."""

    values: tuple[Any, ...]

    @property
    @abstractmethod
    def steps(self) -> int:
        """Number of steps."""

    @property
    @abstractmethod
    def actions(self) -> int:
        """Number of actions of each step."""

    @abstractmethod
    def value(self, actions: Iterator[int]) -> object:
        """Take the actions of the steps; return the value."""


class _OneOf(_Turns):
    """Steps of a dimension that is one of several values: one step."""

    steps = 1

    @property
    def actions(self) -> int:
        return len(self.values)

    def value(self, actions: Iterator[int]) -> object:
        return self.values[next(actions)]


class _ListOfOne(_OneOf):
    """Steps of a dimension that is a list of one value: one step."""

    def value(self, actions: Iterator[int]) -> object:
        return [self.values[next(actions)]]


class _Subset(_Turns):
    """Steps of a dimension that is any subset: one for each value, which action 0 keeps."""

    actions = 2

    @property
    def steps(self) -> int:
        return len(self.values)

    def value(self, actions: Iterator[int]) -> object:
        return [one for one in self.values if next(actions) == 0]


def _turns_of(leaf: LabeledMutable) -> _Turns:
    match leaf:
        case Categorical():
            return _OneOf(tuple(leaf.values))
        case CategoricalMultiple(n_chosen=None):
            return _Subset(tuple(leaf.values))
        case CategoricalMultiple(n_chosen=1):
            return _ListOfOne(tuple(leaf.values))
    raise ValueError(
        f"PolicyBasedRL chooses one of several values, or any subset of them; {leaf.label!r} is "
        f"{leaf!r:.200}; use RegularizedEvolution"
    )
