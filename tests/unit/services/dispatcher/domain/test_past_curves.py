"""Curves of trials of earlier generations."""

import pytest

from svc_dispatcher.domain.commands import PastCurve
from svc_dispatcher.domain.past_curves import PastCurves


def test_completed_trials_come_before_stopped_ones() -> None:
    curves = PastCurves()
    curves.report("a", 1, 5)
    curves.report("b", 1, 6)
    curves.report("b", 1, 7)

    curves.end("a", "pa", "EARLY_STOPPED", None)
    curves.end("b", "pb", "SUCCEEDED", (8,))

    assert curves.found() == (PastCurve("pb", (8,), (6, 7)), PastCurve("pa", None, (5,)))


def test_only_the_last_attempt_counts() -> None:
    curves = PastCurves()
    curves.report("a", 1, 5)
    curves.report("a", 2, 6)

    curves.end("a", "pa", "EARLY_STOPPED", None)

    assert curves.found() == (PastCurve("pa", None, (6,)),)


def test_failed_and_cancelled_trials_and_those_without_reports_have_no_curve() -> None:
    curves = PastCurves()
    curves.report("a", 1, 5)
    curves.report("b", 1, 5)

    curves.end("a", "pa", "FAILED", None)
    curves.end("b", "pb", "USER_CANCELED", None)
    curves.end("c", "pc", "EARLY_STOPPED", None)

    assert curves.found() == ()


@pytest.mark.parametrize(
    ("state", "final", "kept"), [("EARLY_STOPPED", None, 1000), ("SUCCEEDED", (1,), 200)]
)
def test_number_of_curves_is_bounded(state: str, final: tuple[int] | None, kept: int) -> None:
    curves = PastCurves()
    for number in range(1500):
        curves.report("a", 1, number)
        curves.end("a", number, state, final)

    found = curves.found()

    assert len(found) == kept
    assert found[-1].parameters == 1499


def test_first_results_of_a_long_curve_are_kept() -> None:
    curves = PastCurves()
    for step in range(1000):
        curves.report("a", 1, step)

    curves.end("a", "pa", "EARLY_STOPPED", None)

    assert curves.found() == (PastCurve("pa", None, tuple(range(200))),)


def test_cleared_curves_are_gone() -> None:
    curves = PastCurves()
    for trial_id, state, final in [("a", "SUCCEEDED", (8,)), ("b", "EARLY_STOPPED", None)]:
        curves.report(trial_id, 1, 5)
        curves.end(trial_id, "p", state, final)
    curves.report("c", 1, 5)
    curves.clear()

    curves.end("c", "pc", "SUCCEEDED", (8,))

    assert curves.found() == ()
