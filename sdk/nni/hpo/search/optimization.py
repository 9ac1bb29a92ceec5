"""`optimize`: tune a Python function in this process."""

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

    explanation: str = ""
    """How the tuner searched in the end, and why; empty if it does not tell. `auto` does."""


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
    """Find parameters for which `objective` is good.

    With `concurrency=1` all runs in the calling thread and a seed makes it repeatable. A trial
    whose objective raises has failed; the search goes on.

    Args:
        objective: called once per trial with a configuration; see `ObjectiveFunction`. With a
            `concurrency` above 1 it is called from that many threads.
        search_space: see `Study`. Of a function, the objective gets the arguments by name; None
            stands for the objective itself.
        tuner: name or object, see `Study`.
        tuner_args: further arguments of a named tuner.
        assessor: name or object; ends trials of generator objectives early. They count as no
            result for the tuner.
        advisor: name or object, in the place of tuner and assessor. Configurations have the
            further keys that it adds, such as `TRIAL_BUDGET`; the folders of `load_checkpoint_dir`
            and `save_checkpoint_dir` exist until `optimize` returns.
        advisor_args: further arguments of a named advisor.
        trials: how many to run at most.
        concurrency: how many to run at a time.
        optimize_mode: `minimize` or `maximize`; or a dict of metric to mode, for several
            objectives, see `Study`.
        constraints: limits on outcomes, dicts with `metric` and `max`.
        duplicates: `replicate`, `resample` or `reuse`, see `Study`.
        enqueue: configurations to try first.
        warm_start_from: results of earlier searches, see `Study`.
        stop: rules that end the search before all trials have run, see
            `nni.hpo.search.stopping_rules`.
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
        judge = (
            search
            if isinstance(search, AdvisorSearch)
            else AssessorStopper(_make_assessor(assessor, objectives.items[0].mode))
        )
        evaluation = ObjectiveEvaluator(_call_of(objective, space), judge, objectives)
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
    """Raise ValueError for what does not go with an advisor."""
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
    """Return what calls the objective with a trial's configuration."""
    if not is_type_of_space(space):
        return lambda trial: objective(deepcopy(trial.parameters))  # which may take it apart
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
