"""Where asynchronous halving gets its configurations."""

import math
from random import Random

import pytest

from nni.hpo.advisors._searcher import TunerSearcher, check_searcher, parameter_count
from nni.hpo.space.parser import parse_space
from tests.support.search_spaces import NESTED

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


def searcher(name: str = "TPE") -> TunerSearcher:
    return TunerSearcher(name, SPACE, parse_space(SPACE), Random(0))


def test_a_model_is_made_of_the_greatest_budget_with_enough_results() -> None:
    ours = searcher()
    for number in range(60):
        x = number / 60
        ours.learn(1, {"x": x}, abs(x - 0.9))  # the small budget misleads
    for number in range(30):
        x = number / 30
        ours.learn(9, {"x": x}, abs(x - 0.1))

    drawn = [ours.draw() for _ in range(20)]

    assert sum(abs(d["x"] - 0.1) < abs(d["x"] - 0.9) for d in drawn if d is not None) >= 15


def test_results_without_a_number_are_left_out() -> None:
    ours = searcher()

    for _ in range(20):
        ours.learn(1, {"x": 0.5}, math.inf)

    assert ours.draw() is not None


def test_an_exhausted_tuner_draws_nothing() -> None:
    space = {"x": {"_type": "choice", "_value": [1, 2]}}
    ours = TunerSearcher("GridSearch", space, parse_space(space), Random(0))

    assert [ours.draw() for _ in range(3)] == [{"x": 1}, {"x": 2}, None]


def test_unknown_searchers_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="did you mean 'TPE'"):
        check_searcher(searcher="TPEE", eta=3)


def test_parameters_of_branches_count() -> None:
    assert parameter_count(parse_space(NESTED)) == 6


@pytest.mark.parametrize(("parameters", "needed"), [(1, 8), (4, 8), (5, 10)])
def test_model_starts_with_8_results_and_two_for_each_parameter(
    parameters: int, needed: int
) -> None:
    space = {f"x{number}": SPACE["x"] for number in range(parameters)}
    rng = Random(0)
    ours = TunerSearcher("Random", space, parse_space(space), rng)
    made_at: list[int] = []
    for number in range(1, 13):
        before = rng.getstate()
        ours.learn(1, dict.fromkeys(space, number / 13), float(number))
        if rng.getstate() != before:  # the seed of a new tuner
            made_at.append(number)

    assert made_at == [needed]


def test_results_at_the_budget_of_the_model_count_after_it_was_made() -> None:
    ours = searcher()
    for number in range(8):
        ours.learn(1, {"x": 0.9 + number / 100}, 1.0)
    for number in range(40):
        x = number / 40
        ours.learn(1, {"x": x}, abs(x - 0.1))

    drawn = [ours.draw() for _ in range(20)]

    assert sum(d["x"] < 0.4 for d in drawn if d is not None) >= 15


def test_name_of_a_searcher_is_a_text() -> None:
    with pytest.raises(ValueError, match="searcher must be the name of a tuner, got 3"):
        check_searcher(searcher=3)
