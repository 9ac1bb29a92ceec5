"""Schedulers on recorded curves: regret over time steps."""

from __future__ import annotations

import itertools
import math

import pytest

from nni.hpo.simulation.curve_table import CurveTable
from nni_benchmark.schedulers import (
    TICKS,
    Report,
    SimulatedScheduler,
    best_possible,
    duration_of,
    our_schedulers,
    run_schedule,
)
from nni_benchmark.tables import CURVES, load_curves

CANCER = CURVES[2]


class FixedReports:
    """Reports what it was given, at parts of the time."""

    packages = ()
    name = "fixed"

    def __init__(self, *reports: Report) -> None:
        self._reports = reports

    def reports(self, table: CurveTable, seed: int, duration_s: float) -> list[Report]:
        best = best_possible(table)
        return [(part * duration_s, best + worse) for part, worse in self._reports]


def test_regret_falls_when_something_better_is_reported() -> None:
    made = run_schedule(FixedReports((0.5, 0.1), (0.101, 0.4), (0.2, 0.9), (1.01, 0.0)), CANCER, 0)

    assert made.trials == TICKS
    assert made.changes == ((11, 0.4), (50, 0.1))
    assert made.regret(10) == math.inf


@pytest.mark.parametrize("scheduler", our_schedulers(), ids=lambda one: one.name)
def test_every_scheduler_of_ours_repeats_and_improves(scheduler: SimulatedScheduler) -> None:
    first, second = (run_schedule(scheduler, CANCER, 3) for _ in range(2))

    assert first == second
    regrets = [regret for _, regret in first.changes]
    assert all(later < earlier for earlier, later in itertools.pairwise(regrets))
    assert first.regret(TICKS) < 0.1


@pytest.mark.parametrize("mode", ["promotion", "stopping"])
def test_reports_are_those_of_the_curves_within_the_time(mode: str) -> None:
    table = load_curves(CANCER)
    arguments = {"min_budget": 1, "max_budget": "steps", "eta": 3, "mode": mode}
    scheduler = SimulatedScheduler("ASHA", {"advisor": "ASHA", "advisor_args": arguments})
    duration_s = duration_of(table)

    reports = scheduler.reports(table, 0, duration_s)

    known = {value for curve in table.curves for value in curve.values}
    assert len(reports) > 100
    assert all(value in known for _, value in reports)
    # The last trials are cut off within a step.
    assert max(at_s for at_s, _ in reports) <= duration_s * (1 + 1e-9)
