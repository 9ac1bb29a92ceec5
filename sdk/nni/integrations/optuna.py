"""Bridge to Optuna: its samplers as tuners, tuners as its samplers, and studies in both forms.

Needs the extra `nni[optuna]`.
"""

import inspect
from collections.abc import Mapping, Sequence
from datetime import datetime
from threading import Lock
from typing import Any

from nni.hpo.base import EARLY_STOPPED, FAILED, Tuner, generate
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import checked_optimize_mode, scalar_metric
from nni.hpo.registry.arguments import Mode
from nni.hpo.registry.factory import create
from nni.hpo.search.earlier_results import EarlierResults, samples_of
from nni.hpo.space.domains import Space
from nni.hpo.space.parser import parse_space
from nni.hpo.space.typed_space import as_json
from nni.integrations._extras import missing_extra

try:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.search_space import IntersectionSearchSpace
    from optuna.study import StudyDirection
    from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

    from nni.integrations._optuna_spaces import entry_of, searched, shown, suggested, value_of
except ImportError as error:
    raise missing_extra("optuna", "Optuna", "optuna") from error

__all__ = ["NNISampler", "OptunaTuner", "optuna_samples", "optuna_search_space", "to_optuna"]

_EVENTS = {TrialState.FAIL: FAILED, TrialState.PRUNED: EARLY_STOPPED}
"""Events of `Tuner.trial_end` for the states of trials that have no result."""


class OptunaTuner(Tuner):
    """Tuner that proposes what a sampler of Optuna suggests.

    Args:
        sampler: an object, or the name of a class of `optuna.samplers`.
        sampler_args: arguments of a named sampler.
        optimize_mode: `minimize` or `maximize`.
        seed: of a named sampler that takes one.

    Raises:
        ValueError: Optuna has no such sampler, or an argument is wrong.

    Examples:
        >>> from nni.hpo import Study
        >>> from nni.integrations import OptunaTuner
        >>> space = {"x": {"_type": "uniform", "_value": [-1, 1]}}
        >>> study = Study(space, tuner=OptunaTuner("TPESampler", seed=0))
        >>> for _ in range(30):
        ...     trial = study.ask()
        ...     study.tell(trial, trial.parameters["x"] ** 2)
        >>> study.best_value < 0.01
        True
    """

    def __init__(
        self,
        sampler: str | BaseSampler = "TPESampler",
        sampler_args: Mapping[str, Any] | None = None,
        optimize_mode: Mode = "minimize",
        seed: int | None = None,
    ) -> None:
        if isinstance(sampler, str):
            sampler = _named_sampler(sampler, dict(sampler_args or {}), seed)
        elif sampler_args:
            raise ValueError("sampler_args must be left out when sampler is an object")
        self._study = optuna.create_study(direction=_direction(optimize_mode), sampler=sampler)
        self._space = Space(())
        self._open: dict[int, Trial] = {}

    def update_search_space(self, search_space: JsonValue) -> None:
        """Set the search space; a second one continues with the results of the first.

        Args:
            search_space: in JSON, without constraints.

        Raises:
            ValueError: it breaks a rule, or has constraints, which no sampler of Optuna keeps.
        """
        space = parse_space(search_space, algorithm="OptunaTuner", priors=False)
        if space.rules:
            raise ValueError("OptunaTuner supports no constraints between parameters")
        self._space = space

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """Ask the study for a trial; return its configuration; the trial stays open."""
        del kwargs
        trial = self._study.ask()
        self._open[parameter_id] = trial
        return suggested(trial, self._space)

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """Pass a result to the sampler, as a failure if not finite; import an unknown trial's."""
        del kwargs
        trial = self._open.pop(parameter_id, None)
        if trial is None:
            self.import_data([{"parameter": parameters, "value": value}])
            return
        number = scalar_metric(value)
        if number is None:
            self._study.tell(trial, state=TrialState.FAIL)
        else:
            self._study.tell(trial, number)

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:  # noqa: FBT001 - documented signature
        """Mark a trial without a result as failed in the study."""
        del success, kwargs
        trial = self._open.pop(parameter_id, None)
        if trial is not None:
            self._study.tell(trial, state=TrialState.FAIL)

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """Add earlier results as completed trials; skip those without a finite number."""
        for sample in data:
            number = scalar_metric(sample["value"])
            if number is not None:
                found = list(searched(self._space, sample["parameter"]))
                self._study.add_trial(_completed(found, number))


class NNISampler(BaseSampler):
    """Sampler of Optuna that suggests what a tuner of NNI proposes, for one objective.

    Optuna finds out by running the objective which parameters there are: without `search_space`
    the first trial is random, and the tuner proposes the parameters that all trials have had.
    Others are drawn at random. Trials of other processes of the study are learned before each
    proposal. When the tuner has no more proposals, as `GridSearch`, the study is stopped.

    Args:
        tuner: name of a tuner.
        tuner_args: its arguments.
        search_space: distributions by name, if they are known.
        seed: of the tuner and of random values.

    Raises:
        ValueError: a name or an argument is wrong.

    Examples:
        >>> import optuna
        >>> from nni.integrations import NNISampler
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> study = optuna.create_study(sampler=NNISampler("TPE", seed=0))
        >>> study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=30)
        >>> study.best_value < 0.01
        True
    """

    def __init__(
        self,
        tuner: str = "auto",
        tuner_args: Mapping[str, JsonValue] | None = None,
        *,
        search_space: Mapping[str, BaseDistribution] | None = None,
        seed: int | None = None,
    ) -> None:
        self._name = tuner
        self._arguments = dict(tuner_args or {})
        self._seed = seed
        self._given = None if search_space is None else dict(search_space)
        self._independent = RandomSampler(seed=seed)
        self._intersection = IntersectionSearchSpace()
        self._lock = Lock()
        self._space: dict[str, BaseDistribution] = {}
        self._tuner: Tuner | None = None
        self._open: dict[int, dict[str, Any]] = {}
        self._known: set[int] = set()
        create("tuner", tuner, self._arguments, seed, "minimize")  # raises for wrong arguments

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a copy in another process, which has a lock of its own."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state in another process."""
        vars(self).update(state, _lock=Lock())

    def reseed_rng(self) -> None:
        """Reseed the random draws, not the tuner; Optuna calls this for several jobs."""
        self._independent.reseed_rng()

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the given search space, or the distributions that all trials so far have had.

        Args:
            study: of the trial.
            trial: that begins.

        Returns:
            The given search space, or that of the trials so far.
        """
        del trial
        if self._given is not None:
            return self._given
        found = self._intersection.calculate(study)
        return {name: one for name, one in sorted(found.items()) if not one.single()}

    def sample_relative(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        search_space: dict[str, BaseDistribution],
    ) -> dict[str, Any]:
        """Import new results; return the tuner's proposal; stop the study if it has no more.

        Args:
            study: of the trial.
            trial: that begins.
            search_space: return value of `infer_relative_search_space`.

        Returns:
            Values by name; none before there is a space, or when the tuner has no more.

        Raises:
            ValueError: the study has several objectives.
        """
        self._raise_error_if_multi_objective(study)
        if not search_space:
            return {}
        with self._lock:
            tuner = self._tuner_of(study, search_space)
            self._learn(tuner, study)
            answer = generate(tuner, [trial.number])
            if not answer.parameters:
                if answer.exhausted and not answer.deferred:
                    study.stop()
                return {}
            ((_, proposed),) = answer.parameters
            self._open[trial.number] = proposed
            return {name: value_of(one, proposed[name]) for name, one in search_space.items()}

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:  # noqa: ANN401 - as in Optuna
        """Return a random value for a parameter that the tuner does not propose.

        Args:
            study: of the trial.
            trial: that runs.
            param_name: of the parameter.
            param_distribution: of the parameter.

        Returns:
            The value.
        """
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Pass result and end of a trial that the tuner proposed; ignore other trials.

        Args:
            study: of the trial.
            trial: that has ended.
            state: of its end.
            values: results of a completed trial.
        """
        del study
        with self._lock:
            proposed = self._open.pop(trial.number, None)
            if proposed is None or self._tuner is None:
                return  # learned before the next proposal
            self._known.add(trial.number)
            number, job = trial.number, str(trial.number)
            succeeded = state is TrialState.COMPLETE and bool(values)
            if succeeded and values is not None:
                self._tuner.receive_trial_result(
                    number, proposed, values[0], trial_job_id=job, customized=False
                )
            event = _EVENTS.get(state)
            ending: dict[str, Any] = {"event": event} if event else {}
            steps = trial.intermediate_values
            if steps and self._tuner.learns_stopped:
                ending["intermediate"] = [steps[step] for step in sorted(steps)]
            if self._tuner.learns_durations and trial.datetime_start is not None:
                now = datetime.now()  # noqa: DTZ005 - Optuna has local times without a zone
                ending["duration_s"] = (now - trial.datetime_start).total_seconds()
            self._tuner.trial_end(number, succeeded, trial_job_id=job, **ending)

    def _tuner_of(self, study: optuna.Study, space: dict[str, BaseDistribution]) -> Tuner:
        if self._tuner is None or space != self._space:
            mode = "maximize" if study.direction.name == "MAXIMIZE" else "minimize"
            self._tuner = create("tuner", self._name, self._arguments, self._seed, mode)
            self._tuner.update_search_space({n: entry_of(n, one) for n, one in space.items()})
            self._space = dict(space)
            self._open.clear()
            self._known.clear()
        return self._tuner

    def _learn(self, tuner: Tuner, study: optuna.Study) -> None:
        """Import completed trials that the tuner does not know, if they have its whole space."""
        samples: list[dict[str, Any]] = []
        durations: list[dict[str, Any]] = []
        for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
            if trial.number in self._known or trial.number in self._open:
                continue
            self._known.add(trial.number)
            if all(trial.distributions.get(name) == one for name, one in self._space.items()):
                parameters = {name: trial.params[name] for name in self._space}
                samples.append({"parameter": parameters, "value": trial.value})
                if trial.duration is not None:
                    duration_s = trial.duration.total_seconds()
                    durations.append({"parameter": parameters, "duration_s": duration_s})
        if samples:
            tuner.import_data(samples)
        if durations and tuner.learns_durations:
            tuner.import_durations(durations)


def optuna_search_space(study: optuna.Study) -> dict[str, Any]:
    """Return the search space of a study of Optuna: the parameters that all its trials have.

    Args:
        study: with at least one completed trial.

    Returns:
        The search space in JSON.

    Raises:
        ValueError: there is no such parameter, or one has no equivalent.

    Examples:
        >>> import optuna
        >>> from nni.integrations import optuna_search_space
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> study = optuna.create_study()
        >>> study.optimize(lambda trial: trial.suggest_int("depth", 2, 8), n_trials=1)
        >>> optuna_search_space(study)
        {'depth': {'_type': 'randint', '_value': [2, 9]}}
    """
    found = IntersectionSearchSpace().calculate(study)
    if not found:
        raise ValueError("study must have a completed trial with parameters, got none")
    return {name: entry_of(name, one) for name, one in sorted(found.items())}


def optuna_samples(study: optuna.Study) -> list[dict[str, Any]]:
    """Return a study's completed trials as dicts of `parameter` and `value`; one objective only.

    Args:
        study: with one objective.

    Returns:
        Dicts `{"parameter", "value"}`, which `warm_start_from` of `nni.hpo.Study` and `optimize`
        takes, and `nnictl experiment import` as a file.

    Raises:
        ValueError: the study has several objectives.

    Examples:
        >>> import optuna
        >>> from nni.integrations import optuna_samples
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        >>> study.optimize(lambda trial: trial.suggest_int("depth", 2, 8), n_trials=1)
        >>> optuna_samples(study)
        [{'parameter': {'depth': 5}, 'value': 5.0}]
    """
    if len(study.directions) > 1:
        raise ValueError(f"study must have one objective, got {len(study.directions)}")
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return [{"parameter": dict(trial.params), "value": trial.value} for trial in trials]


def to_optuna(
    results: EarlierResults,
    search_space: JsonValue,
    *,
    optimize_mode: str = "minimize",
    study: optuna.Study | None = None,
) -> optuna.Study:
    """Add a search's finite results to a given or new study of Optuna; return the study.

    Args:
        results: a `nni.hpo.Study`, a result of `optimize`, samples, or the path of a file of them
            as `nnictl experiment export` writes it. Results without a finite number are left out.
        search_space: of the search, in any form that `nni.hpo.Study` takes.
        optimize_mode: `minimize` or `maximize`; of a new study.
        study: to add the results to; None: a new one in memory.

    Returns:
        The study. Parameters of branches have their path as name, such as `model/deep/layers`.

    Raises:
        ValueError: a result lies outside the search space.

    Examples:
        >>> from nni.hpo import optimize
        >>> from nni.integrations import to_optuna
        >>> space = {"x": {"_type": "choice", "_value": [2, 3]}}
        >>> found = optimize(lambda p: p["x"], space, tuner="GridSearch")
        >>> to_optuna(found, space).best_params
        {'x': 2}
    """
    space = parse_space(as_json(search_space))
    if study is None:
        study = optuna.create_study(direction=_direction(optimize_mode))
    for sample in samples_of(results):
        number = scalar_metric(sample["value"])
        if number is not None:
            study.add_trial(_completed(list(shown(space, sample["parameter"])), number))
    return study


def _completed(found: list[tuple[str, Any, BaseDistribution]], value: float) -> FrozenTrial:
    return create_trial(
        params={path: one for path, one, _ in found},
        distributions={path: distribution for path, _, distribution in found},
        value=value,
    )


def _direction(optimize_mode: str) -> StudyDirection:
    mode = checked_optimize_mode(optimize_mode)
    return StudyDirection.MAXIMIZE if mode == "maximize" else StudyDirection.MINIMIZE


def _named_sampler(name: str, arguments: dict[str, Any], seed: int | None) -> BaseSampler:
    """Construct a sampler of Optuna by class name; raise ValueError if name or arguments are wrong.

    Raises:
        ValueError: there is no such sampler, or an argument is wrong.
    """
    sampler = getattr(optuna.samplers, name, None)
    if not isinstance(sampler, type) or not issubclass(sampler, BaseSampler):
        known = [one for one in optuna.samplers.__all__ if one.endswith("Sampler")]
        raise ValueError(f"sampler must be one of {', '.join(sorted(known))}, got {name!r}")  # noqa: TRY004 - one type for all faults of an input
    if seed is not None and "seed" in inspect.signature(sampler).parameters:
        arguments.setdefault("seed", seed)
    try:
        return sampler(**arguments)
    except TypeError as error:
        raise ValueError(f"sampler_args do not fit {name}: {error}") from error
