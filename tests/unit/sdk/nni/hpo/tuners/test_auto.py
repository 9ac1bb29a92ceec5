"""The default tuner."""

import json
from collections import Counter
from statistics import median

import pytest

from nni.hpo import AutoTuner, RandomTuner, Study, TPETuner, Tuner
from nni.hpo.json_value import JsonValue

MIXED = {
    "x": {"_type": "uniform", "_value": [-1, 1]},
    "rate": {"_type": "loguniform", "_value": [1e-5, 1]},
    "layers": {"_type": "randint", "_value": [1, 9]},
    "kind": {"_type": "choice", "_value": ["a", "b", "c"]},
}
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


def test_time_limit_must_not_be_negative() -> None:
    with pytest.raises(ValueError, match="ask_time_limit"):
        AutoTuner(ask_time_limit=-1)
