from typing import Any

import numpy as np
import pytest
from scipy import stats

from nni.hpo import Choice, Uniform
from nni.integrations._distributions import ParameterDistributions


def test_options_are_positions_and_come_back_as_the_same_objects() -> None:
    objects = [dict, len]
    distributions = ParameterDistributions({"a": objects, "b": Choice("x", "y")})

    space = distributions.search_space()

    assert space["a"] == space["b"] == {"_type": "choice", "_value": [0, 1]}
    assert distributions.parameters({"a": 1, "b": 0}) == {"a": len, "b": "x"}


def test_arrays_have_options_of_python() -> None:
    distributions = ParameterDistributions({"a": np.array([2, 4])})

    assert type(distributions.parameters({"a": 1})["a"]) is int


def test_samplings_and_entries_are_searched_as_they_are() -> None:
    distributions = ParameterDistributions(
        {"a": Uniform(0, 1), "b": {"_type": "randint", "_value": [1, 9]}}
    )

    assert distributions.search_space() == {
        "a": {"_type": "uniform", "_value": [0, 1]},
        "b": {"_type": "randint", "_value": [1, 9]},
    }
    assert distributions.parameters({"a": 0.5, "b": 3}) == {"a": 0.5, "b": 3}


def test_quantiles_of_distributions_of_scipy_are_searched() -> None:
    distributions = ParameterDistributions(
        {"a": stats.loguniform(1, 100), "b": stats.randint(2, 6)}
    )

    assert distributions.search_space()["a"] == {"_type": "uniform", "_value": [0, 1]}
    found = distributions.parameters({"a": 0.5, "b": 0.5})
    assert found["a"] == pytest.approx(10)
    assert found["b"] == 3  # of 2, 3, 4, 5


def test_several_dicts_are_a_choice_of_one_of_them() -> None:
    distributions = ParameterDistributions([{"a": [5]}, {"b": Uniform(0, 1)}])

    (option, other) = distributions.search_space()["space"]["_value"]

    assert option == {"_name": "0", "a": {"_type": "choice", "_value": [0]}}
    assert distributions.parameters({"space": {"_name": "0", "a": 0}}) == {"a": 5}
    assert other["_name"] == "1"
    assert distributions.parameters({"space": {"_name": "1", "b": 0.5}}) == {"b": 0.5}


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ("C", TypeError, "a dict or a list of dicts, got 'C'"),
        ([], ValueError, "at least one dict"),
        ([3], TypeError, "must hold dicts, got 3"),
        ({"C": []}, ValueError, "'C' must have at least one option"),
        ({"C": "linear"}, TypeError, "'C' must have a list of options, .* got 'linear'"),
        ({"C": 3}, TypeError, "got 3"),
    ],
    ids=["text", "empty", "numbers", "no option", "text as options", "number"],
)
def test_a_wrong_form_is_named(given: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        ParameterDistributions(given)
