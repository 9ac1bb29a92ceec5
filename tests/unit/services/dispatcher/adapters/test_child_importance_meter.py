"""Importance, measured in a child process."""

import os
from random import Random

import pytest

from svc_common.errors import FailedPreconditionError, UnavailableError
from svc_dispatcher.adapters.child_importance_meter import ChildImportanceMeter
from svc_dispatcher.ports import TrialOutcome

SPACE = {
    "x": {"_type": "uniform", "_value": [0, 1]},
    "y": {"_type": "uniform", "_value": [0, 1]},
}


def outcomes(count: int) -> list[TrialOutcome]:
    rng = Random(0)
    points = [{"x": rng.random(), "y": rng.random()} for _ in range(count)]
    return [TrialOutcome(str(n), p, {"loss": p["x"]}) for n, p in enumerate(points)]


async def test_a_child_measures() -> None:
    meter = ChildImportanceMeter(dict(os.environ), timeout_s=30.0)

    found = await meter.measure(SPACE, outcomes(60), "loss", "minimize")

    assert found.outcomes == 60
    assert found.shares[0][0] == "x"
    assert found.shares[0][1] > 0.8


async def test_too_few_results_are_a_failed_precondition() -> None:
    meter = ChildImportanceMeter(dict(os.environ), timeout_s=30.0)

    with pytest.raises(FailedPreconditionError, match="at least 4 trials"):
        await meter.measure(SPACE, outcomes(2), "loss", "minimize")


async def test_a_child_that_takes_too_long_is_given_up() -> None:
    meter = ChildImportanceMeter(dict(os.environ), timeout_s=0.0)

    with pytest.raises(UnavailableError, match="not computed within"):
        await meter.measure(SPACE, outcomes(10), "loss", "minimize")


async def test_the_end_of_a_child_is_reported_with_its_cause() -> None:
    meter = ChildImportanceMeter({"PYTHONHOME": "/nonexistent"}, timeout_s=30.0)

    with pytest.raises(UnavailableError, match="ended with code"):
        await meter.measure(SPACE, outcomes(10), "loss", "minimize")
