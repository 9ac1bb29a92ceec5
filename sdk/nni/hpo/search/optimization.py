"""Optimisation of a Python function in one process: `optimize`."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta

from nni.hpo.advisor import MsgDispatcherBase
from nni.hpo.base import Assessor, Tuner
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import Objectives, objectives_of
from nni.hpo.registry.factory import create, named_class
from nni.hpo.registry.validation import check_count
from nni.hpo.search.advisor_search import AdvisorSearch, advisor_search
from nni.hpo.search.earlier_results import EarlierResults, samples_of
from nni.hpo.search.evaluation import (
    AssessorStopper,
    EvaluationLoop,
    ObjectiveEvaluator,
    ObjectiveFunction,
    TrialRecord,
    deadline,
)
from nni.hpo.search.managed_tuner import DuplicatePolicy
from nni.hpo.search.outcomes import StudyTrial
from nni.hpo.search.stopping_rules import StoppingRule
from nni.hpo.search.study import Study
from nni.hpo.space.typed_space import is_type_of_space


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
    """Value of the incumbent; NaN with several objectives."""

    trials: tuple[TrialRecord, ...]
    """All finished trials, in the order of `ask`."""

    pareto_front: tuple[TrialRecord, ...] = ()
    """The feasible non-dominated trials."""

    stopped_because: str = ""
    """Reason of the stopping rule that ended the search; empty if none did."""

    explanation: str = ""
    """The tuner's explanation of its method, which `auto` has; else empty."""


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
    stop: StoppingRule | Sequence[StoppingRule] = (),
    seed: int | None = None,
    timeout: float | timedelta | None = None,
) -> OptimizeResult:
    """Optimise the parameters of a Python function.

    With `concurrency=1` everything runs in the calling thread, repeatable with a seed. A trial
    whose objective raises is FAILED; the search continues.

    Args:
        objective: function of a configuration, called once per trial; returns a number, or a dict
            whose `default` is one; a generator yields intermediate results. With a `concurrency`
            above 1 it is called from that many threads.
        search_space: see `Study`. If it is a function, the objective gets keyword arguments; None
            means the signature of the objective itself.
        tuner: name or object, see `Study`.
        tuner_args: further arguments of a named tuner.
        assessor: name or object; stops trials of generator objectives early, which give the tuner
            no result.
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
        stop: stopping rules, such as `NoImprovement(30)`.
        seed: seed of the tuner.
        timeout: time after which no trial starts, in seconds or as a timedelta; running trials
            finish.

    Returns:
        The incumbent, all trials, and the Pareto front.

    Raises:
        ValueError: an argument is wrong, or no trial gave a finite number.
        TypeError: the search space is a type that declares none.
        Exception: exception of the first trial, if all failed.

    Examples:
        >>> from nni.hpo import optimize
        >>> space = {"x": {"_type": "uniform", "_value": [-10, 10]}}
        >>> found = optimize(lambda p: (p["x"] - 2) ** 2, space, trials=40, seed=0)
        >>> round(found.best_parameters["x"])
        2
    """
    check_count("trials", trials, least=1)
    check_count("concurrency", concurrency, least=1)
    end_s = deadline(timeout)
    space = objective if search_space is None else search_space
    objectives = objectives_of(optimize_mode, constraints)
    opened: AbstractContextManager[AdvisorSearch | Study]
    if advisor is None:
        if advisor_args:
            raise ValueError("advisor_args must be left out without an advisor")
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
        opened = nullcontext(study)
    else:
        _check_alone(tuner, tuner_args, assessor, constraints, duplicates, space)
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
    with opened as search:
        early_stopper = (
            search
            if isinstance(search, AdvisorSearch)
            else AssessorStopper(_make_assessor(assessor, objectives.items[0].mode))
        )
        evaluation = ObjectiveEvaluator(_call_of(objective, space), early_stopper, objectives)
        loop = EvaluationLoop(search, evaluation, trials, end_s)
        records = loop.run_here() if concurrency == 1 else loop.run_threads(concurrency)
        return _result(search, tuple(sorted(records, key=lambda record: record.id)), objectives)


def _check_alone(
    tuner: str | Tuner,
    tuner_args: Mapping[str, JsonValue] | None,
    assessor: str | Assessor | None,
    constraints: Sequence[Mapping[str, JsonValue]] | None,
    duplicates: str,
    space: object,
) -> None:
    """Raise ValueError if an argument does not go with an advisor."""
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
    if is_type_of_space(space):
        raise ValueError(
            "search_space must be in its JSON form with an advisor, whose configurations have "
            "further keys; nni.hpo.search_space(...) gives it"
        )


def _call_of(objective: ObjectiveFunction, space: object) -> Callable[[StudyTrial], JsonValue]:
    """Return a function that calls the objective with the configuration of a trial."""
    if not is_type_of_space(space):
        return lambda trial: objective(deepcopy(trial.parameters))  # which may change it
    if isinstance(space, type):
        return lambda trial: objective(trial.configuration)
    return lambda trial: objective(**trial.configuration)


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
    search: AdvisorSearch | Study, records: tuple[TrialRecord, ...], objectives: Objectives
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
    explanation = search.explanation if isinstance(search, Study) else ""
    parameters: JsonValue = None
    value = math.nan
    if not objectives.several:
        parameters, value = search.best_parameters, search.best_value
    return OptimizeResult(parameters, value, records, front, search.stopped_because, explanation)
