"""Optimisation of a Python function in one process: `optimize`."""

import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeAlias

from nni.hpo.advisor import MsgDispatcherBase
from nni.hpo.base import Assessor, Tuner
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import Objectives, objectives_of
from nni.hpo.registry.factory import create, named_class
from nni.hpo.registry.validation import check_count
from nni.hpo.search._trial_processes import TrialProcesses
from nni.hpo.search.advisor_search import AdvisorSearch, advisor_search
from nni.hpo.search.define_by_run import DefineByRunStudy, DefineByRunTrial
from nni.hpo.search.earlier_results import EarlierResults, WarmStartWay, samples_of
from nni.hpo.search.evaluation import (
    AssessorStopper,
    EarlyStopper,
    EvaluationLoop,
    ObjectiveEvaluator,
    ObjectiveFunction,
    TrialRecord,
    TrialReporter,
    deadline,
)
from nni.hpo.search.managed_tuner import DuplicatePolicy
from nni.hpo.search.outcomes import Recommendation, StudyTrial
from nni.hpo.search.stopping_rules import StoppingRule
from nni.hpo.search.study import Study
from nni.hpo.search.trial_table import Row, data_frame, html_table, trial_columns
from nni.hpo.space.typed_space import is_type_of_space, with_entries

AnySearch: TypeAlias = AdvisorSearch | DefineByRunStudy | Study


@dataclass(frozen=True, slots=True)
class OptimizeResult:
    """Result of `optimize`: the incumbent, all trials, and the Pareto front.

    Examples:
        >>> from nni.hpo import optimize
        >>> space = {"x": {"_type": "choice", "_value": [1, 2]}}
        >>> found = optimize(lambda p: p["x"], space, tuner="GridSearch")
        >>> found.best_parameters, found.best_value, len(found.trials)
        ({'x': 1}, 1.0, 2)
    """

    best_parameters: JsonValue
    """Configuration of the incumbent; None with several objectives."""

    best_value: float
    """Value of the incumbent as it was measured; NaN with several objectives. Under noise it is a
    lucky one; see `recommended`."""

    trials: tuple[TrialRecord, ...]
    """All finished trials, in the order of `ask`."""

    pareto_front: tuple[TrialRecord, ...] = ()
    """The feasible non-dominated trials."""

    stopped_because: str = ""
    """Reason of the stopping rule that ended the search; empty if none did."""

    explanation: str = ""
    """The tuner's explanation of its method, which `auto` has; else empty."""

    interrupted: bool = False
    """True if Ctrl-C ended the search; the trials are those that had finished."""

    recommended: Recommendation | None = None
    """See `Study.recommended`; None with several objectives, an advisor, or without a space."""

    def to_dataframe(self) -> Any:  # noqa: ANN401 - of pandas, which need not be installed
        """Return the trials as a table of pandas, with a row each.

        Returns:
            `DataFrame` with the columns `id`, `status`, `value`, one per hyperparameter, whose
            names begin with `parameters.`, and one per `user_attrs.` of a trial.

        Raises:
            ImportError: pandas is not installed.
        """
        return data_frame(map(_row, self.trials))

    def _repr_html_(self) -> str:
        """Return an HTML table of the best and the latest trials, for notebooks."""
        return html_table(
            [_row(record) for record in self.trials], {record.id for record in self.pareto_front}
        )


def optimize(  # noqa: PLR0913 - documented signature
    objective: ObjectiveFunction,
    search_space: JsonValue = None,
    *,
    tuner: str | Tuner = "auto",
    tuner_args: Mapping[str, JsonValue] | None = None,
    assessor: str | Assessor | None = None,
    advisor: str | MsgDispatcherBase | None = None,
    advisor_args: Mapping[str, JsonValue] | None = None,
    trials: int = 100,
    concurrency: int = 1,
    optimize_mode: str | Mapping[str, str] = "minimize",
    constraints: Sequence[Mapping[str, JsonValue]] | None = None,
    duplicates: DuplicatePolicy = "replicate",
    enqueue: Iterable[JsonValue] = (),
    warm_start_from: EarlierResults = None,
    warm_start_by: WarmStartWay = "value",
    stop: StoppingRule | Sequence[StoppingRule] = (),
    seed: int | None = None,
    timeout: float | timedelta | None = None,
    callbacks: Sequence[Callable[[TrialRecord], object]] = (),
    catch: type[Exception] | tuple[type[Exception], ...] = Exception,
    progress: bool = False,
    processes: bool = False,
) -> OptimizeResult:
    """Optimise the parameters of a Python function in this process; return best and all trials.

    With `concurrency=1` everything runs in the calling thread, repeatable with a seed. A trial
    whose objective raises is FAILED, or EARLY_STOPPED by `TrialPruned`; the search continues.

    Args:
        objective: function of a configuration, called once per trial; returns a number, or a dict
            whose `default` is one; a generator yields intermediate results. A second argument
            named `trial` is a `TrialReporter`, with `report` and `should_stop`. If `trial` is its
            only argument, it suggests its hyperparameters, see `DefineByRunTrial`. With a
            `concurrency` above 1 it is called from that many threads.
        search_space: see `Study`. If it is a function, the objective gets keyword arguments; None
            means the signature of the objective itself, or what it suggests.
        tuner: name or object, see `Study`.
        tuner_args: further arguments of a named tuner.
        assessor: name or object; stops trials of generator objectives early, of which the tuner
            learns an estimated result.
        advisor: name or object, instead of tuner and assessor. Configurations have further keys of
            the advisor, such as `TRIAL_BUDGET`; the folders of `load_checkpoint_dir` and
            `save_checkpoint_dir` exist until `optimize` returns.
        advisor_args: further arguments of a named advisor.
        trials: largest number of trials.
        concurrency: number of trials at a time.
        optimize_mode: `minimize` or `maximize`; or a dict of metric to mode, for several
            objectives, see `Study`.
        constraints: limits on outcomes, dicts with `metric` and `max`.
        duplicates: `replicate`, `resample` or `reuse`, see `Study`.
        enqueue: configurations to evaluate first.
        warm_start_from: results of earlier searches, see `Study`.
        warm_start_by: `value` or, for related tasks and with a tuner, `rank`, see `Study`.
        stop: stopping rules, such as `NoImprovement(30)`.
        seed: seed of the tuner.
        timeout: time after which no trial starts, in seconds or as a timedelta; running trials
            finish. So does Ctrl-C, after which the result is that of the trials so far.
        callbacks: called with the record of each trial that has ended, in the calling thread.
        catch: exceptions of the objective that make its trial FAILED; another one is raised once
            the running trials have ended, and no result is returned.
        progress: whether to write a line to standard error for each trial that has ended.
        processes: whether trials run in ``concurrency`` processes, for objectives that compute in
            Python: functions of a module, without `yield` or `trial`. A script that calls
            `optimize` so does it under `if __name__ == "__main__":`, since each process imports it.

    Returns:
        The incumbent, all trials, and the Pareto front.

    Raises:
        ValueError: an argument is wrong, or no trial gave a finite number.
        TypeError: the search space is a type that declares none, or `catch` has no exceptions.
        Exception: exception of the first trial, if all failed, or one that is not in `catch`.
        KeyboardInterrupt: Ctrl-C came before any trial gave a finite number.

    Examples:
        >>> from nni.hpo import optimize
        >>> space = {"x": {"_type": "uniform", "_value": [-10, 10]}}
        >>> found = optimize(lambda p: (p["x"] - 2) ** 2, space, trials=40, seed=0)
        >>> round(found.best_parameters["x"])
        2
    """
    check_count("trials", trials, least=1)
    check_count("concurrency", concurrency, least=1)
    end_s, caught = deadline(timeout), _exceptions(catch)
    suggests = search_space is None and _suggests(objective)
    space = objective if search_space is None else with_entries(search_space)
    objectives = objectives_of(optimize_mode, constraints)
    opened: AbstractContextManager[AnySearch]
    if advisor is None:
        if advisor_args:
            raise ValueError("advisor_args must be left out without an advisor")
        build = DefineByRunStudy if suggests else functools.partial(Study, space)
        study = build(
            tuner=tuner,
            tuner_args=tuner_args,
            optimize_mode=optimize_mode,
            constraints=constraints,
            duplicates=duplicates,
            warm_start_from=warm_start_from,
            warm_start_by=warm_start_by,
            stop=stop,
            seed=seed,
        )
        for configuration in enqueue:
            study.enqueue(configuration)
        opened = nullcontext(study)
    else:
        _check_alone(tuner, tuner_args, assessor, constraints, duplicates, space, by=warm_start_by)
        opened = advisor_search(
            advisor,
            dict(advisor_args or {}),
            space,
            objectives,
            first=tuple(enqueue),
            known=tuple(samples_of(warm_start_from)),
            rules=tuple(stop) if isinstance(stop, Sequence) else (stop,),
            seed=seed,
        )
    reports = (*callbacks, *([_write_progress] if progress else []))
    with opened as search, _caller(objective, concurrency, processes=processes) as call:
        caller = _suggesting_call(call) if suggests else _call_of(call, space)
        stopper = _stopper(search, assessor, objectives)
        evaluation = ObjectiveEvaluator(caller, stopper, objectives, caught)
        loop = EvaluationLoop(search, evaluation, trials, end_s, callbacks=reports)
        alone = concurrency == 1 and not processes
        records = loop.run_here() if alone else loop.run_threads(concurrency)
        if loop.interrupted and not search.pareto_front:
            raise KeyboardInterrupt
        ordered = tuple(sorted(records, key=lambda record: record.id))
        return replace(_result(search, ordered, objectives), interrupted=loop.interrupted)


def _exceptions(
    catch: type[Exception] | tuple[type[Exception], ...],
) -> tuple[type[Exception], ...]:
    caught = catch if isinstance(catch, tuple) else (catch,)
    kinds: tuple[object, ...] = caught
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise TypeError(f"catch must be classes of exceptions, got {kind!r:.200}")
    return caught


def _stopper(
    search: AnySearch,
    assessor: str | Assessor | None,
    objectives: Objectives,
) -> EarlyStopper:
    if isinstance(search, AdvisorSearch):
        return search
    return AssessorStopper(_make_assessor(assessor, objectives.items[0].mode))


@contextmanager
def _caller(
    objective: ObjectiveFunction, concurrency: int, *, processes: bool
) -> Iterator[ObjectiveFunction]:
    """Yield the objective, or with `processes` a function that calls it in another process.

    Raises:
        ValueError: another process cannot call it, see `_check_importable`.
    """
    if not processes:
        yield objective
        return
    _check_importable(objective)
    with closing(TrialProcesses(concurrency)) as processes_of_trials:

        @functools.wraps(objective)
        def call(*arguments: JsonValue, **keywords: JsonValue) -> JsonValue:
            return processes_of_trials.call(objective, *arguments, **keywords)

        yield call


def _check_importable(objective: ObjectiveFunction) -> None:
    """Raise ValueError if another process cannot call the objective and send its result."""
    name = getattr(objective, "__qualname__", "")
    if "<" in name:  # a lambda, or a function within another one
        found = f"{name}, which they cannot import"
    elif inspect.isgeneratorfunction(objective):
        found = f"{name}, a generator"
    elif _takes_trial(objective) or _suggests(objective):
        found = f"{name} with an argument 'trial'"
    else:
        return
    raise ValueError(
        "with processes=True the objective must be a function of a module, without yield or an "
        f"argument 'trial'; got {found}; leave processes out to evaluate it in threads"
    )


def _write_progress(record: TrialRecord) -> None:
    shown = record.status if record.value is None else f"{record.value:.6g}"
    sys.stderr.write(f"trial {record.id}: {shown} at {record.parameters!r:.200}\n")
    sys.stderr.flush()


def _row(record: TrialRecord) -> Row:
    """Return a trial's row of a table: id, status, value, parameters and attributes by column."""
    return {
        "id": record.id,
        "status": record.status,
        "value": record.value,
        **trial_columns(record.parameters, record.user_attrs),
    }


def _check_alone(
    tuner: str | Tuner,
    tuner_args: Mapping[str, JsonValue] | None,
    assessor: str | Assessor | None,
    constraints: Sequence[Mapping[str, JsonValue]] | None,
    duplicates: str,
    space: object,
    *,
    by: str,
) -> None:
    """Raise ValueError for a tuner, assessor, constraint or other option an advisor excludes.

    The others: `duplicates` but `replicate`, a warm start by rank, a space that is not JSON.
    """
    if tuner != "auto" or tuner_args or assessor is not None:
        raise ValueError("tuner, tuner_args and assessor must be left out with an advisor")
    if constraints:
        raise ValueError(
            "constraints must be left out with an advisor, which knows of no limits on outcomes"
        )
    if duplicates != "replicate":
        raise ValueError(
            "duplicates must be 'replicate' with an advisor, which evaluates a configuration "
            f"with several budgets; got {duplicates!r}"
        )
    if by != "value":
        raise ValueError(
            f"warm_start_by must be 'value' with an advisor, got {by!r}; a warm start by rank "
            "needs a tuner"
        )
    if callable(space) and _suggests(space):
        raise ValueError(
            "search_space must be given with an advisor, which knows its hyperparameters from "
            "the start; got an objective that suggests them"
        )
    if is_type_of_space(space):
        raise ValueError(
            "search_space must be in its JSON form with an advisor, whose configurations have "
            "further keys; nni.hpo.search_space(...) gives it"
        )


def _call_of(
    objective: ObjectiveFunction, space: object
) -> Callable[[StudyTrial, TrialReporter], JsonValue]:
    """Return a caller of the objective: configuration or keywords; reporter if it takes `trial`."""
    function_space = is_type_of_space(space) and not isinstance(space, type)
    reports = not function_space and _takes_trial(objective)

    def call(trial: StudyTrial, reporter: TrialReporter) -> JsonValue:
        if function_space:
            return objective(**trial.configuration)
        # The objective may change it.
        given = trial.configuration if is_type_of_space(space) else deepcopy(trial.parameters)
        return objective(given, trial=reporter) if reports else objective(given)

    return call


def _takes_trial(objective: ObjectiveFunction) -> bool:
    """Return whether an objective takes `trial` after the configuration; False if unknown."""
    try:
        names = list(inspect.signature(objective).parameters)
    except (TypeError, ValueError):  # such as a function of another language
        return False
    return "trial" in names[1:]


def _suggests(objective: ObjectiveFunction) -> bool:
    """Return whether `trial` is the only argument of an objective; False if unknown."""
    try:
        return list(inspect.signature(objective).parameters) == ["trial"]
    except (TypeError, ValueError):  # such as a function of another language
        return False


def _suggesting_call(
    objective: ObjectiveFunction,
) -> Callable[[StudyTrial, TrialReporter], JsonValue]:
    """Return a function that calls an objective with a trial that it can suggest from."""

    def call(trial: StudyTrial, reporter: TrialReporter) -> JsonValue:
        assert isinstance(trial, DefineByRunTrial), "of DefineByRunStudy.ask"
        return objective(replace(trial, reporter=reporter))

    return call


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
    search: AnySearch,
    records: tuple[TrialRecord, ...],
    objectives: Objectives,
) -> OptimizeResult:
    errors = [record.error for record in records if record.error is not None]
    if errors and len(errors) == len(records):
        raise errors[0]
    best = {point.trial.id for point in search.pareto_front}
    if not best:
        within = " within all constraints" if objectives.limits else ""
        raise ValueError(
            f"none of {len(records)} trials gave a finite number{within}; the objective must "
            "return one"
        )
    front = tuple(record for record in records if record.id in best)
    explanation = "" if isinstance(search, AdvisorSearch) else search.explanation
    parameters: JsonValue = None
    value = math.nan
    if not objectives.several:
        parameters, value = search.best_parameters, search.best_value
    recommended = None
    if isinstance(search, Study) and not objectives.several:
        recommended = search.recommended
    return OptimizeResult(
        parameters,
        value,
        records,
        front,
        search.stopped_because,
        explanation,
        recommended=recommended,
    )
