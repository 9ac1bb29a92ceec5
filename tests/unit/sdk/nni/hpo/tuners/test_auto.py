"""The default tuner."""

import inspect
import json
import logging
from collections import Counter
from statistics import median

import numpy as np
import pytest

from nni.hpo import AutoTuner, RandomTuner, Study, TPETuner, Tuner
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import objectives_of

MIXED = {
    "x": {"_type": "uniform", "_value": [-1, 1]},
    "rate": {"_type": "loguniform", "_value": [1e-5, 1]},
    "layers": {"_type": "randint", "_value": [1, 9]},
    "kind": {"_type": "choice", "_value": ["a", "b", "c"]},
}
LINE = {"x": {"_type": "uniform", "_value": [0, 1]}}
BRANCHED = {
    "model": {
        "_type": "choice",
        "_value": [
            {"_name": "flat"},
            {
                "_name": "deep",
                "x": {"_type": "uniform", "_value": [0, 1]},
                "y": {"_type": "uniform", "_value": [0, 1]},
            },
        ],
    }
}


def mixed(point: dict[str, JsonValue]) -> float:
    import math

    away = (point["x"] - 0.3) ** 2 + (math.log10(point["rate"]) + 2) ** 2 / 10
    return float(away + (point["layers"] - 4) ** 2 / 10 + (point["kind"] != "b"))


def branched(point: dict[str, JsonValue]) -> float:
    model = point["model"]
    if model["_name"] == "flat":
        return 0.5
    return float(0.2 + (model["x"] - 0.8) ** 2 + (model["y"] - 0.1) ** 2)


def best(tuner: Tuner, space: JsonValue, objective: object, trials: int) -> float:
    study = Study(space, tuner=tuner)
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, objective(trial.parameters))  # type: ignore[operator] # a function
    return study.best_value


@pytest.mark.parametrize(("space", "objective"), [(MIXED, mixed), (BRANCHED, branched)])
def test_finds_better_points_than_tpe_and_random_draws(space: JsonValue, objective: object) -> None:
    ours = median(best(AutoTuner("minimize", s), space, objective, 40) for s in range(5))
    tpe = median(best(TPETuner("minimize", seed=s), space, objective, 40) for s in range(5))
    drawn = median(best(RandomTuner(seed=s), space, objective, 40) for s in range(5))

    floor = 0.2 if objective is branched else 0.0
    assert ours - floor < 0.5 * (tpe - floor)
    assert ours - floor < 0.1 * (drawn - floor)


def test_first_points_are_spread_over_the_space() -> None:
    tuner = AutoTuner("minimize", 0)
    tuner.update_search_space(MIXED)

    points = [tuner.generate_parameters(number) for number in range(9)]

    assert Counter(point["kind"] for point in points) == {"a": 3, "b": 3, "c": 3}
    assert len({point["layers"] for point in points}) >= 6


def test_ten_at_a_time_are_ten_different_points() -> None:
    tuner = AutoTuner("minimize", 0)
    tuner.update_search_space(MIXED)
    for number in range(20):
        point = tuner.generate_parameters(number)
        tuner.receive_trial_result(number, point, mixed(point))

    points = tuner.generate_multiple_parameters(list(range(100, 110)))

    assert len({json.dumps(point) for point in points}) == 10


def test_explores_other_options_when_nothing_better_is_found() -> None:
    space = {"kind": MIXED["kind"], "x": MIXED["x"]}
    tuner = AutoTuner("minimize", 1)
    tuner.update_search_space(space)
    kinds = []
    for number in range(60):
        point = tuner.generate_parameters(number)
        kinds.append(point["kind"])
        # A plateau: no point of "a" is better than another.
        tuner.receive_trial_result(number, point, 0.0 if point["kind"] == "a" else 1 + point["x"])

    assert Counter(kinds[30:])["a"] < 25


def test_says_what_it_chose_and_why() -> None:
    tuner = AutoTuner("minimize", 0)
    tuner.update_search_space(BRANCHED)

    assert "3 parameters with branches" in tuner.explanation
    assert "TPE for 50% of the trials" in tuner.explanation


def test_noise_does_not_make_a_lucky_point_unbeatable() -> None:
    import zlib

    import numpy as np

    def noisy(point: dict[str, JsonValue]) -> float:
        draw = np.random.default_rng(zlib.crc32(json.dumps(point).encode()))
        return float((point["x"] - 0.3) ** 2 + 0.1 * draw.standard_normal())

    found = []
    for seed in range(4):
        tuner = AutoTuner("minimize", seed)
        tuner.update_search_space({"x": MIXED["x"]})
        late = []
        for number in range(50):
            point = tuner.generate_parameters(number)
            tuner.receive_trial_result(number, point, noisy(point))
            late.append(abs(point["x"] - 0.3))
        found.append(median(late[25:]))

    assert median(found) < 0.35


def test_ten_at_a_time_use_the_model_before_the_design_has_ended() -> None:
    tuner = AutoTuner("minimize", 0)
    tuner.update_search_space(MIXED)
    points = {number: tuner.generate_parameters(number) for number in range(10)}

    for number in range(5):
        tuner.receive_trial_result(number, points[number], mixed(points[number]))
    for number in range(10, 14):  # one of them may be a point of TPE
        tuner.generate_parameters(number)

    learnt, *_ = tuner.state()["model"]["model"]
    assert learnt is not None


def test_goes_on_from_its_state_with_trials_open() -> None:
    first, second = AutoTuner("minimize", 3), AutoTuner("minimize", 3)
    for tuner in (first, second):
        tuner.update_search_space(MIXED)
    points = {number: first.generate_parameters(number) for number in range(4)}
    for number in range(4, 30):
        points[number] = first.generate_parameters(number)
        first.receive_trial_result(number - 4, points[number - 4], mixed(points[number - 4]))

    second.load_state(json.loads(json.dumps(first.state())))

    for tuner in (first, second):
        tuner.receive_trial_result(29, points[29], mixed(points[29]))
    assert first.generate_parameters(30) == second.generate_parameters(30)


def within_the_limit(seed: int) -> float:
    """Return the best loss of a search in which a corner of a square is allowed."""
    space = {name: {"_type": "uniform", "_value": [0, 1]} for name in "xy"}
    study = Study(
        space,
        optimize_mode={"loss": "minimize"},
        constraints=[{"metric": "sum", "max": 0.2}],
        seed=seed,
    )
    for _ in range(40):
        trial = study.ask()
        x, y = trial.parameters["x"], trial.parameters["y"]
        study.tell(trial, {"loss": -x - 0.5 * y, "sum": x + y})
    return study.best_value


def test_goes_to_the_edge_of_what_a_limit_on_an_outcome_allows() -> None:
    found = [within_the_limit(seed) for seed in range(3)]

    assert median(found) == pytest.approx(-0.2, abs=0.01)
    assert min(found) >= -0.2


def test_several_objectives_have_a_front_from_end_to_end() -> None:
    study = Study(
        {"x": {"_type": "uniform", "_value": [-1, 2]}, "kind": MIXED["kind"]},
        optimize_mode={"left": "minimize", "right": "minimize"},
        seed=0,
    )
    for _ in range(40):
        trial = study.ask()
        x, off = trial.parameters["x"], trial.parameters["kind"] != "b"
        study.tell(trial, {"left": x * x + off, "right": (x - 1) ** 2 + off})

    front = sorted(point.values["left"] for point in study.pareto_front)
    assert front[0] < 0.01
    assert front[-1] > 0.9
    assert len(front) > 12


def test_says_what_it_does_with_several_objectives_and_limits() -> None:
    tuner = AutoTuner()
    modes = {"accuracy": "maximize", "latency": "minimize"}
    tuner.set_objectives(objectives_of(modes, [{"metric": "memory", "max": 2}]))
    tuner.update_search_space(MIXED)

    assert "objectives accuracy, latency within limits of memory" in tuner.explanation


def test_time_limit_must_not_be_negative() -> None:
    with pytest.raises(ValueError, match="ask_time_limit"):
        AutoTuner(ask_time_limit=-1)


def test_says_what_it_chose_and_when_it_searches_otherwise(
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = Study(MIXED, seed=0)
    first = study.explanation

    with caplog.at_level(logging.INFO):
        for _ in range(60):
            trial = study.ask()
            study.tell(trial, float(np.exp(20 * mixed(trial.parameters))))

    assert first.startswith("4 parameters without branches: 9 points spread over the space, then")
    assert study.explanation.startswith(first)
    assert "logarithm" in study.explanation
    assert f"auto: {study.explanation}" in caplog.messages
    assert len(caplog.messages) == len(set(caplog.messages))


def test_says_how_it_weighs_several_outcomes() -> None:
    study = Study(
        MIXED,
        optimize_mode={"error": "minimize", "cost": "minimize"},
        constraints=[{"metric": "memory", "max": 80}],
    )

    assert "objectives error, cost within limits of memory" in study.explanation


def first_best(tuner: str, prior: JsonValue, trials: int, seed: int) -> float:
    """Return the least loss of a bowl in two numbers, lowest at 0.8, with a prior of each."""
    entry = {"_type": "uniform", "_value": [0, 1], "_prior": prior}
    study = Study(dict.fromkeys("xy", entry), tuner=tuner, seed=seed)
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, sum((value - 0.8) ** 2 for value in trial.parameters.values()))
    return study.best_value


@pytest.mark.parametrize("tuner", ["auto", "TPE", "GPTuner", "Random"])
def test_right_prior_gives_good_results_early(tuner: str) -> None:
    right = {"value": 0.75, "confidence": "high"}

    guided = median(first_best(tuner, right, 8, seed) for seed in range(5))
    alone = median(first_best(tuner, None, 8, seed) for seed in range(5))

    assert guided < 0.02
    assert guided < 0.5 * alone


@pytest.mark.parametrize(("tuner", "trials"), [("auto", 18), ("GPTuner", 18), ("TPE", 80)])
def test_wrong_prior_is_forgotten(tuner: str, trials: int) -> None:
    wrong = {"value": 0.1, "confidence": "high"}

    assert first_best(tuner, wrong, trials, seed=0) < 0.02


def test_expected_configuration_is_tried_first_and_the_explanation_says_so() -> None:
    space = {
        "rate": {"_type": "loguniform", "_value": [1e-5, 1], "_prior": 0.01},
        "kind": {"_type": "choice", "_value": ["a", "b", "c"], "_prior": {"value": "b"}},
    }
    study = Study(space, seed=0)

    first = study.ask().parameters

    assert first == {"rate": pytest.approx(0.01), "kind": "b"}
    assert "the first trials follow the user priors" in study.explanation


def test_several_objectives_follow_user_priors_too() -> None:
    entry = {"_type": "uniform", "_value": [-1, 2], "_prior": {"value": 0.5, "confidence": "high"}}
    study = Study({"x": entry}, optimize_mode={"left": "minimize", "right": "minimize"}, seed=0)
    near = 0
    for _ in range(16):
        trial = study.ask()
        x = trial.parameters["x"]
        near += abs(x - 0.5) < 0.3
        study.tell(trial, {"left": x * x, "right": (x - 1) ** 2})

    # Two deviations on either side; a fifth of the range.
    assert near >= 8


def test_cost_aware_study_learns_run_times_and_explains_it() -> None:
    study = Study(LINE, tuner_args={"cost_aware": True}, seed=0)
    for _ in range(20):
        trial = study.ask()
        x = trial.parameters["x"]
        study.tell(trial, (x - 0.5) ** 2, duration=100**x)

    assert abs(study.best_parameters["x"] - 0.5) < 0.05
    assert "weighed by the predicted run time" in study.explanation


@pytest.mark.parametrize("tuner", ["auto", "GPTuner"])
def test_several_objectives_are_refused_by_a_cost_aware_tuner(tuner: str) -> None:
    with pytest.raises(ValueError, match="cost_aware must be false with several objectives"):
        Study(
            LINE,
            tuner=tuner,
            tuner_args={"cost_aware": True},
            optimize_mode={"a": "minimize", "b": "minimize"},
        )


def test_hosts_know_what_it_learns_from() -> None:
    assert AutoTuner.multi_objective
    assert AutoTuner.imports_failures
    assert AutoTuner.learns_stopped


@pytest.mark.parametrize(
    ("argument", "default"),
    [
        ("ask_time_limit", 0.05),
        ("cost_aware", False),
        ("cost_budget", None),
        ("robust", False),
    ],
)
def test_default_arguments_are_the_documented_ones(argument: str, default: object) -> None:
    assert inspect.signature(AutoTuner).parameters[argument].default == default


def test_single_parameter_is_named_as_one() -> None:
    tuner = AutoTuner("minimize", 0)
    tuner.update_search_space(LINE)

    assert tuner.explanation.startswith("1 parameter without branches: 5 points")


@pytest.mark.parametrize(
    "arguments",
    [
        {"ask_time_limit": 0},
        {"ask_time_limit": float("inf")},
    ],
)
def test_least_and_greatest_arguments_are_accepted(arguments: dict[str, JsonValue]) -> None:
    assert isinstance(AutoTuner(**arguments), AutoTuner)


@pytest.mark.parametrize(
    "arguments",
    [
        {"ask_time_limit": -0.01},
        {"cost_budget": 0},
    ],
)
def test_arguments_beyond_their_limits_are_refused(arguments: dict[str, JsonValue]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(arguments))} must be"):
        AutoTuner(**arguments)


def test_outcomes_are_modelled_after_ten_results() -> None:
    space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    rival = RandomTuner(seed=3)
    rival.update_search_space(space)
    drawn = rival.generate_parameters(0)
    proposed = []
    for count in (9, 10):
        tuner = AutoTuner(seed=3)
        tuner.set_objectives(objectives_of({"a": "minimize", "b": "minimize"}))
        tuner.update_search_space(space)
        for number in range(count):
            x = number / 10
            tuner.receive_trial_result(number, {"x": x}, {"a": x, "b": (x - 0.5) ** 2})
        proposed.append(tuner.generate_parameters(99))

    assert [one == drawn for one in proposed] == [True, False]
    assert "10 draws" in tuner.explanation
