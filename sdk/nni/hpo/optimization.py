"""`optimize`: tune a Python function in this process."""

import inspect
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from threading import Lock
from typing import Literal

from nni.errors import NoMoreTrialError
from nni.hpo.base import Assessor, AssessResult, Tuner, assess
from nni.hpo.earlier_results import EarlierResults
from nni.hpo.json_value import JsonValue
from nni.hpo.managed import DuplicatePolicy
from nni.hpo.metrics import scalar_metric
from nni.hpo.objectives import Objectives, objectives_of, part_of, require_numbers
from nni.hpo.registry import create, named_class
from nni.hpo.stopping import StoppingRule
from nni.hpo.study import Study, StudyTrial
from nni.hpo.typed_space import is_type_of_space
from nni.hpo.validation import check_count

_logger = logging.getLogger(__name__)

Objective = Callable[..., JsonValue]
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


@dataclass(frozen=True, slots=True)
class OptimizeResult:
    """What `optimize` found."""

    best_parameters: JsonValue
    """None with several objectives, of which none is best."""

    best_value: float
    """NaN with several objectives."""

    trials: tuple[TrialRecord, ...]
    """All trials that ended, in the order of asking."""

    pareto_front: tuple[TrialRecord, ...] = ()
    """The trials within all constraints that no other one beats in every objective."""

    stopped_because: str = ""
    """Why a stopping rule ended the search; empty if none did."""


def optimize(  # noqa: PLR0913 - documented signature
    objective: Objective,
    search_space: JsonValue = None,
    *,
    tuner: str | Tuner = "auto",
    tuner_args: Mapping[str, JsonValue] | None = None,
    assessor: str | Assessor | None = None,
    trials: int = 100,
    concurrency: int = 1,
    optimize_mode: str | Mapping[str, str] = "minimize",
    constraints: Sequence[Mapping[str, JsonValue]] | None = None,
    duplicates: DuplicatePolicy = "replicate",
    enqueue: Iterable[JsonValue] = (),
    warm_start_from: EarlierResults = None,
    stop: StoppingRule | Sequence[StoppingRule] = (),
    seed: int | None = None,
    timeout: float | timedelta | None = None,
) -> OptimizeResult:
    """Find parameters for which `objective` is good.

    With `concurrency=1` all runs in the calling thread and a seed makes it repeatable. A trial
    whose objective raises has failed; the search goes on.

    Args:
        objective: called once per trial with a configuration; see `Objective`. With several at a
            time it is called from that many threads.
        search_space: see `Study`. Of a function, the objective gets the arguments by name; None
            stands for the objective itself.
        tuner: name or object, see `Study`.
        tuner_args: further arguments of a named tuner.
        assessor: name or object; ends trials of generator objectives early. They count as no
            result for the tuner.
        trials: how many to run at most.
        concurrency: how many to run at a time.
        optimize_mode: `minimize` or `maximize`; or a dict of metric to mode, for several
            objectives, see `Study`.
        constraints: limits on outcomes, dicts with `metric` and `max`.
        duplicates: `replicate`, `resample` or `reuse`, see `Study`.
        enqueue: configurations to try first.
        warm_start_from: results of earlier searches, see `Study`.
        stop: rules that end the search before all trials have run, see `nni.hpo.stopping`.
        seed: of the tuner.
        timeout: no trial starts after it; seconds or a timedelta. Running ones are waited for.

    Returns:
        The best parameters, their value, and all trials.

    Raises:
        ValueError: an argument is wrong, or no trial gave a finite number.
        TypeError: the search space is a type that describes none.
        Exception: what the first trial raised, if all failed.
    """
    check_count("trials", trials, least=1)
    check_count("concurrency", concurrency, least=1)
    space = objective if search_space is None else search_space
    study = Study(
        space,
        tuner=tuner,
        tuner_args=tuner_args,
        optimize_mode=optimize_mode,
        constraints=constraints,
        duplicates=duplicates,
        warm_start_from=warm_start_from,
        stop=stop,
        seed=seed,
    )
    for configuration in enqueue:
        study.enqueue(configuration)
    objectives = objectives_of(optimize_mode, constraints)
    judge = _Judge(_make_assessor(assessor, objectives.items[0].mode))
    deadline = _deadline(timeout)
    evaluation = _Evaluation(_call_of(objective, space), judge, objectives)
    loop = _Loop(study, evaluation, trials, deadline)
    records = loop.run_here() if concurrency == 1 else loop.run_threads(concurrency)
    return _result(study, tuple(sorted(records, key=lambda record: record.id)), objectives)


def _call_of(objective: Objective, space: object) -> Callable[[StudyTrial], JsonValue]:
    """Return what calls the objective with a trial's configuration."""
    if not is_type_of_space(space):
        return lambda trial: objective(deepcopy(trial.parameters))  # which may take it apart
    if isinstance(space, type):
        return lambda trial: objective(trial.configuration)
    return lambda trial: objective(**trial.configuration)


def _deadline(timeout: float | timedelta | None) -> float | None:
    if timeout is None:
        return None
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)
    if not seconds > 0:
        raise ValueError(f"timeout must be > 0 seconds, got {timeout!r}")
    return time.monotonic() + seconds


def _make_assessor(assessor: str | Assessor | None, optimize_mode: str) -> Assessor | None:
    if assessor is None or isinstance(assessor, Assessor):
        return assessor
    name = named_class("assessor", assessor).__name__
    try:
        return create("assessor", assessor, optimize_mode=optimize_mode)
    except ValueError as error:
        raise ValueError(
            f"assessor {assessor!r} is more than a name: {error}; give an object, like "
            f"nni.hpo.{name}(...)"
        ) from error


def _result(
    study: Study, records: tuple[TrialRecord, ...], objectives: Objectives
) -> OptimizeResult:
    errors = [record.error for record in records if record.error is not None]
    if errors and len(errors) == len(records):
        raise errors[0]
    best = {point.trial.id for point in study.pareto_front}
    if not best:
        within = " within all constraints" if objectives.limits else ""
        raise ValueError(
            f"none of {len(records)} trials gave a finite number{within}; the objective must "
            "return one"
        )
    front = tuple(record for record in records if record.id in best)
    if objectives.several:
        return OptimizeResult(None, math.nan, records, front, study.stopped_because)
    return OptimizeResult(
        study.best_parameters, study.best_value, records, front, study.stopped_because
    )


class _Judge:
    """Calls an assessor, one trial at a time; without one, all is good."""

    def __init__(self, assessor: Assessor | None) -> None:
        self._assessor = assessor
        self._lock = Lock()

    def is_bad(self, trial_id: int, history: list[JsonValue]) -> bool:
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
        if self._assessor is not None:
            with self._lock:
                self._assessor.trial_end(str(trial_id), success)


class _Evaluation:
    """Calls the objective, one trial at a time per thread, and judges what it yields."""

    def __init__(
        self, call: Callable[[StudyTrial], JsonValue], judge: _Judge, objectives: Objectives
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
                if self.judge.is_bad(trial.id, history):
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


class _Loop:
    """Asks, evaluates and tells until a limit is reached."""

    def __init__(
        self,
        study: Study,
        evaluation: _Evaluation,
        limit: int,
        deadline: float | None,
    ) -> None:
        self._study = study
        self._evaluation = evaluation
        self._limit = limit
        self._deadline = deadline
        self._asked = 0

    def run_here(self) -> list[TrialRecord]:
        records: list[TrialRecord] = []
        while (trial := self._next()) is not None:
            records.append(self._finish(self._evaluation.of(trial)))
        return records

    def run_threads(self, concurrency: int) -> list[TrialRecord]:
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
        late = self._deadline is not None and time.monotonic() >= self._deadline
        if self._asked >= self._limit or late:
            return None
        try:
            trial = self._study.ask()
        except NoMoreTrialError:
            return None
        self._asked += 1
        return trial

    def _finish(self, record: TrialRecord) -> TrialRecord:
        succeeded = record.status == "SUCCEEDED"
        self._study.tell(record.id, record.result if succeeded else None)
        self._evaluation.judge.end(record.id, success=succeeded)
        return record
