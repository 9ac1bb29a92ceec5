"""The conformance suite of mutables finds what breaks its rules."""

from collections.abc import Iterator
from typing import Any

import pytest

from nni.mutable import Categorical, ExpressionConstraint, Mutable, RandomState
from nni.testing import MutableConformance


class Broken(Categorical):
    """Draws values outside its domain, and repeats itself in the grid."""

    def random_value(self, random_state: RandomState) -> int:
        return 7 if random_state.random() < 2 else 0

    def grid_values(self, granularity: int) -> Iterator[Any]:
        yield from [1, 1]


class BrokenSuite(MutableConformance):
    def make(self) -> Mutable:
        return Broken([1, 2], label="a")


class UnstableSuite(MutableConformance):
    number = 0

    def make(self) -> Mutable:
        UnstableSuite.number += 1
        return Categorical([1, UnstableSuite.number + 1], label="a")


class ImpossibleSuite(MutableConformance):
    def make(self) -> Mutable:
        a = Categorical([1, 2], label="a")
        return ExpressionConstraint(a > 2, label="c")


def test_values_outside_the_domain_are_found() -> None:
    with pytest.raises(AssertionError):
        BrokenSuite().test_random_samples_are_contained()


def test_duplicates_in_the_grid_are_found() -> None:
    with pytest.raises(AssertionError):
        BrokenSuite().test_grid_has_no_duplicates()


def test_definition_that_changes_is_found() -> None:
    with pytest.raises(AssertionError):
        UnstableSuite().test_leaves_are_repeatable()


def test_mutable_without_a_valid_sample_is_found() -> None:
    with pytest.raises(AssertionError):
        ImpossibleSuite().test_grid_samples_are_contained()
    with pytest.raises(ValueError, match="random samples must be valid"):
        ImpossibleSuite().test_default_is_contained()
