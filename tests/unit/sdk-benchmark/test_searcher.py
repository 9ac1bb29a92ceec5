"""Tuners of NNI as searchers."""

from __future__ import annotations

import pytest

from nni_benchmark.problem import Problem, choice, uniform
from nni_benchmark.runs import run
from nni_benchmark.searcher import TunerSearcher, tuner_searchers
from nni_benchmark.suite import suite_problems


@pytest.mark.parametrize("name", ["branin", "nested", "budget", "thin", "zdt1", "branin+noise"])
def test_same_seed_gives_the_same_run(name: str) -> None:
    problem, searcher = suite_problems()[name], TunerSearcher("TPE")

    first, second, other = (run(searcher, problem, seed, 12) for seed in (0, 0, 1))

    assert first == second
    assert first.changes != other.changes


def test_spaces_that_a_tuner_refuses_are_not_taken() -> None:
    words = Problem("words", {"c": choice("a", "b")}, lambda _: (0.0,), 0.0)

    assert not TunerSearcher("GPTuner").takes(words)
    assert TunerSearcher("TPE").takes(words)


def test_search_that_runs_out_of_points_ends() -> None:
    three = Problem("three", {"c": choice(1, 2, 3)}, lambda point: (point["c"],), 1.0)

    made = run(TunerSearcher("GridSearch"), three, 0, 10)

    assert made.trials == 10
    assert made.regret(10) == 0.0


def test_arguments_of_the_tuner_and_another_name_are_kept() -> None:
    line = Problem("line", {"x": uniform(0, 1)}, lambda point: (point["x"],), 0.0)
    searcher = TunerSearcher("Evolution", {"population_size": 5}, "few")

    assert run(searcher, line, 0, 3).searcher == "few"


def test_built_in_tuners_have_their_own_names() -> None:
    names = [searcher.name for searcher in tuner_searchers()]

    assert names[0] == "auto"
    assert {"TPE", "GPTuner", "SMAC", "Anneal", "Evolution", "Random", "CmaEs"} <= set(names)


def test_open_trials_end_in_the_order_of_their_start() -> None:
    asked: list[float] = []
    line = Problem("line", {"x": uniform(0, 1)}, lambda point: (_noted(asked, point["x"]),), 0.0)

    run(TunerSearcher("Random", concurrency=4), line, 0, 10)
    alone = list(asked)
    asked.clear()
    run(TunerSearcher("Random"), line, 0, 10)

    assert asked == alone


def test_open_trials_are_unknown_to_the_tuner() -> None:
    problem = suite_problems()["branin"]

    one, ten = (run(TunerSearcher("TPE", concurrency=count), problem, 0, 40) for count in (1, 10))

    assert ten.searcher == "TPE@10"
    assert one.changes != ten.changes


def test_concurrency_must_be_a_count() -> None:
    with pytest.raises(ValueError, match="concurrency must be an int >= 1, got 0"):
        TunerSearcher("TPE", concurrency=0)


def _noted(values: list[float], value: float) -> float:
    values.append(value)
    return value
