"""Breeding for several objectives."""

import inspect
import json

import pytest

from nni.hpo import NSGA2, Study
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import objectives_of

SPACE = {f"x{i}": {"_type": "uniform", "_value": [0, 1]} for i in range(4)}
MODES = {"near": "minimize", "far": "minimize"}


def report(point: dict[str, float]) -> dict[str, float]:
    waste = sum(point[f"x{i}"] for i in range(1, 4))
    return {"near": point["x0"] + waste, "far": 1 - point["x0"] + waste}


def front(tuner: str, trials: int, seed: int) -> list[dict[str, float]]:
    study = Study(SPACE, tuner=tuner, optimize_mode=MODES, seed=seed)
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, report(trial.parameters))
    return [report(point.trial.parameters) for point in study.pareto_front]


def test_spreads_over_a_better_front_than_random_draws() -> None:
    ours, drawn = (front(tuner, 400, 0) for tuner in ("NSGA2", "Random"))

    def waste(points: list[dict[str, float]]) -> float:
        return min(point["near"] + point["far"] - 1 for point in points)

    assert waste(ours) < 0.2 * waste(drawn)
    assert min(p["near"] for p in ours) < 0.2
    assert max(p["near"] for p in ours) > 0.8


def test_results_beyond_a_limit_come_last() -> None:
    tuner = NSGA2(population_size=2, seed=0)
    tuner.set_objectives(objectives_of(MODES, [{"metric": "memory", "max": 1}]))
    tuner.update_search_space(SPACE)
    for number, memory in enumerate((3.0, 0.5, 2.0, 0.9)):
        point = tuner.generate_parameters(number)
        tuner.receive_trial_result(number, point, {"near": memory, "far": 0, "memory": memory})

    state = tuner.state()

    assert sorted(losses[0] for _, losses, _ in state["members"]) == [0.5, 0.9]


def test_one_objective_works_as_well() -> None:
    study = Study(SPACE, tuner="NSGA2", seed=0)
    for _ in range(300):
        trial = study.ask()
        study.tell(trial, sum((x - 0.3) ** 2 for x in trial.parameters.values()))

    assert study.best_value < 0.02


def test_no_point_is_proposed_twice() -> None:
    tuner = NSGA2("minimize", population_size=4, seed=0)
    tuner.update_search_space({"x": {"_type": "randint", "_value": [0, 60]}})
    points: list[JsonValue] = []
    for number in range(40):
        point = tuner.generate_parameters(number)
        points.append(json.dumps(point))
        tuner.receive_trial_result(number, point, abs(point["x"] - 33))

    assert len(set(points)) == 40


def test_population_must_hold_a_pair() -> None:
    with pytest.raises(ValueError, match=r"population_size must be an int in \[2, 99999\], got 1"):
        NSGA2(population_size=1)


def test_user_prior_is_refused() -> None:
    entry = {"_type": "uniform", "_value": [0, 1], "_prior": 0.5}

    with pytest.raises(ValueError, match=r"(?s)NSGA2.*_prior|_prior.*NSGA2"):
        NSGA2().update_search_space({"x": entry})


@pytest.mark.parametrize(
    ("argument", "default"),
    [
        ("population_size", 40),
        ("seed", None),
    ],
)
def test_default_arguments_are_the_documented_ones(argument: str, default: object) -> None:
    assert inspect.signature(NSGA2).parameters[argument].default == default


def test_hosts_know_that_it_takes_several_objectives() -> None:
    assert NSGA2.multi_objective


def test_goes_on_from_its_state() -> None:
    first, second = NSGA2("minimize", 4, seed=1), NSGA2("minimize", 4, seed=2)
    for tuner in (first, second):
        tuner.update_search_space(SPACE)
    for number in range(9):
        point = first.generate_parameters(number)
        first.receive_trial_result(number, point, sum(point.values()))

    second.load_state(json.loads(json.dumps(first.state())))

    assert second.state() == first.state()
    assert second.generate_parameters(9) == first.generate_parameters(9)


def test_new_space_keeps_the_members_that_fit_and_an_empty_one_has_one_configuration() -> None:
    tuner = NSGA2("minimize", 4, seed=1)
    tuner.update_search_space(SPACE)
    for number, x in enumerate((0.2, 0.8)):
        tuner.receive_trial_result(number, dict.fromkeys(SPACE, x), x)

    tuner.update_search_space({name: {"_type": "uniform", "_value": [0, 0.5]} for name in SPACE})

    assert [losses for _, losses, _ in tuner.state()["members"]] == [[0.2]]
    tuner.update_search_space({})
    assert tuner.generate_parameters(0) == {}


def known(tuner: NSGA2) -> list[float]:
    """Return the first losses of the members, in ascending order."""
    return sorted(losses[0] for _, losses, _ in tuner.state()["members"])


def test_member_in_the_densest_place_of_the_front_leaves() -> None:
    tuner = NSGA2(population_size=3, seed=0)
    tuner.set_objectives(objectives_of(MODES))
    tuner.update_search_space(SPACE)

    for number, near in enumerate((0.0, 0.51, 0.5, 1.0)):
        point = tuner.generate_parameters(number)
        tuner.receive_trial_result(number, point, {"near": near, "far": 1 - near})

    # Its neighbours are 0.5 apart, those of 0.5 are 0.51 apart.
    assert known(tuner) == [0.0, 0.5, 1.0]


def test_dominated_member_leaves() -> None:
    tuner = NSGA2(population_size=2, seed=0)
    tuner.set_objectives(objectives_of(MODES))
    tuner.update_search_space(SPACE)

    for number, (near, far) in enumerate(((0.5, 0.5), (0.6, 0.6), (0.7, 0.1))):
        point = tuner.generate_parameters(number)
        tuner.receive_trial_result(number, point, {"near": near, "far": far})

    assert known(tuner) == [0.5, 0.7]


def test_of_results_that_all_break_a_limit_the_worst_leaves() -> None:
    tuner = NSGA2(population_size=2, seed=0)
    tuner.set_objectives(objectives_of(MODES, [{"metric": "memory", "max": 1}]))
    tuner.update_search_space(SPACE)

    for number, memory in enumerate((3.0, 5.0, 2.0)):
        point = tuner.generate_parameters(number)
        tuner.receive_trial_result(number, point, {"near": memory, "far": 0, "memory": memory})

    assert known(tuner) == [2.0, 3.0]


@pytest.mark.parametrize(
    ("proposed", "results", "bred"), [(3, 3, False), (4, 1, False), (4, 2, True), (5, 5, True)]
)
def test_children_follow_a_population_of_draws_and_two_results(
    proposed: int, results: int, bred: bool
) -> None:
    tuner = NSGA2("minimize", population_size=4, seed=0)
    tuner.update_search_space(SPACE)
    points = [tuner.generate_parameters(number) for number in range(proposed)]
    for number in range(results):
        tuner.receive_trial_result(number, points[number], float(number))
    before = tuner.state()

    tuner.generate_parameters(proposed)

    # Children take no draw of the prior.
    assert (tuner.state()["prior"] == before["prior"]) is bred
    assert (tuner.state()["rng"] != before["rng"]) is bred


def test_result_without_a_number_is_skipped_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tuner = NSGA2("minimize", seed=0)
    tuner.update_search_space(SPACE)

    tuner.receive_trial_result(0, tuner.generate_parameters(0), None)

    assert tuner.state()["members"] == []
    assert "skips a result without a number" in caplog.text


@pytest.mark.parametrize(
    "arguments",
    [
        {"population_size": 2},
        {"population_size": 99999},
    ],
)
def test_least_and_greatest_arguments_are_accepted(arguments: dict[str, JsonValue]) -> None:
    assert isinstance(NSGA2(**arguments), NSGA2)


@pytest.mark.parametrize(
    "arguments",
    [
        {"population_size": 1},
        {"population_size": 100000},
    ],
)
def test_arguments_beyond_their_limits_are_refused(arguments: dict[str, JsonValue]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(arguments))} must be"):
        NSGA2(**arguments)
