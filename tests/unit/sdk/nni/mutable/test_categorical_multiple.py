"""Several values out of many, as a list or as plain choices."""

import random
from typing import Any

import pytest

from nni.mutable import Categorical, CategoricalMultiple, ConstraintViolation, Mutable


def is_plain(mutable: Mutable) -> bool:
    return isinstance(mutable, Categorical)


def test_fixed_number_has_combinations() -> None:
    pair = CategoricalMultiple([1, 2, 3], n_chosen=2, label="x")

    assert list(pair.grid()) == [[1, 2], [1, 3], [2, 3]]
    assert pair.default() == [1, 2]


def test_any_number_has_all_subsets_by_size() -> None:
    subset = CategoricalMultiple([1, 2, 3], label="x")

    assert list(subset.grid()) == [[], [1], [2], [3], [1, 2], [1, 3], [2, 3], [1, 2, 3]]
    assert subset.default() == [1, 2, 3]


def test_default_may_be_given_in_any_order() -> None:
    assert CategoricalMultiple([1, 2, 3], default=[3, 1], label="x").default() == [1, 3]
    assert CategoricalMultiple([1, 2, 3], default=[], label="x").default() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_chosen": 0}, r"n_chosen must be in \[1, 3\], got 0"),
        ({"n_chosen": 4}, r"n_chosen must be in \[1, 3\], got 4"),
        ({"n_chosen": 1, "weights": [0.5, 0.5, 0.5]}, "the sum 1"),
        ({"n_chosen": 2, "weights": [1, 0, 0]}, "weights must be > 0 for 2 values"),
        ({"weights": [0.5]}, "weights must be 3"),
        ({"default": [4]}, "default must be a list of any number of"),
        ({"n_chosen": 1, "default": [1, 2]}, "default must be a list of 1"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CategoricalMultiple([1, 2, 3], label="x", **arguments)


@pytest.mark.parametrize("value", [1, "12", [1], [1, 2, 3], [1, 1], [1, 4], [1, []], None])
def test_wrong_values_are_found(value: object) -> None:
    assert not CategoricalMultiple([1, 2, 3], n_chosen=2, label="x").contains({"x": value})


def test_frozen_list_has_the_order_of_the_values() -> None:
    assert CategoricalMultiple("abc", n_chosen=2, label="x").freeze({"x": ["c", "a"]}) == ["a", "c"]


def test_values_that_cannot_be_keys() -> None:
    choice = CategoricalMultiple([[1], [2], [3]], n_chosen=2, label="x")

    assert choice.freeze({"x": [[3], [1]]}) == [[1], [3]]
    assert not choice.contains({"x": [[3], [3]]})


def test_each_value_is_chosen_by_its_probability() -> None:
    choice = CategoricalMultiple("ab", weights=[1, 0], label="x")
    fair = CategoricalMultiple("ab", label="x")
    state = random.Random(0)

    assert all(choice.random(random_state=state) == ["a"] for _ in range(20))
    drawn = [tuple(fair.random(random_state=state)) for _ in range(100)]
    assert set(drawn) == {(), ("a",), ("b",), ("a", "b")}


def test_fixed_number_is_drawn_without_repetition_by_weight() -> None:
    choice = CategoricalMultiple("abc", n_chosen=2, weights=[0, 0.5, 0.5], label="x")
    equal = CategoricalMultiple("abc", n_chosen=2, label="x")
    state = random.Random(0)

    assert all(choice.random(random_state=state) == ["b", "c"] for _ in range(20))
    drawn = {tuple(equal.random(random_state=state)) for _ in range(60)}
    assert drawn == {("a", "b"), ("a", "c"), ("b", "c")}


class Highest:
    def random(self) -> float:
        return 1 - 2.0**-53


def test_largest_random_number_gives_a_possible_value() -> None:
    choice = CategoricalMultiple("abc", n_chosen=1, weights=[0.1, 0.9, 0], label="x")

    assert choice.random({}, Highest()) == ["b"]


def test_it_is_one_leaf_by_default() -> None:
    assert list(CategoricalMultiple("ab", label="x").simplify()) == ["x"]


def test_decomposition_of_any_number() -> None:
    choice = CategoricalMultiple("ab", weights=[0.2, 0.7], default=["b"], label="x")

    leaves = choice.simplify(is_plain)

    assert list(leaves) == ["x/0", "x/1"]
    first = leaves["x/0"]
    assert isinstance(first, Categorical)
    assert first.weights == [0.2, 0.8]
    assert [leaf.default() for leaf in leaves.values()] == [False, True]


def test_decomposition_of_a_fixed_number_has_a_constraint() -> None:
    choice = CategoricalMultiple("abc", n_chosen=2, label="x")

    leaves = choice.simplify(is_plain)

    assert list(leaves) == ["x/0", "x/1", "x/2", "x/n"]
    assert leaves["x/n"].contains({"x/0": True, "x/1": False, "x/2": True})
    error = leaves["x/n"].check_contains({"x/0": True, "x/1": True, "x/2": True})
    assert isinstance(error, ConstraintViolation)


def test_single_value_can_be_decomposed() -> None:
    leaves = CategoricalMultiple("a", n_chosen=1, label="x").simplify(is_plain)

    assert leaves["x/n"].contains({"x/0": True})


def test_sample_may_have_the_plain_choices() -> None:
    choice = CategoricalMultiple("abc", n_chosen=2, label="x")

    assert choice.freeze({"x/0": True, "x/1": False, "x/2": True}) == ["a", "c"]
    error = choice.check_contains({"x/0": True, "x/1": False, "x/2": False})
    assert isinstance(error, ConstraintViolation)
    assert error.paths == ["x/n", "x"]


def test_decompositions_are_equal() -> None:
    one, other = (CategoricalMultiple("ab", n_chosen=1, label="x") for _ in range(2))
    theirs = other.simplify(is_plain)

    assert all(leaf.equals(theirs[label]) for label, leaf in one.simplify(is_plain).items())


def test_length_is_the_number_of_values() -> None:
    assert len(CategoricalMultiple("abc", n_chosen=1, label="x")) == 3


def test_sizes_of_subsets_can_be_computed() -> None:
    choice = CategoricalMultiple([1, 2], n_chosen=1, label="x")

    assert (choice[0] * 10).freeze({"x": [2]}) == 20
