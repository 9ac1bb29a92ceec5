"""Simulated experiments: slots, speeds, early stopping, budgets, checkpoints, time limit."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest

from nni.errors import NoMoreTrialError
from nni.hpo.base import DEFERRED, Assessor, AssessResult, Tuner
from nni.hpo.simulation.curve_table import Curve, CurveTable, GridAxis
from nni.hpo.simulation.simulator import SimulatedRun, simulate

STEPS = 9


def table(step_s: float = 1.0) -> CurveTable:
    """Eleven curves that rise to 1 - |x - 0.3|; the larger x, the slower the steps."""
    points = tuple(n / 10 for n in range(11))
    curves = tuple(
        Curve(
            tuple((1 - abs(x - 0.3)) * (step + 1) / STEPS for step in range(STEPS)),
            step_s * (1 + x),
        )
        for x in points
    )
    return CurveTable((GridAxis("x", "uniform", (0.0, 1.0), points),), curves)


class Scripted(Tuner):
    """Tuner that proposes given values, then no more, and records its results."""

    def __init__(self, *values: float) -> None:
        self.values = iter(values)
        self.results: list[tuple[int, float]] = []
        self.ends: list[tuple[int, bool]] = []

    def update_search_space(self, search_space: Any) -> None:
        pass

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
        for value in self.values:
            return {"x": value}
        raise NoMoreTrialError("over")

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        self.results.append((parameter_id, value))

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        self.ends.append((parameter_id, success))


class Strict(Assessor):
    """Stops every trial but the first after two steps."""

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
        bad = trial_job_id != "00000" and len(trial_history) >= 2
        return AssessResult.Bad if bad else AssessResult.Good


def test_a_trial_takes_as_long_as_its_steps() -> None:
    run = simulate(table(), tuner=Scripted(0.5))

    (trial,) = run.trials
    assert (trial.start_s, trial.end_s, trial.steps) == (0, 1.5 * STEPS, STEPS)
    assert trial.status == "SUCCEEDED"
    assert trial.value == pytest.approx(0.8)
    assert run.duration_s == 1.5 * STEPS
    assert run.best == trial
    assert run.progress == ((1.5 * STEPS, trial.value),)


def test_slots_are_filled_and_filled_again_as_they_become_free() -> None:
    run = simulate(table(), tuner=Scripted(0.0, 1.0, 0.5), concurrency=2)

    starts = [trial.start_s for trial in run.trials]
    assert starts == [0.0, 0.0, STEPS * 1.0]
    assert run.duration_s == STEPS * 2.5


def test_results_come_in_the_order_of_time() -> None:
    tuner = Scripted(1.0, 0.0)

    simulate(table(), tuner=tuner, concurrency=2)

    assert [parameter_id for parameter_id, _ in tuner.results] == [1, 0]
    assert tuner.ends == [(1, True), (0, True)]


def test_an_assessor_stops_trials_and_their_slots_are_used_again() -> None:
    tuner = Scripted(0.0, 0.0, 0.0)

    run = simulate(table(), tuner=tuner, assessor=Strict())

    assert [trial.status for trial in run.trials] == ["SUCCEEDED", *["EARLY_STOPPED"] * 2]
    assert [trial.steps for trial in run.trials] == [STEPS, 2, 2]
    assert run.steps == STEPS + 4
    assert run.duration_s == STEPS + 4
    assert tuner.ends == [(0, True), (1, False), (2, False)]
    assert [trial.value for trial in run.trials[1:]] == [None, None]


def test_time_that_is_over_cuts_everything_off() -> None:
    tuner = Scripted(0.0, 0.0, 0.0)

    run = simulate(table(), tuner=tuner, max_duration_s=STEPS + 3.5)

    assert [trial.status for trial in run.trials] == ["SUCCEEDED", "CUT_OFF"]
    assert run.trials[1].steps == 3
    assert run.trials[1].end_s == run.duration_s == STEPS + 3.5
    assert len(tuner.results) == 1


def test_a_budget_is_the_number_of_steps() -> None:
    class Budgeted(Scripted):
        def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
            return {**super().generate_parameters(parameter_id), "TRIAL_BUDGET": 4}

    (trial,) = simulate(table(), tuner=Budgeted(0.3)).trials

    assert trial.steps == 4
    assert trial.value == pytest.approx(4 / STEPS)


def test_a_checkpoint_is_gone_on_from() -> None:
    class Loading(Scripted):
        def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
            names = {"load_checkpoint_dir": str(parameter_id - 1)}
            names["save_checkpoint_dir"] = str(parameter_id)
            return {**super().generate_parameters(parameter_id), **names}

    run = simulate(table(), tuner=Loading(0.3, 0.3, 0.3, 0.3, 0.3), trial_steps=2)

    values = [trial.value for trial in run.trials]
    assert values == pytest.approx([2 / 9, 4 / 9, 6 / 9, 8 / 9, 1.0])
    assert [trial.steps for trial in run.trials] == [2] * 5


def test_a_budget_counts_the_steps_before_the_checkpoint() -> None:
    class Promoting(Scripted):
        def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
            configuration = super().generate_parameters(parameter_id)
            if parameter_id:
                configuration["load_checkpoint_dir"] = str(parameter_id - 1)
            configuration["save_checkpoint_dir"] = str(parameter_id)
            return {**configuration, "TRIAL_BUDGET": [1, 3, 9, 9][parameter_id]}

    run = simulate(table(), tuner=Promoting(0.3, 0.3, 0.3, 0.3))

    assert [trial.value for trial in run.trials] == pytest.approx([1 / 9, 3 / 9, 1.0, 1.0])
    assert [trial.steps for trial in run.trials] == [1, 2, 6, 1]
    assert [trial.resumed_at for trial in run.trials] == [0, 1, 3, 8]


def test_deferred_parameters_keep_their_slot() -> None:
    class Late(Scripted):
        """Gives the second configuration only after the first result."""

        def __init__(self) -> None:
            super().__init__(0.0, 0.1)
            self.waiting: Any = None

        def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
            if parameter_id == 0:
                return super().generate_parameters(parameter_id)
            if parameter_id > 1:
                raise NoMoreTrialError("over")
            self.waiting = (kwargs["st_callback"], parameter_id)
            return DEFERRED

        def receive_trial_result(self, parameter_id: int, *args: Any, **kwargs: Any) -> None:
            super().receive_trial_result(parameter_id, *args, **kwargs)
            if parameter_id == 0:
                start, waiting_id = self.waiting
                start(waiting_id, {"x": 0.1})

    run = simulate(table(), tuner=Late(), concurrency=2)

    assert [trial.start_s for trial in run.trials] == [0.0, float(STEPS)]


def test_a_curve_that_diverged_has_no_value() -> None:
    curves = (Curve((math.nan,), 1.0), Curve((0.5,), 1.0))
    diverging = CurveTable((GridAxis("x", "choice", (0, 1), (0, 1)),), curves)

    run = simulate(diverging, tuner=Scripted(0, 1))

    assert [trial.value for trial in run.trials] == [None, 0.5]
    assert run.best == run.trials[1]


def test_best_so_far_is_known_at_any_time() -> None:
    run = simulate(table(), tuner=Scripted(0.0, 0.3, 0.1))

    assert run.best_at(1.0) is None
    assert run.best_at(STEPS) == pytest.approx(0.7)
    assert run.best_at(1e9) == pytest.approx(1.0)
    assert len(run.progress) == 2


@pytest.mark.parametrize(
    "algorithm",
    [
        {"tuner": "Random"},
        {"tuner": "TPE"},
        {"tuner": "Evolution", "assessor": "Medianstop"},
        {
            "tuner": "Anneal",
            "assessor": "Curvefitting",  # which takes its time
            "assessor_args": {"epoch_num": STEPS},
            "trials": 4,
        },
        {"advisor": "Hyperband", "advisor_args": {"R": STEPS, "eta": 3}},
        {"advisor": "BOHB", "advisor_args": {"min_budget": 1, "max_budget": STEPS, "eta": 3}},
        {"tuner": "PBTTuner", "tuner_args": {"population_size": 4}, "trial_steps": 3},
    ],
    ids=lambda algorithm: "-".join(
        str(algorithm[k]) for k in algorithm if k in {"tuner", "assessor", "advisor"}
    ),
)
def test_every_scheduler_runs_and_repeats_itself(algorithm: dict[str, Any]) -> None:
    arguments = {"trials": 30, "concurrency": 4, "seed": 3} | algorithm
    runs = [simulate(table(), **arguments) for _ in range(2)]

    assert runs[0] == runs[1]
    assert len(runs[0].trials) == arguments["trials"]
    assert runs[0].best is not None
    assert most_at_once(runs[0]) <= 4


def most_at_once(run: SimulatedRun) -> int:
    changes = sorted(
        itertools.chain(
            ((trial.start_s, 1) for trial in run.trials),
            ((trial.end_s, -1) for trial in run.trials),
        )
    )
    return max(itertools.accumulate(change for _, change in changes))


def test_another_seed_gives_another_run() -> None:
    first, second = (simulate(table(), tuner="Random", trials=5, seed=seed) for seed in (1, 2))

    assert first != second


def test_halving_trains_less_than_the_whole_curves() -> None:
    arguments = {"R": STEPS, "eta": 3}
    run = simulate(table(), advisor="Hyperband", advisor_args=arguments, trials=40, concurrency=4)

    assert {trial.parameters["TRIAL_BUDGET"] for trial in run.trials} == {1, 3, 9}
    assert run.steps < 40 * STEPS / 2


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({}, "give a tuner"),
        ({"tuner": "Random", "advisor": "BOHB"}, "give a tuner"),
        ({"advisor": "BOHB", "assessor": "Medianstop"}, "give a tuner"),
        ({"tuner": "Random", "trials": 0}, "trials"),
        ({"tuner": "Random", "concurrency": 0}, "concurrency"),
        ({"tuner": "Random", "trial_steps": 0}, "trial_steps"),
        ({"tuner": "Random", "max_duration_s": 0}, "max_duration_s"),
        ({"tuner": "Random", "max_duration_s": math.nan}, "max_duration_s"),
        ({"tuner": "Unknown"}, "Unknown"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        simulate(table(), **arguments)


def test_an_algorithm_that_raises_is_not_passed_over() -> None:
    class Broken(Scripted):
        def receive_trial_result(self, *args: Any, **kwargs: Any) -> None:
            raise ZeroDivisionError("oops")

    with pytest.raises(RuntimeError, match="receive_trial_result failed"):
        simulate(table(), tuner=Broken(0.1))


class Timed(Scripted):
    """Tuner that also learns run times."""

    @property
    def learns_durations(self) -> bool:
        return True

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        self.ends.append((parameter_id, kwargs["duration_s"]))


def test_run_times_are_those_of_the_virtual_clock() -> None:
    tuner = Timed(1.0, 0.5)

    simulate(table(), tuner=tuner)

    assert tuner.ends == [(0, 2.0 * STEPS), (1, 1.5 * STEPS)]


def test_simulation_ends_after_a_hundred_trials_one_at_a_time_unless_told_otherwise() -> None:
    run = simulate(table(), tuner=Scripted(*[0.3] * 120))

    # Nine steps of 1.3 s each.
    assert len(run.trials) == 100
    assert run.duration_s == pytest.approx(100 * 9 * 1.3)


def test_configurations_are_requested_for_free_slots_only() -> None:
    class Counting(Scripted):
        """Tuner that records how many configurations it had to propose at each result."""

        def __init__(self, *values: float) -> None:
            super().__init__(*values)
            self.requested = 0
            self.before_results: list[int] = []

        def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
            self.requested += 1
            return super().generate_parameters(parameter_id, **kwargs)

        def receive_trial_result(self, parameter_id: int, *args: Any, **kwargs: Any) -> None:
            self.before_results.append(self.requested)

    tuner = Counting(*[0.0, 0.1] * 3)

    simulate(table(), tuner=tuner, concurrency=2, trials=6)

    assert tuner.before_results == [2, 3, 4, 5, 6, 6]


def test_step_at_the_time_limit_counts() -> None:
    (trial,) = simulate(table(), tuner=Scripted(0.0), max_duration_s=STEPS).trials

    assert (trial.status, trial.steps, trial.end_s) == ("SUCCEEDED", STEPS, STEPS)


def test_smallest_limits_are_one_step_of_one_trial() -> None:
    (trial,) = simulate(
        table(), tuner=Scripted(0.0, 0.0), trials=1, concurrency=1, trial_steps=1
    ).trials
    (cut,) = simulate(table(), tuner=Scripted(0.0), max_duration_s=0.5).trials

    assert (trial.status, trial.steps, trial.end_s) == ("SUCCEEDED", 1, 1.0)
    assert (cut.status, cut.steps, cut.end_s) == ("CUT_OFF", 0, 0.5)


def test_events_of_one_time_are_in_the_order_of_the_starts() -> None:
    tuner = Scripted(0.2, 0.2, 0.2)

    simulate(table(), tuner=tuner, concurrency=3)

    assert [parameter_id for parameter_id, _ in tuner.results] == [0, 1, 2]


def test_trials_are_listed_in_the_order_of_start_and_the_earlier_of_equals_is_best() -> None:
    run = simulate(table(), tuner=Scripted(0.8, 0.0, 0.3, 0.3), concurrency=2)

    assert [trial.id for trial in run.trials] == [0, 1, 2, 3]
    assert run.best == run.trials[2]
    assert [value for _, value in run.progress] == pytest.approx([0.7, 1.0])


def test_results_are_those_of_configurations_that_the_tuner_proposed() -> None:
    class Recording(Scripted):
        """Tuner that records which results are of configurations that users added."""

        def __init__(self, *values: float) -> None:
            super().__init__(*values)
            self.customized: list[bool] = []

        def receive_trial_result(self, *args: Any, **kwargs: Any) -> None:
            self.customized.append(kwargs["customized"])

    tuner = Recording(0.3)

    simulate(table(), tuner=tuner)

    assert tuner.customized == [False]
    assert tuner.ends == [(0, True)]


@pytest.mark.parametrize("arguments", [{}, {"seed": 0}, {"seed": 7}])
def test_global_generators_start_at_the_seed(arguments: dict[str, Any]) -> None:
    class Guessing(Scripted):
        def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
            return {"x": random.random()}

    random.seed(1)
    first = simulate(table(), tuner=Guessing(), trials=3, **arguments)
    second = simulate(table(), tuner=Guessing(), trials=3, seed=arguments.get("seed", 0))

    assert first == second
