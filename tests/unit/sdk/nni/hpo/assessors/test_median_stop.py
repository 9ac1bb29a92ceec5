"""Median stopping."""

import json
import math
import statistics
from random import Random

import pytest

from nni.algorithms.hpo.medianstop_assessor import MedianstopAssessor
from nni.hpo import AssessResult

Good, Bad = AssessResult.Good, AssessResult.Bad


def with_completed(mode: str, *curves: list[float], start_step: int = 0) -> MedianstopAssessor:
    assessor = MedianstopAssessor(mode, start_step)
    for index, curve in enumerate(curves):
        assessor.assess_trial(f"completed-{index}", curve)
        assessor.trial_end(f"completed-{index}", True)
    return assessor


@pytest.mark.claim("hpo", 28)
@pytest.mark.parametrize(
    ("mode", "history", "answer"),
    [
        ("maximize", [3, 3.9], Bad),
        ("maximize", [3, 4], Good),
        ("minimize", [4.1, 5], Bad),
        ("minimize", [4, 9], Good),
    ],
)
def test_worked_example(mode: str, history: list[float], answer: AssessResult) -> None:
    assessor = with_completed(mode, [5, 6, 7], [2, 3, 4])

    assert assessor.assess_trial("new", history) is answer


@pytest.mark.claim("hpo", 28)
def test_good_below_the_start_step() -> None:
    assessor = with_completed("maximize", [5, 6, 7], [5, 6, 7], start_step=2)

    assert assessor.assess_trial("new", [0]) is Good
    assert assessor.assess_trial("new", [0, 0]) is Bad


def test_completed_trials_that_are_shorter_do_not_take_part() -> None:
    assessor = with_completed("maximize", [9], [1, 1, 1])

    assert assessor.assess_trial("new", [2, 2]) is Good
    assert assessor.assess_trial("longer", [0, 0, 0, 0]) is Good


def test_failed_and_stopped_trials_do_not_take_part() -> None:
    assessor = MedianstopAssessor("maximize")
    assessor.assess_trial("failed", [9.0])
    assessor.trial_end("failed", False)

    assert assessor.assess_trial("new", [0.0]) is Good


def test_same_as_the_rule_computed_the_slow_way() -> None:
    rng = Random(0)
    curves = [[rng.random() for _ in range(rng.randint(1, 8))] for _ in range(40)]
    assessor = with_completed("maximize", *curves)

    for _ in range(200):
        history = [rng.random() * 0.7 for _ in range(rng.randint(1, 9))]
        step = len(history)
        means = [sum(curve[:step]) / step for curve in curves if len(curve) >= step]
        worse = bool(means) and max(history) < statistics.median(means)
        assert assessor.assess_trial("new", history) is (Bad if worse else Good)


def test_completed_trial_takes_part_up_to_its_first_value_that_is_no_number() -> None:
    assessor = with_completed("maximize", [5.0, math.nan, 5.0])

    assert assessor.assess_trial("new", [1.0]) is Bad
    assert assessor.assess_trial("new", [1.0, 1.0]) is Good


@pytest.mark.parametrize("start_step", [-1, 1.5, True, "2"])
def test_bad_start_step_is_refused(start_step: object) -> None:
    with pytest.raises(ValueError, match=r"start_step must be an int in \[0, 9999\]"):
        MedianstopAssessor("maximize", start_step)  # type: ignore[arg-type] # wrong on purpose


def test_bad_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="optimize_mode must be"):
        MedianstopAssessor("max")


def test_restored_assessor_knows_running_trials_and_the_means() -> None:
    assessor = with_completed("maximize", [5.0, 6.0])
    assessor.assess_trial("running", [9.0, 9.0])
    restored = MedianstopAssessor("maximize")

    restored.load_state(json.loads(json.dumps(assessor.state())))

    assert restored.assess_trial("new", [4.9]) is Bad
    assert restored.assess_trial("new", [6.0]) is Good
    restored.trial_end("running", True)  # the median is 7 now
    assert restored.assess_trial("new", [6.0]) is Bad
    assert assessor.assess_trial("new", [6.0]) is Good


def test_median_of_an_even_number_of_means_lies_between_them() -> None:
    assessor = with_completed("maximize", [1.0], [2.0], [4.0], [9.0])

    assert assessor.assess_trial("new", [3.0]) is Good
    assert assessor.assess_trial("new", [2.9]) is Bad


def test_default_maximizes_from_the_first_step() -> None:
    assessor = MedianstopAssessor()
    assessor.assess_trial("completed", [1.0])
    assessor.trial_end("completed", True)

    assert assessor.assess_trial("new", [0.5]) is Bad
    assert assessor.assess_trial("new", [math.nan]) is Good
    assert assessor.assess_trial("new", [math.nan, 0.0]) is Good
