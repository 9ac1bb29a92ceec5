"""Offline suite."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nni.hpo.space.parser import parse_space
from nni_benchmark.comparisons import FEWEST_SEEDS
from nni_benchmark.runs import Run, Runs
from nni_benchmark.searcher import TunerSearcher
from nni_benchmark.suite import (
    CLASSIC,
    RECORDED_SCHEDULES,
    chosen_problems,
    chosen_searchers,
    irreproducible_runs,
    recorded_runs,
    search_all,
    suite_problems,
    with_recorded,
)
from nni_benchmark.tables import CURVES


def test_every_space_is_legal_and_every_kind_is_there() -> None:
    problems = suite_problems()

    for problem in problems.values():
        parse_space(problem.space)
    kinds = {kind for problem in problems.values() for kind in problem.kinds}
    assert kinds == {
        *("continuous", "mixed", "nested", "noisy"),
        *("constrained", "limited", "objectives", "table"),
    }
    assert max(len(problem.space) for problem in problems.values()) == 20


def test_problems_are_chosen_by_name_kind_and_group() -> None:
    assert [one.name for one in chosen_problems(["branin"])] == ["branin"]
    assert {one.name for one in chosen_problems(["classic"])} == set(CLASSIC)
    assert "zdt1" in {one.name for one in chosen_problems(["objectives"])}
    with pytest.raises(ValueError, match="problem must be one of classic, branin"):
        chosen_problems(["brain"])


def test_unknown_searcher_is_refused_as_the_registry_does() -> None:
    with pytest.raises(ValueError, match="did you mean 'TPE'"):
        chosen_searchers(["TPEE"])


def test_number_of_open_trials_may_follow_the_name_of_a_tuner() -> None:
    (searcher,) = chosen_searchers(["TPE@10"])

    assert searcher == TunerSearcher("TPE", concurrency=10)
    with pytest.raises(ValueError, match="after @ must follow a number >= 1, got 'TPE@0'"):
        chosen_searchers(["TPE@0"])


def test_several_processes_find_what_one_finds() -> None:
    searchers, problems = (
        [TunerSearcher("Random"), TunerSearcher("TPE")],
        chosen_problems(["branin"]),
    )
    one = search_all(searchers, problems, range(2), 12)

    two = search_all(searchers, problems, range(2), 12, processes=2)

    assert {(run.searcher, run.problem, run.seed): run for run in two} == {
        (run.searcher, run.problem, run.seed): run for run in one
    }


def test_several_processes_know_the_problems_of_the_suite_only() -> None:
    own = replace(suite_problems()["branin"], noise=1.0)

    with pytest.raises(ValueError, match="processes must be 1 for problems that"):
        search_all([TunerSearcher("Random")], [own], range(1), 5, processes=2)


def test_what_was_run_is_not_run_again() -> None:
    runs, reported = Runs(), list[Run]()
    known = Run("Random", "branin", 0, 5, ((1, 1.0),))
    runs.add(known)

    search_all(
        [TunerSearcher("Random")], chosen_problems(["branin"]), range(2), 5,
        runs=runs, on_run=lambda made, _: reported.append(made),
    )  # fmt: skip

    assert runs.get("Random", "branin", 0) == known
    assert [made.seed for made in reported] == [1]


def test_recorded_runs_stand_beside_new_ones_of_the_same_seeds() -> None:
    new, recorded = Runs({"a": "2"}), Runs({"a": "1", "b": "1"})
    new.add(Run("TPE", "branin", 0, 5, ((1, 1.0),)))
    for seed in range(3):
        recorded.add(Run("smac", "branin", seed, 5, ((1, 2.0),)))

    together = with_recorded(new, recorded, 2)

    assert [(run.searcher, run.seed) for run in together] == [("smac", 0), ("smac", 1), ("TPE", 0)]
    assert together.versions == {"a": "2", "b": "1"}


@pytest.mark.parametrize("processes", [1, 2])
def test_no_search_is_started_after_the_limit(processes: int) -> None:
    runs = search_all(
        [TunerSearcher("Random")],
        chosen_problems(["branin"]),
        range(3),
        5,
        limit_s=-1.0,
        processes=processes,
    )

    assert len(runs) == 0


def test_peers_of_many_problems_were_recorded_with_their_versions() -> None:
    recorded = recorded_runs()

    assert recorded.versions["optuna"]
    assert {"optuna-tpe", "hyperopt-tpe", "optuna-cma"} <= set(recorded.searchers)
    assert set(CLASSIC) <= set(recorded.problems) <= set(suite_problems())
    assert len(recorded.regrets("optuna-tpe", "branin", 100)) >= 6


@pytest.mark.parametrize("name", suite_problems())
def test_every_problem_has_peers_on_seeds_enough_to_be_judged(name: str) -> None:
    recorded = recorded_runs()

    for peer in ("optuna-random", "optuna-tpe"):
        assert len(recorded.regrets(peer, name, 100)) >= FEWEST_SEEDS


def test_schedulers_of_syne_tune_were_recorded_on_every_table_of_curves() -> None:
    recorded = recorded_runs(RECORDED_SCHEDULES)

    assert set(recorded.searchers) == {"syne-asha", "syne-bohb"}
    assert set(recorded.problems) == set(CURVES)


def test_run_that_differs_when_repeated_is_listed() -> None:
    problems, searcher = chosen_problems(["branin"]), TunerSearcher("Random")
    recorded = search_all([searcher], problems, [0], 5)
    assert irreproducible_runs(recorded, [searcher], ["branin"], [0, 1], 5) == []

    recorded.add(Run("Random", "branin", 0, 5, ((1, 1.0),)))

    assert irreproducible_runs(recorded, [searcher], ["branin"], [0], 5) == [
        "Random on branin, seed 0"
    ]
