"""Extrapolating learning curves."""

import inspect
import json
import math
from typing import Any, TypeVar

import pytest

from nni.algorithms.hpo.curvefitting_assessor import CurvefittingAssessor
from nni.hpo import AssessResult
from nni.hpo.json_value import JsonValue

AnyCurvefitting = TypeVar("AnyCurvefitting", bound=CurvefittingAssessor)
Good, Bad = AssessResult.Good, AssessResult.Bad


def curve(length: int, limit: float = 1.0) -> list[JsonValue]:
    return [limit * (1 - 0.9**x) for x in range(1, length + 1)]


class Counting(CurvefittingAssessor):
    """Records the lengths at which it predicts, and returns a given prediction."""

    def __init__(self, prediction: float | None, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.checked: list[int] = []
        self.prediction = prediction

    def predicted(self, history: list[JsonValue]) -> float | None:
        self.checked.append(len(history))
        return self.prediction


def with_best(assessor: AnyCurvefitting, best: float) -> AnyCurvefitting:
    assessor.assess_trial("best", [0.1, best])
    assessor.trial_end("best", True)
    return assessor


@pytest.mark.claim("hpo", 29)
def test_fits_only_from_the_start_step_and_at_every_gap() -> None:
    assessor = with_best(Counting(0.0, start_step=6, gap=2), 0.9)

    answers = [assessor.assess_trial("a", curve(length)) for length in range(1, 13)]

    assert assessor.checked == [6, 8, 10, 12]
    assert answers == [Good] * 5 + [Bad, Good, Bad, Good, Bad, Good, Bad]


@pytest.mark.parametrize(
    ("arguments", "checked"),
    [
        ({"start_step": 5, "gap": 3}, [5, 8, 11]),
        ({"start_step": 0, "gap": 5}, [5, 10]),
        ({"start_step": 1, "gap": 4}, [1, 5, 9]),
        ({}, [6, 7, 8, 9, 10, 11, 12]),
    ],
)
def test_gaps_are_counted_from_the_start_step(
    arguments: dict[str, int], checked: list[int]
) -> None:
    assessor = with_best(Counting(0.0, **arguments), 0.9)

    for length in range(1, 13):
        assessor.assess_trial("a", curve(length))

    assert assessor.checked == checked


@pytest.mark.claim("hpo", 29)
def test_smooth_curve_is_extrapolated() -> None:
    predicted = CurvefittingAssessor(epoch_num=20).predicted(curve(10))

    assert predicted == pytest.approx(1 - 0.9**20, abs=0.05)


@pytest.mark.claim("hpo", 29)
def test_trial_that_will_stay_below_the_best_is_bad() -> None:
    assessor = with_best(CurvefittingAssessor(epoch_num=20, threshold=0.95), 0.878)

    assert assessor.assess_trial("as good", curve(10)) is Good
    assert assessor.assess_trial("half as good", curve(10, limit=0.5)) is Bad


@pytest.mark.parametrize(("prediction", "answer"), [(0.855, Bad), (0.8551, Good), (None, Good)])
def test_prediction_must_be_above_the_threshold(
    prediction: float | None, answer: AssessResult
) -> None:
    assessor = with_best(Counting(prediction), 0.9)

    assert assessor.assess_trial("a", curve(6)) is answer


def test_good_while_no_trial_has_completed() -> None:
    assessor = Counting(0.0)
    assessor.assess_trial("failed", [9.0])
    assessor.trial_end("failed", False)

    assert assessor.assess_trial("a", curve(8)) is Good
    assert assessor.checked == []


def test_best_is_the_largest_last_value_of_completed_trials() -> None:
    assessor = Counting(0.5, threshold=1.0)
    for name, history in {"a": [0.9, 0.2], "b": [0.1, 0.6], "c": [0.3]}.items():
        assessor.assess_trial(name, history)
        assessor.trial_end(name, True)

    assert assessor.state()["best"] == 0.6


def test_scale_of_the_metric_does_not_matter() -> None:
    assessor = CurvefittingAssessor(epoch_num=20)
    unit = assessor.predicted(curve(8))

    assert unit is not None
    assert assessor.predicted(curve(8, limit=100.0)) == pytest.approx(100 * unit, rel=1e-3)


def test_gaps_of_odd_values_are_bridged() -> None:
    history = curve(12)
    history[3], history[7] = math.nan, "text"

    predicted = CurvefittingAssessor(epoch_num=20).predicted(history)

    assert predicted == pytest.approx(1 - 0.9**20, abs=0.05)


def test_too_few_numbers_are_no_curve() -> None:
    assert CurvefittingAssessor().predicted([0.1, math.nan, 0.2, None, 0.3, 0.4]) is None


@pytest.mark.parametrize("history", [[0.0] * 8, [0.5] * 8, [-1.0, -0.5, -0.25, -0.2, -0.1, -0.1]])
def test_odd_curves_give_a_number_or_nothing(history: list[JsonValue]) -> None:
    predicted = CurvefittingAssessor().predicted(history)

    assert predicted is None or predicted == pytest.approx(history[-1], abs=0.3)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"optimize_mode": "minimize"},
            "optimize_mode must be one of 'maximize', .*use Medianstop",
        ),
        ({"optimize_mode": "max"}, "optimize_mode must be"),
        ({"epoch_num": 0}, r"epoch_num must be an int in \[1, 9999\]"),
        ({"start_step": -1}, r"start_step must be an int in \[0, 9999\]"),
        ({"gap": 0}, r"gap must be an int in \[1, 9999\]"),
        ({"threshold": 0}, r"threshold must be a number in \(0, 9999\]"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        CurvefittingAssessor(**arguments)


def test_five_numbers_are_a_curve() -> None:
    assert CurvefittingAssessor(epoch_num=6).predicted(curve(5)) == pytest.approx(0.469, abs=0.03)


def test_default_is_a_curve_of_twenty_values_and_the_seed_0() -> None:
    history = curve(8)
    by_default = CurvefittingAssessor().predicted(history)

    assert by_default == CurvefittingAssessor(epoch_num=20, seed=0).predicted(history)
    assert by_default != CurvefittingAssessor(epoch_num=21).predicted(history)
    assert by_default != CurvefittingAssessor(seed=1).predicted(history)


def test_restored_assessor_knows_running_trials_and_the_best() -> None:
    assessor = with_best(Counting(0.5), 0.5)
    assessor.assess_trial("running", [0.1, 0.8])
    restored = Counting(0.6)

    restored.load_state(json.loads(json.dumps(assessor.state())))

    assert restored.assess_trial("new", curve(6)) is Good  # 0.6 > 0.95 * 0.5
    restored.trial_end("running", True)
    assert restored.assess_trial("new", curve(6)) is Bad  # the best is 0.8 now


@pytest.mark.parametrize(
    ("argument", "default"),
    [("epoch_num", 20), ("start_step", 6), ("threshold", 0.95), ("gap", 1), ("seed", None)],
)
def test_default_arguments_are_the_documented_ones(argument: str, default: object) -> None:
    assert inspect.signature(CurvefittingAssessor).parameters[argument].default == default
