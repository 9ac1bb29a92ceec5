"""Covariance matrix adaptation as a tuner."""

import copy
import math
from itertools import pairwise
from statistics import NormalDist, median

import pytest

from nni.hpo import CmaEs, RandomTuner, Study, Tuner
from nni.hpo.json_value import JsonValue
from nni.hpo.tuners._covariance import population_of

SPACE = {
    **{f"x{i}": {"_type": "uniform", "_value": [-5, 10]} for i in range(4)},
    "layers": {"_type": "randint", "_value": [1, 9]},
    "kind": {"_type": "choice", "_value": ["a", "b", "c"]},
}


def valley(point: dict[str, JsonValue]) -> float:
    x = [point[f"x{i}"] for i in range(4)]
    bends = sum(10 * (b - a) ** 2 + (a - 2) ** 2 for a, b in pairwise(x))
    return float(bends + (point["layers"] - 4) ** 2 + 20 * (point["kind"] != "b"))


def best(tuner: Tuner, trials: int) -> float:
    study = Study(SPACE, tuner=tuner)
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, valley(trial.parameters))
    return study.best_value


def test_finds_the_valley_of_numbers_integers_and_choices() -> None:
    ours = median(best(CmaEs("minimize", seed=seed), 300) for seed in range(5))
    drawn = median(best(RandomTuner(seed=seed), 300) for seed in range(5))

    assert ours < 5
    assert ours < 0.1 * drawn


def test_results_out_of_order_and_failures_are_learnt() -> None:
    tuner = CmaEs("minimize", seed=0)
    tuner.update_search_space(SPACE)
    found = []
    for batch in range(40):
        points = {10 * batch + i: tuner.generate_parameters(10 * batch + i) for i in range(10)}
        for number in reversed(points):
            if number % 7:
                value = valley(points[number])
                found.append(value)
                tuner.receive_trial_result(number, points[number], value)
            tuner.trial_end(number, bool(number % 7))

    assert min(found[-50:]) < 0.2 * min(found[:50])


def test_imported_results_move_the_search() -> None:
    near = {f"x{i}": 2.0 + 0.1 * i for i in range(4)} | {"layers": 4, "kind": "b"}
    samples = [{"parameter": {**near, "x0": 2 + 0.05 * i}, "value": float(i)} for i in range(40)]
    tuner = CmaEs("minimize", seed=0)
    tuner.update_search_space(SPACE)
    tuner.import_data(samples)

    drawn = [tuner.generate_parameters(number)["x0"] for number in range(30)]

    assert median(abs(x - 2) for x in drawn) < 2


def test_nested_choices_are_refused() -> None:
    space = {"m": {"_type": "choice", "_value": [{"_name": "a"}]}}

    with pytest.raises(ValueError, match="nested choice is not supported by CmaEs"):
        CmaEs().update_search_space(space)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"population_size": 1}, r"population_size must be an int in \[2, 99999\], or None, got 1"),
        ({"restart_factor": 0}, r"restart_factor must be an int in \[1, 99\], got 0"),
        ({"optimize_mode": "max"}, "optimize_mode"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, JsonValue], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CmaEs(**arguments)


def test_stopped_trial_enters_its_generation_with_its_estimate() -> None:
    tuner = CmaEs("minimize", population_size=9, seed=0)
    tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})
    first = tuner.generate_parameters(0)
    tuner.receive_trial_result(0, first, 1.0)
    tuner.trial_end(0, True, intermediate=[3.0, 1.0])

    tuner.generate_parameters(1)
    tuner.trial_end(1, False, event="EARLY_STOPPED", intermediate=[4.0])

    losses = [loss for loss, _ in tuner.state()["model"]["generation"]]
    assert losses == [1.0, 2.0]


def losses_of_generation(tuner: CmaEs) -> list[float]:
    return [loss for loss, _ in tuner.state()["model"]["generation"]]


def test_a_result_that_is_no_number_enters_its_generation_as_the_worst() -> None:
    tuner = CmaEs("minimize", population_size=9, seed=0)
    tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})

    tuner.receive_trial_result(0, tuner.generate_parameters(0), math.nan)
    tuner.trial_end(0, True)

    assert losses_of_generation(tuner) == [math.inf]


@pytest.mark.parametrize("event", ["USER_CANCELED", "SYS_CANCELED"])
def test_canceled_trials_enter_no_generation(event: str) -> None:
    tuner = CmaEs("minimize", population_size=9, seed=0)
    tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})
    for number in range(2):
        tuner.generate_parameters(number)

    tuner.trial_end(0, False, event=event)
    tuner.trial_end(1, False, event="FAILED")

    assert losses_of_generation(tuner) == [math.inf]


def test_user_prior_is_refused() -> None:
    entry = {"_type": "uniform", "_value": [0, 1], "_prior": 0.5}

    with pytest.raises(ValueError, match="_prior"):
        CmaEs().update_search_space({"x": entry})


@pytest.mark.parametrize(("count", "step"), [(1, 0.0), (2, 1 / 2), (3, 1 / 3), (8, 1 / 8)])
def test_a_discrete_number_keeps_a_deviation_in_proportion_to_its_steps(
    count: int, step: float
) -> None:
    space = {
        "n": {"_type": "randint", "_value": [0, count]},
        "x": {"_type": "uniform", "_value": [0, 1]},
    }
    tuner = CmaEs("minimize", population_size=4, seed=0)
    tuner.update_search_space(space)

    tuner.import_data(
        [{"parameter": {"n": 0, "x": 0.5 + i / 1e4}, "value": float(i)} for i in range(80)]
    )

    found = tuner.state()["model"]["distribution"]
    deviation = found["sigma"] * found["matrix"][0][0] ** 0.5
    # A neighbour lies beyond half a step, which has the chance 1 / (2 * 4) on either side.
    margin = 0.5 * step / NormalDist().inv_cdf(1 - 1 / 8)
    assert deviation == pytest.approx(margin, abs=1e-3)


@pytest.mark.parametrize(("factor", "larger"), [(None, 8), (1, 4), (2, 8), (3, 12)])
def test_converged_search_starts_again_with_a_larger_population(
    factor: int | None, larger: int
) -> None:
    arguments = {} if factor is None else {"restart_factor": factor}
    tuner = CmaEs("minimize", population_size=4, seed=0, **arguments)
    tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})
    first = tuner.state()["model"]["distribution"]
    known = {**tuner.state()}
    known["model"] = {**known["model"], "distribution": {**first, "sigma": 1e-9}}
    tuner.load_state(known)

    tuner.import_data([{"parameter": {"x": 0.5}, "value": 1.0}] * 3)
    assert tuner.state()["model"]["distribution"]["population"] == 4
    tuner.import_data([{"parameter": {"x": 0.5}, "value": 1.0}])

    again = tuner.state()["model"]["distribution"]
    assert again["population"] == larger
    assert (again["sigma"], again["generation"]) == (first["sigma"], 0)
    assert again["mean"] != first["mean"]


def test_defaults_are_the_documented_ones() -> None:
    default, given = CmaEs(seed=0), CmaEs("maximize", population_of(6), 2, seed=0)
    for tuner in (default, given):
        tuner.update_search_space(SPACE)

    proposed = [[best(tuner, 40)] for tuner in (default, given)]

    assert proposed[0] == proposed[1]
    assert default.state() == given.state()


def test_open_trials_and_their_generation_survive_a_restart() -> None:
    first, second = CmaEs("minimize", seed=1), CmaEs("minimize", seed=2)
    for tuner in (first, second):
        tuner.update_search_space(SPACE)
    points = [first.generate_parameters(number) for number in range(12)]
    for number in range(3):
        first.receive_trial_result(number, points[number], float(number))

    second.load_state(copy.deepcopy(first.state()))

    for number in range(3, 12):
        for tuner in (first, second):
            tuner.receive_trial_result(number, points[number], float(number))
    assert second.state() == first.state()
    assert second.generate_parameters(12) == first.generate_parameters(12)


@pytest.mark.parametrize(
    ("event", "losses"),
    [("USER_CANCELED", []), ("SYS_CANCELED", []), ("FAILED", [math.inf]), (None, [math.inf])],
)
def test_a_trial_without_a_result_is_the_worst_of_its_generation_unless_canceled(
    event: str | None, losses: list[float]
) -> None:
    tuner = CmaEs("minimize", population_size=9, seed=0)
    tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})
    tuner.generate_parameters(0)

    tuner.trial_end(0, False, event=event)

    assert losses_of_generation(tuner) == losses


@pytest.mark.parametrize(
    "arguments",
    [
        {"population_size": 2},
        {"population_size": 99999},
        {"population_size": None},
        {"restart_factor": 1},
        {"restart_factor": 99},
    ],
)
def test_least_and_greatest_arguments_are_accepted(arguments: dict[str, JsonValue]) -> None:
    assert isinstance(CmaEs(**arguments), CmaEs)


@pytest.mark.parametrize(
    "arguments",
    [
        {"population_size": 100000},
        {"restart_factor": 100},
    ],
)
def test_arguments_beyond_their_limits_are_refused(arguments: dict[str, JsonValue]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(arguments))} must be"):
        CmaEs(**arguments)
