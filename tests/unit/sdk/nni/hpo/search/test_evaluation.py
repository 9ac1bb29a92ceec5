"""Evaluation of trials in one process."""

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from nni.errors import NoMoreTrialError
from nni.hpo import Assessor, AssessResult, Study
from nni.hpo.objectives import MINIMIZED
from nni.hpo.search.evaluation import (
    AssessorStopper,
    EvaluationLoop,
    ObjectiveEvaluator,
    TrialReporter,
    deadline,
)
from nni.hpo.search.outcomes import StudyTrial


class Threshold(Assessor):
    """Stops trials whose latest report is above 1."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, bool]] = []

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
        return AssessResult(trial_history[-1] <= 1)

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        self.ended.append((trial_job_id, success))


class Broken(Assessor):
    """Raises at every call."""

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
        raise KeyError(trial_job_id)


class Numbers:
    """Search that proposes 0, 1, ... up to a limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.asked = 0
        self.results: dict[int, object] = {}

    def ask(self) -> StudyTrial:
        if self.asked >= self.limit:
            raise NoMoreTrialError("no more numbers")
        self.asked += 1
        return StudyTrial(self.asked - 1, self.asked - 1)

    def tell(
        self,
        trial: int,
        value: object,
        *,
        stopped: bool = False,
        intermediate: Sequence[object] = (),
        duration: float | None = None,
    ) -> None:
        self.results[trial] = value


def steps(trial: StudyTrial) -> Iterator[float]:
    yield 0.5
    yield float(trial.parameters)


def evaluator(call: Any, assessor: Assessor | None = None) -> ObjectiveEvaluator:
    return ObjectiveEvaluator(lambda trial, _: call(trial), AssessorStopper(assessor), MINIMIZED)


@pytest.mark.parametrize("timeout", [60, timedelta(minutes=1)])
def test_deadline_is_that_far_in_the_future(timeout: float | timedelta) -> None:
    before = time.monotonic()

    assert before + 60 <= deadline(timeout) <= time.monotonic() + 60


@pytest.mark.parametrize("timeout", [0.25, timedelta(milliseconds=250)])
def test_timeout_may_be_shorter_than_a_second(timeout: float | timedelta) -> None:
    assert deadline(timeout, lambda: 7.0) == 7.25


def test_no_timeout_is_no_deadline() -> None:
    assert deadline(None) == math.inf


@pytest.mark.parametrize("timeout", [0, -1, math.nan, timedelta(0)])
def test_timeout_that_is_not_positive_is_refused(timeout: float | timedelta) -> None:
    with pytest.raises(ValueError, match="timeout must be > 0 seconds"):
        deadline(timeout)


def test_last_yield_of_a_generator_is_its_result() -> None:
    record = evaluator(steps).of(StudyTrial(0, 1))

    assert (record.status, record.value, record.intermediate) == ("SUCCEEDED", 1.0, (0.5, 1.0))


def test_assessor_stops_a_trial_early() -> None:
    record = evaluator(steps, Threshold()).of(StudyTrial(0, 2))

    assert (record.status, record.value, record.intermediate) == ("EARLY_STOPPED", None, (0.5, 2.0))


def test_generator_that_reports_and_ignores_the_stop_is_stopped_early() -> None:
    def objective(trial: StudyTrial, reporter: TrialReporter) -> Iterator[float]:
        yield 0.5
        reporter.report(2.0)

    evaluation = ObjectiveEvaluator(objective, AssessorStopper(Threshold()), MINIMIZED)

    record = evaluation.of(StudyTrial(0, 2))

    assert (record.status, record.value, record.intermediate) == ("EARLY_STOPPED", None, (0.5, 2.0))


def test_exception_of_an_assessor_stops_no_trial() -> None:
    assert evaluator(steps, Broken()).of(StudyTrial(0, 2)).status == "SUCCEEDED"


def test_exception_of_the_objective_is_stored_in_the_record() -> None:
    error = ZeroDivisionError("x")

    def fail(trial: StudyTrial) -> float:
        raise error

    record = evaluator(fail).of(StudyTrial(7, 2))

    assert (record.id, record.status, record.error) == (7, "FAILED", error)


def test_result_that_is_no_number_fails_the_trial() -> None:
    record = evaluator(lambda _: "much").of(StudyTrial(0, 2))

    assert record.status == "FAILED"
    assert "objective must return a number" in str(record.error)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_loop_ends_at_its_limit_of_trials(concurrency: int) -> None:
    search, assessor = Numbers(9), Threshold()
    loop = EvaluationLoop(search, evaluator(lambda t: t.parameters, assessor), 4, math.inf)

    records = loop.run_here() if concurrency == 1 else loop.run_threads(concurrency)

    assert sorted(record.id for record in records) == [0, 1, 2, 3]
    assert search.results == {0: 0, 1: 1, 2: 2, 3: 3}
    assert sorted(assessor.ended) == [(str(number), True) for number in range(4)]


@pytest.mark.parametrize("concurrency", [1, 2])
def test_loop_says_that_it_was_interrupted(concurrency: int) -> None:
    def objective(trial: StudyTrial) -> float:
        if trial.id == 3:
            raise KeyboardInterrupt
        return 1.0

    loop = EvaluationLoop(Numbers(9), evaluator(objective), 9, math.inf)

    records = loop.run_here() if concurrency == 1 else loop.run_threads(concurrency)

    assert loop.interrupted
    assert {record.id for record in records} <= {0, 1, 2, 4}


def test_loop_ends_with_the_search() -> None:
    loop = EvaluationLoop(Numbers(2), evaluator(lambda t: t.parameters), 10, math.inf)

    assert len(loop.run_here()) == 2


def test_no_trial_starts_after_the_deadline() -> None:
    search = Numbers(9)

    assert EvaluationLoop(search, evaluator(lambda _: 0), 4, -math.inf).run_threads(2) == []
    assert search.asked == 0


@pytest.mark.parametrize("timeout", [10.0, timedelta(seconds=10)])
def test_no_trial_starts_after_the_timeout(timeout: float | timedelta) -> None:
    now = 100.0

    def objective(trial: StudyTrial) -> float:
        nonlocal now
        now += 4
        return float(trial.parameters["x"]) ** 2

    def clock() -> float:
        return now

    study = Study({"x": {"_type": "uniform", "_value": [-10, 10]}}, seed=0)
    evaluation = evaluator(objective)

    records = EvaluationLoop(study, evaluation, 100, deadline(timeout, clock), clock).run_here()

    assert len(records) == 3  # at 0, 4 and 8 seconds


def test_run_time_of_the_objective_is_measured_and_told() -> None:
    class Timed(Numbers):
        durations: ClassVar[list[float | None]] = []

        def tell(
            self,
            trial: int,
            value: object,
            *,
            stopped: bool = False,
            intermediate: Sequence[object] = (),
            duration: float | None = None,
        ) -> None:
            self.durations.append(duration)

    now_s = itertools.count(10.0, 2.5)
    evaluation = ObjectiveEvaluator(
        lambda trial, _: trial.parameters,
        AssessorStopper(None),
        MINIMIZED,
        clock=lambda: next(now_s),
    )

    records = EvaluationLoop(Timed(2), evaluation, 2, math.inf).run_here()

    assert [record.duration_s for record in records] == Timed.durations == [2.5, 2.5]


@pytest.mark.parametrize(("until_s", "count"), [(7.0, 0), (7.5, 3)])
def test_no_trial_starts_at_the_deadline(until_s: float, count: int) -> None:
    search = Numbers(3)

    records = EvaluationLoop(search, evaluator(lambda _: 1.0), 9, until_s, lambda: 7.0).run_here()

    assert len(records) == search.asked == count


def test_values_that_an_objective_attaches_are_in_the_record() -> None:
    def objective(trial: StudyTrial, reporter: TrialReporter) -> float:
        reporter.set_user_attr("seconds", 3)
        reporter.set_user_attr("seconds", 4)
        return float(trial.parameters)

    evaluation = ObjectiveEvaluator(objective, AssessorStopper(None), MINIMIZED)

    assert evaluation.of(StudyTrial(0, 1)).user_attrs == {"seconds": 4}
