"""Setups of hosts, and their places."""

from dataclasses import replace

import pytest

from svc_dispatcher.domain.values import (
    AlgorithmChoice,
    ExperimentSetup,
    RequestedAlgorithm,
    generation_seed,
)

SETUP = ExperimentSetup(
    experiment_id="exp",
    directory="/old/exp",
    interpreter="",
    tuner=AlgorithmChoice(class_name="m.T", code_directory="/code/tuners"),
    assessor=AlgorithmChoice(class_name="m.A", code_directory="/code-of-others"),
    advisor=None,
    search_space=None,
    seed=1,
    log_level="info",
    trial_code_directory="/code",
)


def test_classes_inside_the_code_move_with_it() -> None:
    moved = SETUP.moved("/new/exp", "/new/code")

    assert moved.directory == "/new/exp"
    assert moved.tuner == AlgorithmChoice(class_name="m.T", code_directory="/new/code/tuners")
    assert moved.assessor == SETUP.assessor  # a folder whose name only begins the same


def test_empty_places_change_nothing() -> None:
    assert SETUP.moved("", "") == SETUP


def test_class_in_the_code_folder_itself_moves() -> None:
    setup = replace(SETUP, tuner=AlgorithmChoice(class_name="m.T", code_directory="/code"))

    assert setup.moved("", "/b").tuner == AlgorithmChoice(class_name="m.T", code_directory="/b")


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"assessor": None}, False),
        ({}, True),
        ({"assessor": None, "tuner": None, "advisor": AlgorithmChoice(name="Hyperband")}, True),
        ({"assessor": None, "tuner": AlgorithmChoice(server_address="h:1")}, True),
    ],
)
def test_intermediate_results_are_wanted_by_assessors_advisors_and_servers(
    changes: dict[str, AlgorithmChoice | None], wanted: bool
) -> None:
    assert replace(SETUP, **changes).wants_intermediate is wanted  # type: ignore[arg-type] # choices only


def test_first_generation_has_the_seed_of_the_experiment() -> None:
    assert generation_seed(7, 0) == generation_seed(7, 1) == 7
    assert len({generation_seed(7, generation) for generation in range(1, 50)}) == 49


@pytest.mark.parametrize(
    ("generation", "seed"),
    [(2, 0x1E3779B97F4A7C1C), (3, 0x3C6EF372FE94F831), (4, 0x5AA66D2C7DDF7446)],
)
def test_seeds_of_later_generations_stay_as_logs_know_them(generation: int, seed: int) -> None:
    assert generation_seed(7, generation) == seed


def test_code_of_trials_and_all_classes_in_it_move_together() -> None:
    inside = AlgorithmChoice(class_name="m.C", code_directory="/code/classes")
    setup = replace(SETUP, tuner=inside, assessor=inside, advisor=inside)

    moved = setup.moved("", "/new")

    there = replace(inside, code_directory="/new/classes")
    assert moved.trial_code_directory == "/new"
    assert (moved.tuner, moved.assessor, moved.advisor) == (there, there, there)


def test_requested_algorithm_has_one_outcome_and_replaces_nothing_unless_it_says_so() -> None:
    asked = RequestedAlgorithm("tuner", "TPE", "", "", "", {})

    assert (asked.several_outcomes, asked.replaces_space) == (False, False)
    assert asked.replaced_tuner is None
