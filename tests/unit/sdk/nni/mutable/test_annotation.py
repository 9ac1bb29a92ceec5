"""Annotations have no value; constraints reject samples."""

from collections.abc import Iterator

import pytest

from nni.mutable import (
    Categorical,
    Constraint,
    ConstraintViolation,
    ExpressionConstraint,
    MutableAnnotation,
    MutableList,
    Sample,
    SampleMissingError,
    SampleValidationError,
)

A = Categorical([1, 3], label="a")
B = Categorical([2, 4], label="b")


class Remark(MutableAnnotation):
    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        return None


def test_annotation_is_frozen_to_none_and_absent_from_samples() -> None:
    remark = Remark("remark")

    assert remark.freeze({"remark": 3}) is None
    assert remark.default_sample() == remark.random_sample() == {}
    assert list(remark.grid_samples()) == [{}]


def test_annotation_is_a_leaf() -> None:
    assert list(MutableList([A, Remark("remark")]).simplify()) == ["a", "remark"]


def test_violated_constraint_shows_rule_and_values() -> None:
    rule = ExpressionConstraint(A + B == 5, label="c")

    error = rule.check_contains({"a": 1, "b": 2})

    assert isinstance(error, ConstraintViolation)
    assert str(error) == "the sample must satisfy ((a + b) == 5), got a=1, b=2 (in c)"
    assert rule.check_contains({"a": 1, "b": 4}) is None


def test_constraint_needs_its_labels() -> None:
    error = ExpressionConstraint(A + B == 5, label="c").check_contains({"a": 1})

    assert isinstance(error, SampleMissingError)
    assert error.paths == ["b", "c"]


def test_symbols_of_a_constraint_are_dimensions() -> None:
    rule = ExpressionConstraint(A + B == 5, label="c")

    assert list(rule.simplify()) == ["a", "b", "c"]
    assert list(rule.grid_samples()) == [{"a": 1, "b": 4}, {"a": 3, "b": 2}]


def test_constraint_before_its_symbols_holds_too() -> None:
    class Even(Constraint):
        def check_contains(self, sample: Sample) -> SampleValidationError | None:
            if "a" not in sample:
                return SampleMissingError.of("a", sample)
            return None if sample["a"] % 2 == 0 else ConstraintViolation("a must be even")

    space = MutableList([Even("even"), Categorical([1, 2, 3], label="a")])

    assert list(space.grid()) == [[None, 2]]


def test_grid_stops_early_where_a_constraint_is_known() -> None:
    enumerated: list[int] = []

    class Counted(Categorical):
        def grid_values(self, granularity: int) -> Iterator[int]:
            for value in super().grid_values(granularity):
                enumerated.append(value)
                yield value

    rule = ExpressionConstraint(A == 3, label="c")
    space = MutableList([A, rule, Counted([1, 2], label="z")])

    assert list(space.grid()) == [[3, None, 1], [3, None, 2]]
    assert enumerated == [1, 2]


def test_only_expressions_are_constraints() -> None:
    with pytest.raises(TypeError, match="expr must be an expression of symbols, got True"):
        ExpressionConstraint(True, label="c")  # type: ignore[arg-type] # what is tested
