"""Sampling, enumerating and validating follow from the leaves."""

import random
from collections.abc import Iterable
from typing import Any

import pytest

from nni.mutable import (
    Categorical,
    ExpressionConstraint,
    LabeledMutable,
    MutableList,
    Numerical,
    Sample,
    SampleMissingError,
    SampleValidationError,
)
from nni.mutable.base import is_labeled


def space() -> MutableList:
    return MutableList([Categorical([1, 2], label="a"), Categorical("xy", label="b")])


def with_rule() -> MutableList:
    a, b = Categorical([1, 3], label="a"), Categorical([2, 4], label="b")
    return MutableList([a, b, ExpressionConstraint(a + b == 5, label="c")])


def test_leaves_are_in_the_order_of_discovery() -> None:
    both = MutableList([Categorical([1], label="z"), *space()])

    assert list(both.simplify()) == ["z", "a", "b"]


def test_equal_leaves_of_one_label_are_one_dimension() -> None:
    twice = MutableList([Categorical([1, 2], label="a"), Categorical([1, 2], label="a")])

    assert list(twice.simplify()) == ["a"]
    assert list(twice.grid()) == [[1, 1], [2, 2]]


@pytest.mark.claim("nas", 21)
def test_different_leaves_of_one_label_are_refused() -> None:
    both = MutableList([Categorical([1, 2], label="a"), Categorical([1, 3], label="a")])

    with pytest.raises(ValueError, match="the same label must be equal, but 'a' is"):
        both.simplify()


def test_last_leaf_changes_fastest() -> None:
    assert list(space().grid()) == [[1, "x"], [1, "y"], [2, "x"], [2, "y"]]


@pytest.mark.claim("nas", 20)
def test_grid_leaves_out_what_breaks_a_constraint() -> None:
    assert list(with_rule().grid()) == [[1, 4, None], [3, 2, None]]


def test_grid_respects_the_memo_and_restores_it() -> None:
    memo = {"a": 2}
    seen = [(value, dict(memo)) for value in space().grid(memo)]

    assert seen == [([2, "x"], {"a": 2, "b": "x"}), ([2, "y"], {"a": 2, "b": "y"})]
    assert memo == {"a": 2}


def test_grid_samples_are_independent() -> None:
    samples = list(space().grid_samples())

    assert samples[0] == {"a": 1, "b": "x"}
    assert samples[-1] == {"a": 2, "b": "y"}


def test_granularity_reaches_the_leaves() -> None:
    both = MutableList([Categorical([1, 2], label="a"), Numerical(0, 1, label="r")])

    assert len(list(both.grid())) == 2
    assert len(list(both.grid(granularity=3))) == 2 * 7


def test_granularity_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="granularity must be >= 1, got 0"):
        list(space().grid(granularity=0))


def test_default_fills_the_memo() -> None:
    memo: Sample = {"b": "y"}

    assert space().default(memo) == [1, "y"]
    assert memo == {"b": "y", "a": 1}


def test_random_is_repeatable_and_fills_the_memo() -> None:
    memo: Sample = {}
    first = space().random(memo, random.Random(4))

    assert space().random(random_state=random.Random(4)) == first
    assert space().freeze(memo) == first


def test_random_without_a_state_uses_the_module() -> None:
    random.seed(3)
    first = [space().random() for _ in range(8)]
    random.seed(3)

    assert [space().random() for _ in range(8)] == first


def test_memo_stays_when_a_constraint_fails() -> None:
    memo: Sample = {"a": 1, "b": 2}

    with pytest.raises(SampleValidationError, match="must satisfy"):
        with_rule().random(memo, random.Random(0))
    with pytest.raises(SampleValidationError, match="must satisfy"):
        with_rule().default(memo)

    assert memo == {"a": 1, "b": 2}


def test_robust_default_is_the_default_where_that_is_valid() -> None:
    assert space().robust_default() == [1, "x"]


def test_robust_default_looks_for_a_valid_sample() -> None:
    memo: Sample = {}

    first = with_rule().robust_default(memo)

    assert first in ([1, 4, None], [3, 2, None])
    assert with_rule().robust_default() == first
    assert with_rule().freeze(memo) == first


def test_robust_default_respects_the_memo() -> None:
    assert with_rule().robust_default({"b": 2}) == [3, 2, None]


def test_robust_default_ends_after_its_retries() -> None:
    with pytest.raises(ValueError, match="one of 7 random samples must be valid"):
        with_rule().robust_default({"a": 1, "b": 2}, retries=7)


def test_freeze_names_the_missing_label() -> None:
    with pytest.raises(SampleMissingError, match="no value for label 'b'"):
        space().freeze({"a": 1})


@pytest.mark.parametrize("sample", [None, 3, "n", ["n"]])
def test_what_is_no_dict_is_no_sample(sample: Any) -> None:
    assert not space().contains(sample)
    with pytest.raises(SampleValidationError, match="must be a dict of labels to values, got"):
        space().freeze(sample)


def test_sample_may_have_further_labels() -> None:
    assert space().freeze({"a": 1, "b": "x", "other": 3}) == [1, "x"]


@pytest.mark.parametrize("value", [None, [], {}, float("nan"), "xyz", object()])
def test_wrong_values_are_found_and_not_raised(value: object) -> None:
    leaves = [Categorical([1, 2], label="a"), Numerical(0, 1, label="a")]

    assert [leaf.contains({"a": value}) for leaf in leaves] == [False, False]


def test_validate_raises_what_check_contains_returns() -> None:
    with pytest.raises(SampleValidationError, match=r"must be one of \[1, 2\], got 3"):
        space().validate({"a": 3, "b": "x"})


def test_path_leads_to_the_leaf() -> None:
    error = space().check_contains({"a": 1, "b": "z"})

    assert error is not None
    assert error.paths == ["b", "[1]"]


class Parity(LabeledMutable):
    def check_value(self, value: object) -> str | None:
        return None if value in {"odd", "even"} else "odd or even"

    def default_value(self) -> str:
        return "odd"

    def random_value(self, random_state: object) -> str:
        return "even"

    def grid_values(self, granularity: int) -> Iterable[str]:  # type: ignore[override] # shorter
        return ("odd", "even")


def test_leaf_of_a_third_party_has_four_methods() -> None:
    parity = Parity("n")

    assert (parity.default(), parity.random(), list(parity.grid())) == (
        "odd",
        "even",
        ["odd", "even"],
    )


def test_mutable_without_a_rule_equals_itself_only() -> None:
    parity = Parity("n")

    assert parity.equals(parity)
    assert not parity.equals(Parity("n"))


def test_labeled_mutables_are_leaves_by_default() -> None:
    assert is_labeled(Parity("n"))
    assert not is_labeled(space())
