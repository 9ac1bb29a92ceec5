"""Evaluation loop: asks a search for trials, calls the objective, and tells the results."""

import inspect
import logging
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Lock
from typing import Literal, Protocol, TypeAlias

from nni.errors import NoMoreTrialError, TrialPruned
from nni.hpo.base import Assessor, AssessResult, assess
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import Objectives, part_of, require_numbers, scalar_metric
from nni.hpo.search.outcomes import StudyTrial

_logger = logging.getLogger(__name__)

Status: TypeAlias = Literal["SUCCEEDED", "FAILED", "EARLY_STOPPED"]
"""Outcome of a trial."""

ObjectiveFunction = Callable[..., JsonValue]
"""Function of a configuration, typed if the search space is a type, that returns a number or a dict
whose `default` is one. A generator yields intermediate results; its return value, or else its last
yield, is the final result."""


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """Outcome of one trial of `optimize`: parameters, status, value, intermediate results, error.

    Examples:
        >>> from nni.hpo import optimize
        >>> space = {"x": {"_type": "choice", "_value": [2]}}
        >>> record = optimize(lambda p: p["x"], space, tuner="GridSearch").trials[0]
        >>> record.parameters, record.status, record.value
        ({'x': 2}, 'SUCCEEDED', 2.0)
    """

    id: int
    """Number of the trial, from 0, in the order of `ask`."""

    parameters: JsonValue
    """Configuration of the trial."""

    status: Status
    """Outcome: success, an exception, or a stop by the assessor or by `TrialPruned`."""

    value: float | None
    """Value of the objective; None without success or a finite number, and with several
    objectives."""

    result: JsonValue = None
    """Return value of the objective; None unless the trial succeeded."""

    intermediate: tuple[JsonValue, ...] = ()
    """Intermediate results of a generator objective, oldest first."""

    error: Exception | None = None
    """Exception of the objective, if it failed."""

    user_attrs: dict[str, JsonValue] = field(default_factory=dict)
    """Values that the objective has attached by `trial.set_user_attr`."""

    duration_s: float | None = field(default=None, compare=False)
    """Run time of the objective in seconds."""


class Search(Protocol):
    """Protocol of an ask-and-tell search."""

    def ask(self) -> StudyTrial:
        """Return the next trial to evaluate.

        Raises:
            NoMoreTrialError: there is none at present.
        """
        ...

    def tell(
        self,
        trial: int,
        value: JsonValue,
        *,
        stopped: bool = False,
        intermediate: Sequence[JsonValue] = (),
        duration: float | None = None,
    ) -> None:
        """Report the result of a trial; None for one that failed, or was `stopped` early."""
        ...


class EarlyStopper(Protocol):
    """Protocol of the decision to stop a trial early; called from several threads."""

    def should_stop(self, trial_id: int, history: list[JsonValue]) -> bool:
        """Return whether to stop a trial, given its reports, oldest first."""
        ...

    def end(self, trial_id: int, *, success: bool) -> None:
        """Process the end of a trial."""
        ...


Clock: TypeAlias = Callable[[], float]
"""Function that returns the monotonic time in seconds."""


def deadline(timeout: float | timedelta | None, clock: Clock = time.monotonic) -> float:
    """Return the monotonic time after a time-out, `math.inf` without; ValueError unless positive.

    Args:
        timeout: seconds from now, or a timedelta.
        clock: of the loop that the deadline is for.

    Raises:
        ValueError: the time-out is not positive.
    """
    if timeout is None:
        return math.inf
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)
    if not seconds > 0:
        raise ValueError(f"timeout must be > 0 seconds, got {timeout!r}")
    return clock() + seconds


class AssessorStopper:
    """`EarlyStopper` that calls an assessor under a lock; without an assessor it stops no trial."""

    def __init__(self, assessor: Assessor | None) -> None:
        self._assessor = assessor
        self._lock = Lock()

    def should_stop(self, trial_id: int, history: list[JsonValue]) -> bool:
        """Return the assessor's decision to stop a trial; False without one, or if it raises."""
        if self._assessor is None:
            return False
        with self._lock:
            try:
                answer = assess(self._assessor, str(trial_id), list(history))
            except Exception:  # user code; counts as Good, as in an experiment
                _logger.warning("assessor failed on trial %s", trial_id, exc_info=True)
                return False
            return answer is AssessResult.Bad

    def end(self, trial_id: int, *, success: bool) -> None:
        """Notify the assessor, if there is one, of the end of a trial, under the lock."""
        if self._assessor is not None:
            with self._lock:
                self._assessor.trial_end(str(trial_id), success)


class TrialReporter:
    """Argument `trial` of an objective: takes intermediate results, returns whether to stop.

    Args:
        trial: the trial.
        early_stopper: that decides about it.
        check: raises TypeError for a report that is no result.
        history: receives the reports, oldest first.

    Examples:
        >>> from nni.hpo import optimize
        >>> def objective(parameters, trial):
        ...     for epoch in range(5):
        ...         trial.report(parameters["x"] * epoch)
        ...         if trial.should_stop():
        ...             break
        ...     return parameters["x"]
        >>> space = {"x": {"_type": "choice", "_value": [2]}}
        >>> optimize(objective, space, tuner="GridSearch").trials[0].intermediate
        (0, 2, 4, 6, 8)
    """

    def __init__(
        self,
        trial: StudyTrial,
        early_stopper: EarlyStopper,
        check: Callable[[JsonValue], JsonValue],
        history: list[JsonValue],
    ) -> None:
        self.id = trial.id
        """Number of the trial."""
        self.parameters = trial.parameters
        """Configuration of the trial."""
        self.user_attrs = trial.user_attrs
        """Values that `set_user_attr` has attached."""
        self._trial = trial
        self._early_stopper = early_stopper
        self._check = check
        self._history = history
        self._is_stopped = False

    def report(self, value: JsonValue) -> None:
        """Record a checked intermediate result; let assessor or advisor decide whether to stop.

        Args:
            value: a number, or a dict whose `default` is one.

        Raises:
            TypeError: it is none of these.
        """
        self._history.append(self._check(value))
        if not self._is_stopped:
            self._is_stopped = self._early_stopper.should_stop(self.id, self._history)

    def set_user_attr(self, key: str, value: JsonValue) -> None:
        """Attach a value to the trial, for `TrialRecord.user_attrs`; no tuner gets it.

        Args:
            key: name of the value; one that is known is replaced.
            value: JSON value.

        Raises:
            TypeError: the value cannot be written as JSON.
        """
        self._trial.set_user_attr(key, value)

    def should_stop(self) -> bool:
        """Return whether the trial is to end now, by the reports so far.

        Returns:
            True once the assessor or advisor stops it; the trial then counts as EARLY_STOPPED.
        """
        return self._is_stopped


class ObjectiveEvaluator:
    """Caller of the objective that records the result of each trial, with early stopping.

    Args:
        call: calls the objective.
        early_stopper: that decides about running trials.
        objectives: metrics that a result must have.
        catch: exceptions that make a trial FAILED; others end the search.
        clock: that the run time of a trial is measured by.
    """

    def __init__(
        self,
        call: Callable[[StudyTrial, TrialReporter], JsonValue],
        early_stopper: EarlyStopper,
        objectives: Objectives,
        catch: tuple[type[Exception], ...] = (Exception,),
        clock: Clock = time.monotonic,
    ) -> None:
        self._catch = catch
        self._clock = clock
        self._call_objective = call
        self.early_stopper = early_stopper
        self._objectives = objectives

    def of(self, trial: StudyTrial) -> TrialRecord:
        """Evaluate a trial; return its record, with the objective's exception if `catch` has it."""
        history: list[JsonValue] = []
        result: JsonValue = None
        error: Exception | None = None
        began_s = self._clock()
        try:
            result, stopped = self._call(trial, history)
            status: Status = "EARLY_STOPPED" if stopped else "SUCCEEDED"
        except TrialPruned:
            status = "EARLY_STOPPED"
        except self._catch as raised:
            status, error = "FAILED", raised
        return TrialRecord(
            trial.id,
            trial.parameters,
            status,
            self._number(result) if status == "SUCCEEDED" else None,
            result,
            tuple(history),
            error,
            trial.user_attrs,
            self._clock() - began_s,
        )

    def _call(self, trial: StudyTrial, history: list[JsonValue]) -> tuple[JsonValue, bool]:
        """Call the objective, append yields to `history`; return result, and if stopped early."""
        reporter = TrialReporter(trial, self.early_stopper, self._checked, history)
        outcome = self._call_objective(trial, reporter)
        if not inspect.isgenerator(outcome):
            if reporter.should_stop():
                return None, True
            return self._checked(outcome), False
        try:
            while True:
                history.append(self._checked(next(outcome)))
                if self.early_stopper.should_stop(trial.id, history):
                    outcome.close()
                    return None, True
        except StopIteration as end:
            if reporter.should_stop():  # it has reported, too, and went on
                return None, True
            final = end.value if end.value is not None else (history[-1] if history else None)
            return self._checked(final), False

    def _checked(self, value: JsonValue) -> JsonValue:
        require_numbers("objective must return", value, self._objectives)
        return value

    def _number(self, result: JsonValue) -> float | None:
        if self._objectives.several:
            return None
        return scalar_metric(part_of(result, self._objectives.items[0].metric))


class EvaluationLoop:
    """Loop of ask, evaluation and tell until the trial limit or the deadline.

    Args:
        search: that proposes trials and learns their results.
        evaluation: of each trial.
        limit: largest number of trials.
        deadline: monotonic time after which no trial starts, see `deadline`.
        clock: that the deadline is compared with.
        callbacks: called with each record, in the thread of the loop.
    """

    def __init__(
        self,
        search: Search,
        evaluation: ObjectiveEvaluator,
        limit: int,
        deadline: float,
        clock: Clock = time.monotonic,
        callbacks: Sequence[Callable[[TrialRecord], object]] = (),
    ) -> None:
        self.interrupted = False
        """True if Ctrl-C ended the loop; its records are those of the trials before."""
        self._callbacks = callbacks
        self._search = search
        self._evaluation = evaluation
        self._limit = limit
        self._deadline = deadline
        self._clock = clock
        self._asked = 0

    def run_here(self) -> list[TrialRecord]:
        """Run trials in the calling thread; return their records, after Ctrl-C those so far."""
        records: list[TrialRecord] = []
        try:
            while (trial := self._next()) is not None:
                records.append(self._finish(self._evaluation.of(trial)))
        except KeyboardInterrupt:
            self.interrupted = True
        return records

    def run_threads(self, concurrency: int) -> list[TrialRecord]:
        """Run trials in ``concurrency`` threads; return the records, after Ctrl-C those so far."""
        records: list[TrialRecord] = []
        running: set[Future[TrialRecord]] = set()
        with ThreadPoolExecutor(concurrency, "nni-optimize") as pool:
            try:
                while True:
                    while len(running) < concurrency and (trial := self._next()) is not None:
                        running.add(pool.submit(self._evaluation.of, trial))
                    if not running:
                        return records
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    finished = sorted((f.result() for f in done), key=lambda record: record.id)
                    for record in finished:
                        records.append(self._finish(record))  # noqa: PERF401 - kept at Ctrl-C
            except KeyboardInterrupt:
                self.interrupted = True
                pool.shutdown(wait=False, cancel_futures=True)
                return records

    def _next(self) -> StudyTrial | None:
        """Return the next trial; None if a limit is reached or the search has none."""
        if self._asked >= self._limit or self._clock() >= self._deadline:
            return None
        try:
            trial = self._search.ask()
        except NoMoreTrialError:
            return None
        self._asked += 1
        return trial

    def _finish(self, record: TrialRecord) -> TrialRecord:
        succeeded = record.status == "SUCCEEDED"
        stopped = record.status == "EARLY_STOPPED"
        self._search.tell(
            record.id,
            record.result if succeeded else None,
            stopped=stopped,
            intermediate=record.intermediate,
            # A clock of coarse ticks may have measured nothing.
            duration=record.duration_s or None,
        )
        self._evaluation.early_stopper.end(record.id, success=succeeded)
        if record.error is not None:
            name = type(record.error).__name__
            _logger.warning("trial %d failed: %s: %s", record.id, name, record.error)
        for callback in self._callbacks:
            callback(record)
        return record
