"""Importance of hyperparameters."""

from random import Random
from typing import Any

import pytest

from nni.hpo.importance import MOST_TRIALS, columns_of, importances
from nni.hpo.space.parser import parse_space

SPACE: dict[str, Any] = {
    "a": {"_type": "uniform", "_value": [0, 1]},
    "b": {"_type": "loguniform", "_value": [1, 100]},
    "kind": {"_type": "choice", "_value": ["x", "y"]},
    "unused": {"_type": "normal", "_value": [0, 1]},
}
NESTED: dict[str, Any] = {
    "model": {
        "_type": "choice",
        "_value": [{"_name": "m", "lr": {"_type": "uniform", "_value": [0, 1]}}, {"_name": "n"}],
    },
    "steps": {"_type": "randint", "_value": [1, 10]},
}


def trials(space: dict[str, Any], value: Any, count: int = 300) -> list[tuple[Any, Any]]:
    rng = Random(0)
    parsed = parse_space(space)
    draws = [parsed.draw(rng) for _ in range(count)]
    return [(draw, value(draw)) for draw in draws]


def test_shares_are_those_of_the_variance() -> None:
    # Variances 9/12 and 1/4: of a sum of independent parts, 75 % and 25 %.
    known = trials(SPACE, lambda p: 3 * p["a"] + (p["kind"] == "x"))

    found = importances(SPACE, known)

    assert list(found.shares)[:2] == ["a", "kind"]
    # A forest on 300 results flattens the edges of a slope; warping bends the worse half.
    assert found.shares["a"] == pytest.approx(0.75, abs=0.12)
    assert found.shares["kind"] == pytest.approx(0.25, abs=0.12)
    assert found.shares["b"] < 0.03
    assert found.shares["unused"] < 0.03
    assert found.interactions < 0.1
    assert sum(found.shares.values()) + found.interactions == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["a", "kind"])
def test_only_parameter_has_the_whole_variance(name: str) -> None:
    space = {name: SPACE[name]}
    known = trials(space, lambda p: float(p[name] == "x" if name == "kind" else p[name] > 0.5), 40)

    found = importances(space, known)

    assert found.shares == {name: pytest.approx(1.0)}
    assert found.interactions == pytest.approx(0.0, abs=1e-9)


def test_what_two_parameters_do_together_is_no_share_of_either() -> None:
    known = trials(SPACE, lambda p: float((p["a"] > 0.5) == (p["kind"] == "x")))

    found = importances(SPACE, known)

    assert found.interactions > 0.7


def test_parameters_of_branches_have_their_paths() -> None:
    def value(p: dict[str, Any]) -> float:
        return 5 * p["model"]["lr"] if p["model"]["_name"] == "m" else 2.5

    found = importances(NESTED, trials(NESTED, value))

    assert next(iter(found.shares)) == "model/m/lr"
    assert found.shares.keys() == {"model", "model/m/lr", "steps"}


def test_the_metric_is_taken_from_the_reports() -> None:
    known = trials(SPACE, lambda p: {"default": p["a"], "cost": p["b"], "word": "x"})

    assert next(iter(importances(SPACE, known).shares)) == "a"
    assert next(iter(importances(SPACE, known, metric="cost").shares)) == "b"


def test_same_results_give_the_same_answer() -> None:
    known = trials(SPACE, lambda p: p["a"])

    assert importances(SPACE, known) == importances(SPACE, known)


def test_results_that_say_nothing_are_left_out() -> None:
    known = trials(SPACE, lambda p: p["a"], 20)
    odd = [
        ({**known[0][0], "TRIAL_BUDGET": 3}, 0.5),
        ({"a": 7}, 1.0),
        (None, 1.0),
        (known[0][0], float("nan")),
        (known[0][0], "text"),
    ]

    assert importances(SPACE, [*known, *odd]).trials == 21


def test_of_very_many_results_a_part_is_used() -> None:
    known = trials({"a": SPACE["a"]}, lambda p: p["a"], 10) * (MOST_TRIALS // 5)

    assert importances({"a": SPACE["a"]}, known).trials == MOST_TRIALS


def test_part_of_very_many_results_is_spread_over_all() -> None:
    space = {"a": SPACE["a"], "kind": SPACE["kind"]}
    early = trials(space, lambda p: p["a"], 10) * (MOST_TRIALS // 10)
    late = trials(space, lambda p: 4.0 * (p["kind"] == "x"), 10) * (MOST_TRIALS // 10)

    found = importances(space, early + late)

    assert found.trials == MOST_TRIALS
    assert found.shares["kind"] > 0.2


def test_too_few_or_equal_results_are_refused() -> None:
    known = trials(SPACE, lambda p: p["a"], 3)

    with pytest.raises(ValueError, match="at least 4 trials"):
        importances(SPACE, known)
    with pytest.raises(ValueError, match="not all equal"):
        importances(SPACE, [(parameters, 1.0) for parameters, _ in known] * 3)
    with pytest.raises(ValueError, match="not empty"):
        importances({}, [({}, float(number)) for number in range(9)])


def test_results_of_another_form_are_refused() -> None:
    with pytest.raises(TypeError, match="the result of optimize, or a Study; got int"):
        importances(SPACE, 5)


@pytest.mark.parametrize(
    ("placed", "coordinates", "scaled"),
    [
        ({"n": 5.0, "u": 2.5, "l": 10.0, "c": 2}, [0.5, 0.25, 0.5, 2.0], [0.5, 0.25, 0.5, 1.0]),
        (
            {"n": 7.0, "u": 0.0, "l": 1.0, "c": 1},
            [0.8413447, 0.0, 0.0, 1.0],
            [0.8413447, 0, 0, 0.5],
        ),
        ({"n": 1.0, "u": 10.0, "l": 100.0, "c": 0}, [0.0227501, 1, 1, 0], [0.0227501, 1, 1, 0]),
        ({}, [0.5, 0.5, 0.5, 0.0], [0.5, 0.5, 0.5, 0.0]),
    ],
)
def test_coordinate_is_the_quantile_of_the_prior_or_the_position_of_an_option(
    placed: dict[str, Any], coordinates: list[float], scaled: list[float]
) -> None:
    columns = columns_of(
        parse_space(
            {
                "n": {"_type": "normal", "_value": [5, 2]},
                "u": {"_type": "uniform", "_value": [0, 10]},
                "l": {"_type": "loguniform", "_value": [1, 100]},
                "c": {"_type": "choice", "_value": ["a", "b", "c"]},
            }
        )
    )

    assert [column.options for column in columns] == [0, 0, 0, 3]
    assert [one.coordinate(placed) for one in columns] == pytest.approx(coordinates, abs=1e-6)
    assert [one.unit_coordinate(placed) for one in columns] == pytest.approx(scaled, abs=1e-6)


def test_four_results_are_enough() -> None:
    known = trials({"a": SPACE["a"]}, lambda p: p["a"], 4)

    assert importances({"a": SPACE["a"]}, known).trials == 4


def test_seed_of_the_forest_is_zero_unless_given() -> None:
    known = trials(SPACE, lambda p: p["a"], 20)

    zero, one = (importances(SPACE, known, seed=seed) for seed in (0, 1))

    assert importances(SPACE, known) == zero != one
