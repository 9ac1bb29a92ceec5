"""A categorical is one value out of several."""

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from nni.mutable import Categorical, MutableList
from nni.mutable.categorical import checked_weights, position_of, positions_of


@pytest.mark.claim("nas", 17)
@pytest.mark.parametrize("values", [[1, 1], []])
def test_values_are_distinct_and_at_least_one(values: list[int]) -> None:
    with pytest.raises(ValueError, match="values must"):
        Categorical(values, label="a")


@pytest.mark.parametrize("values", [[[1], [1]], [{"a": 1}, {"a": 1}], ["a", "a"]])
def test_equal_values_that_cannot_be_keys_are_found(values: list[Any]) -> None:
    with pytest.raises(ValueError, match="must be distinct"):
        Categorical(values, label="a")


def test_nested_mutables_are_refused() -> None:
    with pytest.raises(ValueError, match="values must not be mutable"):
        Categorical([1, MutableList([])], label="a")


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5], "weights must be 2"),
        ([0.5, 0.4], "the sum 1"),
        ([1.5, -0.5], r"in \[0, 1\]"),
        ([float("nan"), 0.5], r"in \[0, 1\]"),
    ],
)
def test_weights_are_a_distribution(weights: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Categorical([1, 2], weights=weights, label="a")


def test_weights_may_miss_the_sum_a_little() -> None:
    assert Categorical([1, 2], weights=[0.5, 0.5 + 5e-7], label="a").weights is not None


def test_default_is_the_first_value_or_the_given_one() -> None:
    assert Categorical([1, 2], label="a").default() == 1
    assert Categorical([1, 2], default=2, label="a").default() == 2
    assert Categorical([1, None], default=None, label="a").default() is None


def test_default_is_one_of_the_values() -> None:
    with pytest.raises(ValueError, match=r"default must be one of \[1, 2\], got 3"):
        Categorical([1, 2], default=3, label="a")


def test_grid_has_the_largest_weight_first() -> None:
    assert list(Categorical([1, 2, 3], label="a").grid()) == [1, 2, 3]
    weighted = Categorical([1, 2, 3, 4], weights=[0.2, 0.3, 0.2, 0.3], label="a")
    assert list(weighted.grid()) == [2, 4, 1, 3]


def test_values_may_be_of_any_type() -> None:
    values = [{"kernel": 3}, {"kernel": 5}, [1], None]
    choice = Categorical(values, label="a")

    assert list(choice.grid()) == values
    assert choice.contains({"a": {"kernel": 5}})
    assert not choice.contains({"a": {"kernel": 7}})


def test_list_stands_for_a_tuple_as_json_has_none() -> None:
    sizes = Categorical([(3, 3), (5, (5, 1))], label="a")

    assert sizes.freeze({"a": [5, [5, 1]]}) == (5, (5, 1))
    assert not sizes.contains({"a": [5, 5]})
    mixed = Categorical([(3, 3), [5, 5], {"x": 1}], label="a")
    assert mixed.freeze({"a": [3, 3]}) == (3, 3)
    assert mixed.freeze({"a": [5, 5]}) == [5, 5]


def test_frequencies_follow_the_weights() -> None:
    choice = Categorical("xyz", weights=[0.1, 0.6, 0.3], label="a")
    state = random.Random(0)

    drawn = Counter(choice.random(random_state=state) for _ in range(2000))

    # Three standard deviations of a binomial share: 3 * sqrt(0.6 * 0.4 / 2000) = 0.033.
    assert drawn["x"] / 2000 == pytest.approx(0.1, abs=0.033)
    assert drawn["y"] / 2000 == pytest.approx(0.6, abs=0.033)


def test_without_weights_all_values_occur() -> None:
    state = random.Random(0)

    assert {Categorical("xyz", label="a").random(random_state=state) for _ in range(50)} == {*"xyz"}


class Highest:
    def random(self) -> float:
        return 1 - 2.0**-53


def test_largest_random_number_gives_the_last_value() -> None:
    assert Categorical([1, 2], weights=[0.5, 0.4999999], label="a").random({}, Highest()) == 2
    assert Categorical([1, 2], label="a").random({}, Highest()) == 2


def test_generators_of_numpy_are_accepted() -> None:
    choice = Categorical([1, 2, 3], label="a")

    for state in (np.random.default_rng(0), np.random.RandomState(0)):
        assert choice.random(random_state=state) in {1, 2, 3}


def test_legacy_form() -> None:
    assert Categorical([1, 2], label="a").as_legacy_dict() == {"_type": "choice", "_value": [1, 2]}


def test_length_is_the_number_of_values() -> None:
    assert len(Categorical([1, 2, 3], label="a")) == 3


def test_values_of_the_caller_are_copied() -> None:
    values = [1, 2]
    choice = Categorical(values, label="a")
    values.append(3)

    assert choice.values == [1, 2]


def test_independent_probabilities_need_no_sum() -> None:
    assert checked_weights([1, 1], 2, is_distribution=False) == [1.0, 1.0]


def test_position_of_a_value() -> None:
    values = [1, "x"]
    assert position_of("x", values, positions_of(values)) == 1
    assert position_of("y", values, positions_of(values)) is None
    assert position_of([], values, positions_of(values)) is None
    assert positions_of([[1]]) is None
    assert position_of([1], [[0], [1]], None) == 1
