"""Calls an objective for trial after trial, in the calling thread or in several."""

import inspect
import logging
import math
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import timedelta
from threading import Lock
from typing import Literal, Protocol

from nni.errors import NoMoreTrialError
from nni.hpo.base import Assessor, AssessResult, assess
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import Objectives, part_of, require_numbers, scalar_metric
from nni.hpo.search.outcomes import StudyTrial

_logger = logging.getLogger(__name__)

ObjectiveFunction = Callable[..., JsonValue]
"""Takes a configuration, typed if the search space is a type; returns a number, or a dict whose
`default` is one. A generator may yield intermediate results first; its return value, or else its
last yield, is the final one."""


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """What became of one configuration."""

    id: int
    """Counts from 0 in the order of asking."""

    parameters: JsonValue

    status: Literal["SUCCEEDED", "FAILED", "EARLY_STOPPED"]

    value: float | None
    """The number that was optimised; None unless the trial succeeded with a finite one, and with
    several objectives."""

    result: JsonValue = None
    """What the objective returned, whole; None unless it succeeded."""

    intermediate: tuple[JsonValue, ...] = ()
    """What a generator objective yielded, oldest first."""

    error: Exception | None = None
    """What the objective raised, if it failed."""


class Search(Protocol):
    """What proposes trials and learns from them."""

    def ask(self) -> StudyTrial:
        """Return the next trial to evaluate; NoMoreTrialError if there is none now."""
        ...

    def tell(self, trial: int, value: JsonValue) -> None:
        """Report what a trial gave; None of one that gave nothing."""
        ...


class EarlyStopper(Protocol):
    """What may end a trial early. Called from several threads."""

    def should_stop(self, trial_id: int, history: list[JsonValue]) -> bool:
        """Whether a trial is to end, given what it has reported, the latest last."""
        ...

    def end(self, trial_id: int, *, success: bool) -> None:
        """Learn that a trial is over."""
        ...


def deadline(timeout: float | timedelta | None) -> float:
    """Return the monotonic time after which no trial starts; `math.inf`: there is none.

    Raises:
        ValueError: the timeout is not above 0.
    """
    if timeout is None:
        return math.inf
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)
    if not seconds > 0:
        raise ValueError(f"timeout must be > 0 seconds, got {timeout!r}")
    return time.monotonic() + seconds


class AssessorStopper:
    """Calls an assessor, one trial at a time; without one, all is good."""

    def __init__(self, assessor: Assessor | None) -> None:
        self._assessor = assessor
        self._lock = Lock()

    def should_stop(self, trial_id: int, history: list[JsonValue]) -> bool:
        """See `EarlyStopper`."""
        if self._assessor is None:
            return False
        with self._lock:
            try:
                answer = assess(self._assessor, str(trial_id), list(history))
            except Exception:  # the user's code; as in an experiment this counts as Good
                _logger.warning("assessor failed on trial %s", trial_id, exc_info=True)
                return False
            return answer is AssessResult.Bad

    def end(self, trial_id: int, *, success: bool) -> None:
        """See `EarlyStopper`."""
        if self._assessor is not None:
            with self._lock:
                self._assessor.trial_end(str(trial_id), success)


class ObjectiveEvaluator:
    """Calls the objective, one trial at a time per thread, and judges what it yields."""

    def __init__(
        self, call: Callable[[StudyTrial], JsonValue], judge: EarlyStopper, objectives: Objectives
    ) -> None:
        self._call_objective = call
        self.judge = judge
        self._objectives = objectives

    def of(self, trial: StudyTrial) -> TrialRecord:
        """Return what became of a trial; its exceptions are kept."""
        history: list[JsonValue] = []
        try:
            result, stopped = self._call(trial, history)
        except Exception as error:  # noqa: BLE001 - the user's code; kept in the record
            return TrialRecord(
                trial.id, trial.parameters, "FAILED", None, None, tuple(history), error
            )
        if stopped:
            return TrialRecord(
                trial.id, trial.parameters, "EARLY_STOPPED", None, None, tuple(history)
            )
        return TrialRecord(
            trial.id,
            trial.parameters,
            "SUCCEEDED",
            self._number(result),
            result,
            tuple(history),
        )

    def _call(self, trial: StudyTrial, history: list[JsonValue]) -> tuple[JsonValue, bool]:
        """Return what the objective gave, and whether the assessor stopped it."""
        outcome = self._call_objective(trial)
        if not inspect.isgenerator(outcome):
            return self._checked(outcome), False
        try:
            while True:
                history.append(self._checked(next(outcome)))
                if self.judge.should_stop(trial.id, history):
                    outcome.close()
                    return None, True
        except StopIteration as end:
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
    """Asks, evaluates and tells until a limit is reached."""

    def __init__(
        self,
        search: Search,
        evaluation: ObjectiveEvaluator,
        limit: int,
        deadline: float,
    ) -> None:
        self._search = search
        self._evaluation = evaluation
        self._limit = limit
        self._deadline = deadline
        self._asked = 0

    def run_here(self) -> list[TrialRecord]:
        """Run trials in the calling thread; return what became of them."""
        records: list[TrialRecord] = []
        while (trial := self._next()) is not None:
            records.append(self._finish(self._evaluation.of(trial)))
        return records

    def run_threads(self, concurrency: int) -> list[TrialRecord]:
        """Run trials in ``concurrency`` threads; return what became of them."""
        records: list[TrialRecord] = []
        running: set[Future[TrialRecord]] = set()
        with ThreadPoolExecutor(concurrency, "nni-optimize") as pool:
            while True:
                while len(running) < concurrency and (trial := self._next()) is not None:
                    running.add(pool.submit(self._evaluation.of, trial))
                if not running:
                    return records
                done, running = wait(running, return_when=FIRST_COMPLETED)
                finished = sorted((f.result() for f in done), key=lambda record: record.id)
                records += [self._finish(record) for record in finished]

    def _next(self) -> StudyTrial | None:
        """Return a trial to start now, or None if a limit forbids it."""
        if self._asked >= self._limit or time.monotonic() >= self._deadline:
            return None
        try:
            trial = self._search.ask()
        except NoMoreTrialError:
            return None
        self._asked += 1
        return trial

    def _finish(self, record: TrialRecord) -> TrialRecord:
        succeeded = record.status == "SUCCEEDED"
        self._search.tell(record.id, record.result if succeeded else None)
        self._evaluation.judge.end(record.id, success=succeeded)
        return record
