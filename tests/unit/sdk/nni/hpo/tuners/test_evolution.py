"""Naive evolution."""

import inspect
import json
from statistics import median
from typing import Any

import pytest

from nni.algorithms.hpo.evolution_tuner import EvolutionTuner
from nni.hpo import DEFERRED, RandomTuner, Tuner
from nni.hpo.base import generate
from nni.hpo.space.parser import contains, parse_space

SPACE = {
    "x": {"_type": "uniform", "_value": [0, 1]},
    "n": {"_type": "randint", "_value": [0, 100]},
    "model": {
        "_type": "choice",
        "_value": [{"_name": "a", "w": {"_type": "uniform", "_value": [0, 1]}}, "b"],
    },
}


class Later:
    """Takes what was deferred."""

    def __init__(self) -> None:
        self.started: dict[int, Any] = {}

    def __call__(self, parameter_id: int, parameters: Any) -> None:
        self.started[parameter_id] = parameters


def ready(population: int, seed: int = 0, mode: str = "minimize") -> EvolutionTuner:
    tuner = EvolutionTuner(mode, population, seed)
    tuner.update_search_space(SPACE)
    return tuner


def finish(tuner: Tuner, parameter_id: int, value: float | None) -> None:
    if value is not None:
        tuner.receive_trial_result(parameter_id, {}, value)
    tuner.trial_end(parameter_id, value is not None)


@pytest.mark.claim("hpo", 35)
def test_four_of_six_requests_are_served_and_two_deferred() -> None:
    answer = generate(ready(population=4), list(range(6)), Later())

    assert [parameter_id for parameter_id, _ in answer.parameters] == [0, 1, 2, 3]
    assert answer.deferred == (4, 5)
    assert not answer.exhausted


@pytest.mark.claim("hpo", 35)
def test_failed_trial_makes_room_for_a_random_individual_that_serves_one_request() -> None:
    tuner, later = ready(population=4), Later()
    generate(tuner, list(range(6)), later)

    finish(tuner, 2, None)

    assert list(later.started) == [4]
    assert contains(parse_space(SPACE), later.started[4])


def test_deferred_requests_are_served_in_turn_when_a_pair_has_results() -> None:
    tuner, later = ready(population=4), Later()
    generate(tuner, list(range(6)), later)

    finish(tuner, 0, 1.0)
    assert later.started == {}
    finish(tuner, 1, 2.0)

    assert list(later.started) == [4]


@pytest.mark.parametrize(("mode", "winner"), [("minimize", 0), ("maximize", 1)])
def test_child_differs_from_the_better_of_its_pair_in_one_parameter(mode: str, winner: int) -> None:
    tuner = ready(population=2, mode=mode)
    parents = [tuner.generate_parameters(0), tuner.generate_parameters(1)]
    finish(tuner, 0, 1.0)
    finish(tuner, 1, 2.0)

    child = tuner.generate_parameters(2)

    assert sum(child[key] != parents[winner][key] for key in SPACE) == 1


def test_number_that_is_not_finite_counts_as_a_failure() -> None:
    tuner = ready(population=2)
    generate(tuner, [0, 1])

    finish(tuner, 0, float("nan"))

    assert tuner.generate_parameters(2) is not DEFERRED
    assert tuner.generate_parameters(3) is DEFERRED


def test_without_a_way_to_start_later_nothing_is_remembered() -> None:
    tuner, later = ready(population=1), Later()
    tuner.generate_parameters(0)

    assert tuner.generate_parameters(1) is DEFERRED
    finish(tuner, 0, 0.5)
    assert generate(tuner, [2], later).parameters
    assert later.started == {}


def test_new_space_replaces_what_does_not_fit() -> None:
    tuner = ready(population=3)
    for number in range(3):
        tuner.generate_parameters(number)
        finish(tuner, number, float(number))

    other = {"y": {"_type": "uniform", "_value": [0, 1]}}
    tuner.update_search_space(other)

    answer = generate(tuner, [3, 4, 5, 6], Later())
    assert [list(parameters) for _, parameters in answer.parameters] == [["y"]] * 3
    assert answer.deferred == (6,)


def test_imported_results_are_individuals() -> None:
    tuner = ready(population=2)
    good = {"x": 0.5, "n": 50, "model": "b"}

    tuner.import_data(
        [
            {"parameter": good, "value": 0.0},
            {"parameter": {**good, "n": 51}, "value": 1.0},
            {"parameter": {**good, "n": 52}, "value": 2.0},
        ]
    )
    child = tuner.generate_parameters(0)

    assert sum(child[key] != good[key] for key in SPACE) == 1


def test_deferred_requests_survive_being_put_aside() -> None:
    tuner, later = ready(population=2), Later()
    generate(tuner, [0, 1, 2], later)
    other = ready(population=2, seed=9)
    other.load_state(json.loads(json.dumps(tuner.state())))

    finish(other, 0, None)
    generate(other, [3], later)

    assert list(later.started) == [2]


def test_a_restored_population_draws_only_what_is_left_of_it() -> None:
    tuner, other = ready(population=3), ready(population=3, seed=9)
    tuner.generate_parameters(0)

    other.load_state(json.loads(json.dumps(tuner.state())))

    assert generate(other, [1, 2, 3], Later()).deferred == (3,)


def test_better_than_random_search_with_many_trials() -> None:
    def best_of(tuner: Tuner) -> float:
        tuner.update_search_space({k: v for k, v in SPACE.items() if k != "model"})
        losses: list[float] = []
        for number in range(200):
            parameters = tuner.generate_parameters(number)
            loss = (parameters["x"] - 0.3) ** 2 + ((parameters["n"] - 70) / 100) ** 2
            finish(tuner, number, loss)
            losses.append(loss)
        return min(losses)

    evolution = median(best_of(EvolutionTuner("minimize", 12, seed)) for seed in range(11))
    rival = median(best_of(RandomTuner(seed=seed)) for seed in range(11))

    assert evolution < rival


@pytest.mark.parametrize("population", [0, -1, 1.5, True])
def test_bad_population_size_is_refused(population: Any) -> None:
    with pytest.raises(ValueError, match=r"population_size must be an int in \[1, 99999\]"):
        EvolutionTuner(population_size=population)


def test_user_prior_is_refused() -> None:
    entry = {"_type": "uniform", "_value": [0, 1], "_prior": 0.5}

    with pytest.raises(ValueError, match="_prior"):
        EvolutionTuner().update_search_space({"x": entry})


@pytest.mark.parametrize(
    ("argument", "default"),
    [
        ("population_size", 32),
        ("seed", None),
    ],
)
def test_default_arguments_are_the_documented_ones(argument: str, default: object) -> None:
    assert inspect.signature(EvolutionTuner).parameters[argument].default == default


def test_worse_of_a_pair_leaves_the_population() -> None:
    tuner = ready(population=2)
    for number in range(2):
        tuner.generate_parameters(number)
        finish(tuner, number, 1.0 + number)

    tuner.generate_parameters(2)

    assert [loss for _, loss in tuner.state()["evaluated"]] == [1.0]
    assert tuner.generate_parameters(3) is DEFERRED


def test_second_result_of_a_trial_is_ignored() -> None:
    tuner = ready(population=3)
    tuner.generate_parameters(0)
    finish(tuner, 0, 1.0)
    before = tuner.state()

    finish(tuner, 0, 0.5)

    assert tuner.state() == before


def test_new_space_serves_deferred_requests_in_place_of_results_that_do_not_fit() -> None:
    tuner, later = ready(population=2), Later()
    generate(tuner, [0, 1, 2], later)
    finish(tuner, 0, 1.0)
    assert later.started == {}

    tuner.update_search_space({"y": {"_type": "uniform", "_value": [0, 1]}})

    assert [list(parameters) for parameters in later.started.values()] == [["y"]]


def test_result_outside_a_new_space_makes_room_for_a_random_individual() -> None:
    tuner, later = ready(population=1), Later()
    generate(tuner, [0, 1], later)
    tuner.update_search_space({"y": {"_type": "uniform", "_value": [0, 1]}})
    assert later.started == {}

    finish(tuner, 0, 1.0)

    assert list(later.started[1]) == ["y"]
    assert tuner.state()["evaluated"] == []


def test_imported_results_take_the_places_of_worse_ones_in_a_full_population() -> None:
    tuner, later = ready(population=2), Later()
    generate(tuner, [0, 1, 2], later)
    finish(tuner, 0, 1.0)

    parameter = {"x": 0.5, "n": 50, "model": "b"}
    tuner.import_data([{"parameter": {**parameter, "n": n}, "value": n / 100} for n in (50, 60)])

    assert [loss for _, loss in tuner.state()["evaluated"]] == [0.5]
    assert later.started == {}


def test_restored_trials_count_when_they_end() -> None:
    tuner, other = ready(population=2), ready(population=2, seed=9)
    first = tuner.generate_parameters(0)

    other.load_state(json.loads(json.dumps(tuner.state())))
    finish(other, 0, 0.5)

    assert other.state()["evaluated"] == [[first, 0.5]]


def test_parameter_of_a_single_value_does_not_keep_a_child_from_being_made() -> None:
    tuner = EvolutionTuner("minimize", 1, 0)
    tuner.update_search_space({"c": {"_type": "choice", "_value": ["only"]}})
    tuner.generate_parameters(0)
    finish(tuner, 0, 1.0)

    assert tuner.generate_parameters(1) == {"c": "only"}


def test_space_without_parameters_has_one_configuration() -> None:
    tuner = EvolutionTuner("minimize", 1, 0)
    tuner.update_search_space({})
    tuner.generate_parameters(0)
    finish(tuner, 0, 1.0)

    assert tuner.generate_parameters(1) == {}


def test_child_has_another_option_than_its_parent() -> None:
    for seed in range(8):
        tuner = EvolutionTuner("minimize", 1, seed)
        tuner.update_search_space({"c": {"_type": "choice", "_value": ["a", "b"]}})
        parent = tuner.generate_parameters(0)
        finish(tuner, 0, 1.0)

        # Eight draws are all the old option with a chance of 1 in 256.
        assert tuner.generate_parameters(1) != parent


@pytest.mark.parametrize(
    "arguments",
    [
        {"population_size": 1},
        {"population_size": 99999},
    ],
)
def test_least_and_greatest_arguments_are_accepted(arguments: dict[str, Any]) -> None:
    assert isinstance(EvolutionTuner(**arguments), EvolutionTuner)


@pytest.mark.parametrize(
    "arguments",
    [
        {"population_size": 100000},
    ],
)
def test_arguments_beyond_their_limits_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(arguments))} must be"):
        EvolutionTuner(**arguments)
