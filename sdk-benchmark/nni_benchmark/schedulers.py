"""Schedulers with early stopping, on recorded learning curves in virtual time.

Four workers train concurrently. Regret is that of the best reported value, over a duration in which
16 trainings of mean length would finish.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from nni.hpo.simulation.curve_table import CurveTable
from nni.hpo.simulation.simulator import SimulatedTrial, simulate
from nni_benchmark.runs import Run, run_of
from nni_benchmark.tables import load_curves

WORKERS: Final = 4
TICKS: Final = 100
"""Number of equal time steps of a run."""
_FULL_TRAININGS: Final = 16
_MOST_TRIALS: Final = 2_000

Report = tuple[float, float]
"""(virtual time in seconds, value)."""


class Scheduler(Protocol):
    """Interface of a scheduler: simulate a timed search on learning curves; return all reports."""

    @property
    def name(self) -> str:
        """Name in reports."""
        ...

    @property
    def packages(self) -> tuple[str, ...]:
        """Required packages besides NNI and numpy."""
        ...

    def reports(self, table: CurveTable, seed: int, duration_s: float) -> list[Report]:
        """Simulate a search on a table of learning curves; return all reports in any order.

        The seed determines all randomness.
        """
        ...


@dataclass(frozen=True, slots=True)
class SimulatedScheduler:
    """Scheduler by an NNI advisor, or tuner and assessor, simulated on learning curves."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    """Arguments of `nni.hpo.simulate`; the value `steps` means the length of the curves."""
    packages: tuple[str, ...] = ()

    def reports(self, table: CurveTable, seed: int, duration_s: float) -> list[Report]:
        """Simulate NNI's algorithm on learning curves; return (virtual time, value) pairs."""
        run = simulate(
            table,
            trials=_MOST_TRIALS,
            concurrency=WORKERS,
            seed=seed,
            max_duration_s=duration_s,
            **_filled(self.arguments, table.steps),
        )
        return [report for trial in run.trials for report in _reports_of(trial, table)]


def _filled(arguments: dict[str, Any], steps: int) -> dict[str, Any]:
    return {
        key: steps
        if value == "steps"
        else _filled(value, steps)
        if isinstance(value, dict)
        else value
        for key, value in arguments.items()
    }


def _reports_of(trial: SimulatedTrial, table: CurveTable) -> Iterator[Report]:
    curve = table.curve(trial.parameters)
    first = trial.resumed_at
    for number, value in enumerate(curve.values[first : first + trial.steps], 1):
        yield trial.start_s + number * curve.step_s, value


def our_schedulers() -> tuple[SimulatedScheduler, ...]:
    """Return NNI's schedulers to compare: ASHA, BOHB, Hyperband, TPE, Random, and variants."""
    budgets = {"min_budget": 1, "max_budget": "steps", "eta": 3}
    return (
        SimulatedScheduler("ASHA", {"advisor": "ASHA", "advisor_args": budgets}),
        SimulatedScheduler(
            "ASHA-stopping", {"advisor": "ASHA", "advisor_args": {**budgets, "mode": "stopping"}}
        ),
        SimulatedScheduler(
            "BOHB",
            {
                "advisor": "BOHB",
                "advisor_args": {**budgets, "exec_mode": "asynchronous", "checkpoints": True},
            },
        ),
        SimulatedScheduler("BOHB-serial", {"advisor": "BOHB", "advisor_args": budgets}),
        SimulatedScheduler("Hyperband", {"advisor": "Hyperband", "advisor_args": {"R": "steps"}}),
        SimulatedScheduler("TPE+Medianstop", {"tuner": "TPE", "assessor": "Medianstop"}),
        SimulatedScheduler("TPE", {"tuner": "TPE"}),
        SimulatedScheduler("Random", {"tuner": "Random"}),
    )


def duration_of(table: CurveTable) -> float:
    """Return the virtual seconds in which all workers together finish 16 mean-length trainings."""
    full_s = statistics.fmean(curve.step_s for curve in table.curves) * table.steps
    return full_s * _FULL_TRAININGS / WORKERS


def best_possible(table: CurveTable) -> float:
    """Return the best finite value at any step of any curve, by the table's optimize mode."""
    values = [value for curve in table.curves for value in curve.values if math.isfinite(value)]
    return max(values) if table.optimize_mode == "maximize" else min(values)


def run_schedule(scheduler: Scheduler, curves: str, seed: int) -> Run:
    """Simulate a scheduler on recorded curves; return its regret over 100 equal time steps.

    Raises:
        ImportError: a package of the scheduler is missing.
    """
    table = load_curves(curves)
    duration_s = duration_of(table)
    regrets = _regrets(scheduler.reports(table, seed, duration_s), table, duration_s)
    return run_of(scheduler.name, curves, seed, TICKS, regrets)


def _regrets(reports: Sequence[Report], table: CurveTable, duration_s: float) -> list[float]:
    best, least = best_possible(table), [math.inf] * TICKS
    for at_s, value in reports:
        tick = math.ceil(at_s / duration_s * TICKS - 1e-9)
        if math.isfinite(value) and tick <= TICKS:
            place = max(tick, 1) - 1
            least[place] = min(least[place], abs(best - value))
    for place in range(1, TICKS):
        least[place] = min(least[place], least[place - 1])
    return least
