"""Schedulers on recorded curves: in the library's loop, and under the services' real decisions."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pytest

from nni.hpo.simulation.curve_table import CurveTable
from nni.hpo.simulation.simulator import SimulatedRun, simulate
from svc_manager.domain.trial import TrialState
from tests.support.simulation.curves import Scheduler, run_on_curves
from tests.support.simulation.scenario import Fault, FaultKind, Scenario
from tests.support.simulation.world import World

DIGITS = CurveTable.load(Path(__file__).parents[1] / "assets" / "curves" / "digits_mlp.json")
HALVING = {"R": DIGITS.steps, "eta": 3}
MODEL_HALVING = {"min_budget": 1, "max_budget": DIGITS.steps, "eta": 3}

pytestmark = pytest.mark.timeout(120)


def test_recorded_curves_have_the_size_of_their_generator() -> None:
    assert (len(DIGITS.curves), DIGITS.steps) == (189, 27)
    assert 0.97 < DIGITS.best_value < 1
    assert all(0 <= value <= 1 for curve in DIGITS.curves for value in curve.values)
    assert all(curve.step_s > 0 for curve in DIGITS.curves)


@pytest.mark.parametrize(
    ("scheduler", "steps"),
    [
        (Scheduler(tuner="TPE"), None),
        (Scheduler(tuner="Random", assessor="Medianstop"), None),
        (Scheduler(advisor="Hyperband", advisor_args=HALVING), None),
        (Scheduler(advisor="BOHB", advisor_args=MODEL_HALVING), None),
        (Scheduler(tuner="PBTTuner", tuner_args={"population_size": 6}), 3),
    ],
    ids=["TPE", "Medianstop", "Hyperband", "BOHB", "PBT"],
)
def test_schedulers_come_to_their_end_under_the_real_decisions_and_are_drawn_again(
    scheduler: Scheduler, steps: int | None
) -> None:
    scenario = Scenario(seed=5, trials=30, concurrency=4, failing=False)

    world = run_on_curves(DIGITS, scheduler, scenario, steps)

    world.check()
    trials = world.experiment.trials.values()
    assert len(trials) == 30
    assert {trial.state for trial in trials} <= {TrialState.SUCCEEDED, TrialState.EARLY_STOPPED}
    assert best_of(world) > 0.85


def best_of(world: World) -> float:
    finals = [trial.final for trial in world.experiment.trials.values() if trial.final]
    return max(final.number("default") or 0.0 for final in finals)


def test_a_scheduler_survives_faults_in_the_middle_of_its_curves() -> None:
    faults = tuple(
        Fault(at_s, kind, 0, 1.0)
        for at_s, kind in [
            (0.7, FaultKind.KILL_AGENT),
            (1.1, FaultKind.KILL_HOST),
            (1.6, FaultKind.KILL_MANAGER),
            (2.2, FaultKind.KILL_DISPATCHER),
        ]
    )
    scenario = Scenario(
        seed=1, trials=40, concurrency=4, failing=False, trial_retries=100, faults=faults
    )

    world = run_on_curves(DIGITS, Scheduler(advisor="Hyperband", advisor_args=HALVING), scenario)

    world.check()
    assert len(world.experiment.trials) == 40


def test_early_stopping_finds_as_much_in_less_time() -> None:
    arguments: dict[str, Any] = {"tuner": "Random", "trials": 60, "concurrency": 4}
    plain = [simulate(DIGITS, seed=seed, **arguments) for seed in range(10)]
    stopped = [
        simulate(DIGITS, seed=seed, assessor="Medianstop", **arguments) for seed in range(10)
    ]

    def median_best(runs: list[SimulatedRun]) -> float:
        return statistics.median(run.progress[-1][1] for run in runs)

    # The median rule drops what is below half of the others at the same step: with the same 60
    # configurations it keeps the best of each run but for one that starts slowly.
    assert median_best(stopped) >= median_best(plain) - 0.005
    assert sum(run.steps for run in stopped) < 0.7 * sum(run.steps for run in plain)
    assert sum(run.duration_s for run in stopped) < 0.8 * sum(run.duration_s for run in plain)


def test_halving_is_ahead_of_whole_curves_early_in_the_run() -> None:
    at_s = 3.0  # about ten whole curves in four slots

    def known(**arguments: Any) -> float:
        runs = [
            simulate(DIGITS, trials=200, concurrency=4, seed=seed, max_duration_s=at_s, **arguments)
            for seed in range(10)
        ]
        return statistics.mean(sum(trial.steps > 0 for trial in run.trials) for run in runs)

    # Advantage of halving: several times as many configurations have been evaluated by then.
    assert known(advisor="Hyperband", advisor_args=HALVING) > 2 * known(tuner="Random")
