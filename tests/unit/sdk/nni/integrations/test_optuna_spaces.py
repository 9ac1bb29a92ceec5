from typing import Any

import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from nni.hpo.space.parser import parse_space
from nni.integrations._optuna_spaces import entry_of, searched, shown, value_of

SPACE = {
    "model": {
        "_type": "choice",
        "_value": [{"_name": "deep", "layers": {"_type": "randint", "_value": [1, 5]}}, [1, 2]],
    },
    "rate": {"_type": "loguniform", "_value": [0.01, 1]},
    "noise": {"_type": "normal", "_value": [2, 1]},
}


@pytest.mark.parametrize(
    ("distribution", "entry"),
    [
        (FloatDistribution(0, 1), ("uniform", [0, 1])),
        (FloatDistribution(0.1, 1, log=True), ("loguniform", [0.1, 1])),
        (FloatDistribution(0, 1, step=0.25), ("quniform", [0, 1, 0.25])),
        (FloatDistribution(0.1, 1.1, step=0.5), ("choice", [0.1, 0.6, 1.1])),
        (FloatDistribution(3, 3), ("choice", [3])),
        (IntDistribution(1, 8), ("randint", [1, 9])),
        (IntDistribution(1, 8, log=True), ("qloguniform", [1, 8, 1])),
        (IntDistribution(1, 7, step=3), ("choice", [1, 4, 7])),
        (CategoricalDistribution([None, "a", 1]), ("choice", [None, "a", 1])),
    ],
    ids=str,
)
def test_distribution_has_its_entry(distribution: BaseDistribution, entry: tuple[str, Any]) -> None:
    found = entry_of("x", distribution)

    assert (found["_type"], found["_value"]) == entry
    parse_space({"x": found})  # raises for an entry that breaks a rule


def test_many_odd_steps_have_no_entry() -> None:
    with pytest.raises(ValueError, match="'x' must have at most 1000 steps"):
        entry_of("x", FloatDistribution(0.0005, 2.0005, step=0.001))


def test_values_are_whole_and_on_the_step() -> None:
    assert value_of(FloatDistribution(0, 1, step=0.1), 0.30000001) == 0.1 * 3
    assert type(value_of(IntDistribution(1, 8, log=True), 3.0)) is int
    assert value_of(CategoricalDistribution(["a"]), "a") == "a"


def test_active_parameters_of_a_branch_have_their_path() -> None:
    space = parse_space(SPACE)
    deep = {"model": {"_name": "deep", "layers": 3}, "rate": 0.1, "noise": 2}

    assert {path: value for path, value, _ in searched(space, deep)} == {
        "model": 0,
        "model/deep/layers": 3,
        "rate": 0.1,
        "noise": pytest.approx(0.5),  # the quantile of the mean
    }
    assert {path: value for path, value, _ in shown(space, deep)} == {
        "model": "deep",
        "model/deep/layers": 3,
        "rate": 0.1,
        "noise": 2,
    }


def test_options_of_other_kinds_are_shown_as_json() -> None:
    space = parse_space(SPACE)

    found = {path: value for path, value, _ in shown(space, {**_rest(), "model": [1, 2]})}

    assert found["model"] == "[1,2]"


def test_a_missing_value_is_named() -> None:
    with pytest.raises(ValueError, match="'model' must have a value"):
        list(shown(parse_space(SPACE), _rest()))


def _rest() -> dict[str, Any]:
    return {"rate": 0.1, "noise": 2}
