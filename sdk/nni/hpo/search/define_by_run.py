"""Search whose objective declares its hyperparameters while it runs: `DefineByRunStudy`.

The tuner gets a flat space of all hyperparameters that trials have suggested so far. When a trial
suggests a new one, the tuner is built again with the larger space and learns all trials. Where a
trial did not suggest a hyperparameter, its value had no effect, so the tuner learns the result with
the value that the trial would have got. So any tuner will do, and conditions need no declaration.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random, SystemRandom
from threading import RLock
from typing import Any, Final

from nni.errors import NoMoreTrialError
from nni.hpo.base import Tuner
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import Objectives, objectives_of, require_numbers
from nni.hpo.search.durations import seconds_of
from nni.hpo.search.earlier_results import EarlierResults, WarmStartWay, samples_of
from nni.hpo.search.evaluation import TrialReporter
from nni.hpo.search.local_results import LocalResults
from nni.hpo.search.managed_tuner import DuplicatePolicy, SearchPlan, managed
from nni.hpo.search.outcomes import Outcomes, StudyTrial, checked_attribute
from nni.hpo.search.stopping_rules import StoppingRule
from nni.hpo.search.study import Study, make_tuner
from nni.hpo.search.suggested_ranges import SuggestedRange, float_range, int_range, options_of
from nni.hpo.space.feasibility import read_parameters

_SEED_BITS: Final = 31


class _Suggestions(ABC):
    """Base class of trials with the suggest methods that an objective calls."""

    __slots__ = ()

    @abstractmethod
    def _suggested(self, name: str, values: SuggestedRange) -> Any:  # noqa: ANN401 - a value of any type
        """Return the value of a hyperparameter in this trial."""

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        """Return the trial's value of a floating-point hyperparameter; declare its range.

        Args:
            name: of the hyperparameter; the same name has the same value in a trial.
            low: smallest value.
            high: largest value, or with `step` a bound of it.
            step: distance of two values from `low` on; None: any number of the range.
            log: whether the logarithm is uniform; without `step`.

        Returns:
            A value of the range.

        Raises:
            ValueError: the range is wrong, or another one than in an earlier call.
        """
        return float(self._suggested(name, float_range(name, low, high, step, log=log)))

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        """Return the trial's value of an integer hyperparameter; declare its range.

        Args:
            name: of the hyperparameter; the same name has the same value in a trial.
            low: smallest value.
            high: largest value; with `step` a bound of it.
            step: distance of two values from `low` on.
            log: whether the logarithm is uniform; with `step=1`.

        Returns:
            A value of the range.

        Raises:
            ValueError: the range is wrong, or another one than in an earlier call.
        """
        return int(self._suggested(name, int_range(name, low, high, step, log=log)))

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:  # noqa: ANN401 - an option
        """Return the trial's value of a categorical hyperparameter; declare its options.

        Args:
            name: of the hyperparameter; the same name has the same value in a trial.
            choices: options of any type, all different.

        Returns:
            One of them.

        Raises:
            ValueError: there are none, one comes twice, or they are others than in an earlier call.
        """
        return self._suggested(name, options_of(name, choices))


@dataclass(frozen=True, slots=True)
class DefineByRunTrial(StudyTrial, _Suggestions):
    """Trial whose objective declares hyperparameters as it runs; `parameters` has their values.

    Examples:
        >>> from nni.hpo import optimize
        >>> def objective(trial):
        ...     x = trial.suggest_float("x", 0, 4)
        ...     kind = trial.suggest_categorical("kind", ["plain", "shifted"])
        ...     shift = trial.suggest_int("shift", 1, 3) if kind == "shifted" else 0
        ...     return (x - shift) ** 2
        >>> found = optimize(objective, trials=30, tuner="TPE", seed=0)
        >>> found.best_value < 0.1
        True
    """

    suggest: Callable[[str, SuggestedRange], Any] | None = field(
        default=None, repr=False, compare=False
    )
    """Of the study that the trial belongs to."""
    reporter: TrialReporter | None = field(default=None, repr=False, compare=False)
    """Receiver of intermediate results; None outside of `optimize`."""

    def report(self, value: JsonValue) -> None:
        """Report an intermediate result to the assessor of `optimize`; do nothing outside of it.

        Args:
            value: a number, or a dict whose `default` is one.

        Raises:
            TypeError: it is none of these.
        """
        if self.reporter is not None:
            self.reporter.report(value)

    def should_stop(self) -> bool:
        """Return whether the assessor has stopped the trial; False outside of `optimize`.

        Returns:
            True once the assessor stops it; always False outside of `optimize`.
        """
        return self.reporter is not None and self.reporter.should_stop()

    def _suggested(self, name: str, values: SuggestedRange) -> Any:  # noqa: ANN401 - a value of any type
        assert self.suggest is not None, "the study sets it"
        return self.suggest(name, values)


class FixedTrial(_Suggestions):
    """Trial with given values, to call an objective outside of a search.

    Args:
        parameters: value of each hyperparameter that the objective suggests.
        number: `id` of the trial.

    Examples:
        >>> from nni.hpo import FixedTrial
        >>> def objective(trial):
        ...     return trial.suggest_float("x", -1, 1) ** 2
        >>> objective(FixedTrial({"x": 0.5}))
        0.25
    """

    def __init__(self, parameters: Mapping[str, Any], number: int = 0) -> None:
        self.id = number
        """Number of the trial."""
        self.parameters: dict[str, Any] = dict(parameters)
        """The given values."""
        self.user_attrs: dict[str, JsonValue] = {}
        """Values that `set_user_attr` has attached."""
        self.intermediate: list[JsonValue] = []
        """Reports of the objective, oldest first."""

    def report(self, value: JsonValue) -> None:
        """Append an intermediate result to `intermediate`.

        Args:
            value: the result.
        """
        self.intermediate.append(value)

    def should_stop(self) -> bool:
        """Return False: no assessor stops a trial with given values.

        Returns:
            False.
        """
        return False

    def set_user_attr(self, key: str, value: JsonValue) -> None:
        """Attach a JSON value to the trial, replacing one of the same key; TypeError for others.

        Args:
            key: name of the value; one that is known is replaced.
            value: JSON value.

        Raises:
            TypeError: the value cannot be written as JSON.
        """
        self.user_attrs[key] = checked_attribute(key, value)

    def _suggested(self, name: str, values: SuggestedRange) -> Any:  # noqa: ANN401 - a value of any type
        if name not in self.parameters:
            raise ValueError(
                f"parameters must have a value for {name!r}, got {sorted(self.parameters)}"
            )
        return _checked(name, values, self.parameters[name])


@dataclass(frozen=True, slots=True)
class _OpenTrial:
    """Trial without a result yet: its given values, inner trial, and the inner study's number."""

    trial: DefineByRunTrial
    given: Mapping[str, Any]
    """Values of an enqueued configuration."""
    asked: StudyTrial | None
    """Trial of the inner study, whose parameters are codes; None if it proposed none."""
    generation: int
    """Number of the inner study."""


class DefineByRunStudy(LocalResults):
    """Search with an ask-and-tell interface whose trials suggest their hyperparameters.

    Starts no thread. Its methods, and those of its trials, may be called from several threads. With
    a seed it is repeatable if trials are told in the same order. A hyperparameter has the same
    range in all trials. A tuner that lacks the type of one raises ValueError in `tell`.

    Args:
        tuner: name of a tuner, or a tuner object without a space that can be copied.
        tuner_args: further arguments of a named tuner.
        optimize_mode: `minimize` or `maximize`, or a dict of metric to mode, see `Study`.
        constraints: limits on outcomes, see `Study`.
        duplicates: policy for repeated proposals, see `Study`.
        warm_start_from: results of earlier searches, see `Study`; values of unknown
            hyperparameters are left out, samples with values outside the ranges, too.
        warm_start_by: `value`; a warm start by `rank` needs a space that is known at the start.
        stop: stopping rules.
        seed: seed of the tuner and of first values; None for a random one.

    Raises:
        ValueError: an argument is wrong.

    Examples:
        >>> from nni.hpo import DefineByRunStudy
        >>> study = DefineByRunStudy(tuner="TPE", seed=0)
        >>> for _ in range(50):
        ...     trial = study.ask()
        ...     study.tell(trial, trial.suggest_float("x", -1, 1) ** 2)
        >>> study.best_value < 0.01
        True
    """

    def __init__(  # noqa: PLR0913 - documented signature
        self,
        *,
        tuner: str | Tuner = "auto",
        tuner_args: Mapping[str, JsonValue] | None = None,
        optimize_mode: str | Mapping[str, str] = "minimize",
        constraints: Sequence[Mapping[str, JsonValue]] | None = None,
        duplicates: DuplicatePolicy = "replicate",
        warm_start_from: EarlierResults = None,
        warm_start_by: WarmStartWay = "value",
        stop: StoppingRule | Sequence[StoppingRule] = (),
        seed: int | None = None,
    ) -> None:
        self._objectives: Objectives = objectives_of(optimize_mode, constraints)
        if warm_start_by != "value":
            raise ValueError(
                f"warm_start_by must be 'value' without a search space, got {warm_start_by!r}; "
                "declare the space and use Study or optimize(objective, search_space)"
            )
        rules = tuple(stop) if isinstance(stop, Sequence) else (stop,)
        # Errors of the arguments come now, not with the first result.
        plan = SearchPlan(self._objectives, duplicates, rules=rules)
        managed(make_tuner(deepcopy(tuner), tuner_args, self._objectives, seed), plan, seed)
        self._tuner: Final = deepcopy(tuner)
        self._options: Final[dict[str, Any]] = {
            "tuner_args": tuner_args,
            "optimize_mode": optimize_mode,
            "constraints": constraints,
            "duplicates": duplicates,
            "stop": rules,
        }
        self._known = list(samples_of(warm_start_from))
        self._seed = seed
        self._draw_seed = SystemRandom().getrandbits(_SEED_BITS) if seed is None else seed
        self._lock = RLock()
        self._ranges: dict[str, SuggestedRange] = {}
        self._generation = 0
        self._inner: Study | None = None
        self._modelled: frozenset[str] = frozenset()
        self._queue: deque[dict[str, Any]] = deque()
        self._next_id = 0
        self._open: dict[int, _OpenTrial] = {}
        self._outcomes = Outcomes(self._objectives)
        self._learned: list[tuple[StudyTrial, JsonValue]] = []
        """Trials that the tuner learns, in the order of `tell`; None for a failed one."""
        self._durations_s: dict[int, float] = {}
        """Run times that are known, by id of the trial."""

    @property
    def search_space(self) -> dict[str, JsonValue]:
        """The hyperparameters that trials have suggested so far, as a flat search space."""
        with self._lock:
            return {name: values.declared for name, values in self._ranges.items()}

    def enqueue(self, parameters: Mapping[str, Any]) -> None:
        """Enqueue values for a coming trial; they are checked where its objective suggests them.

        Args:
            parameters: values by name; others are drawn. One outside its range raises ValueError
                where the objective suggests it.
        """
        with self._lock:
            self._queue.append(dict(parameters))

    def ask(self) -> DefineByRunTrial:
        """Open and return the next trial, to suggest values from; NoMoreTrialError at the end.

        Returns:
            A trial with the suggest methods, for `tell`.

        Raises:
            NoMoreTrialError: see `Study.ask`.
        """
        with self._lock:
            if self.stopped_because:
                raise NoMoreTrialError(self.stopped_because)
            trial_id = self._next_id
            given = self._queue.popleft() if self._queue else {}
            asked = self._proposal(trial_id, given)
            self._next_id += 1
            trial = DefineByRunTrial(
                trial_id, {}, suggest=lambda name, values: self._suggest(trial_id, name, values)
            )
            self._open[trial_id] = _OpenTrial(trial, given, asked, self._generation)
            return trial

    def _proposal(self, trial_id: int, given: Mapping[str, Any]) -> StudyTrial | None:
        """Return the inner study's trial, by given values or its tuner; None if impossible."""
        if self._inner is None:
            return None
        if given:
            codes = self._codes(trial_id, given)
            if codes is None:
                return None  # the objective gets the error where it suggests the value
            self._inner.enqueue(codes)
        return self._inner.ask()

    def _codes(self, trial_id: int, given: Mapping[str, Any]) -> dict[str, JsonValue] | None:
        """Return codes of given values, with drawn ones for others; None if one does not fit."""
        codes: dict[str, JsonValue] = {}
        for name in sorted(self._modelled):
            values = self._ranges[name]
            if name not in given:
                codes[name] = self._drawn(trial_id, name, values)
                continue
            try:
                codes[name] = values.encode(given[name])
            except ValueError:
                return None
        return codes

    def _drawn(self, trial_id: int, name: str, values: SuggestedRange) -> JsonValue:
        """Return a random code, the same one for the same trial and hyperparameter."""
        rng = Random(f"{self._draw_seed}/{trial_id}/{name}")
        return read_parameters({name: values.entry}).draw(rng)[name]

    def _suggest(self, trial_id: int, name: str, values: SuggestedRange) -> Any:  # noqa: ANN401 - a value of any type
        with self._lock:
            opened = self._open.get(trial_id)
            if opened is None:
                raise ValueError(f"trial must be open, got id {trial_id!r}: told before")
            parameters = opened.trial.parameters
            known = self._ranges.get(name, values)
            if known != values:
                raise ValueError(
                    f"{name!r} must have the same range in all trials: {known} before, "
                    f"got {values}; give another range another name"
                )
            if name in parameters:
                return parameters[name]
            if name in opened.given:
                parameters[name] = _checked(name, values, opened.given[name])
            elif opened.asked is not None and name in opened.asked.parameters:
                parameters[name] = values.decode(opened.asked.parameters[name])
            else:
                parameters[name] = values.decode(self._drawn(trial_id, name, values))
            self._ranges[name] = values
            return parameters[name]

    def tell(
        self,
        trial: StudyTrial | int,
        value: JsonValue,
        *,
        stopped: bool = False,
        intermediate: Sequence[JsonValue] = (),
        duration: float | timedelta | None = None,
    ) -> None:
        """Report the result of an open trial; None for one that failed, or was `stopped` early.

        Args:
            trial: trial of `ask`, or its id.
            value: a number, a dict whose `default` is one, or a dict with all objectives; None for
                a failed trial.
            stopped: whether a trial without a value was stopped early, see `Study.tell`.
            intermediate: its intermediate results, see `Study.tell`.
            duration: run time of the trial, see `Study.tell`.

        Raises:
            ValueError: the trial is not open, the duration is not positive, or the tuner does not
                support a hyperparameter.
            TypeError: the value is neither None nor numeric.
        """
        trial_id = trial.id if isinstance(trial, StudyTrial) else trial
        if value is not None:
            require_numbers("value must be", value, self._objectives)
        duration_s = None if duration is None else seconds_of("duration", duration)
        with self._lock:
            opened = self._open.pop(trial_id, None)
            if opened is None:
                raise ValueError(f"trial must be open, got id {trial_id!r}: unknown or told before")
            if duration_s is not None:
                self._durations_s[trial_id] = duration_s
            if value is not None:
                self._outcomes.add(opened.trial, value)
            teaches = value is not None or not stopped
            if teaches:
                self._learned.append((opened.trial, value))
            if self._ranges.keys() - self._modelled:
                self._rebuild()
            elif self._inner is None:
                return
            elif opened.asked is not None and opened.generation == self._generation:
                self._inner.tell(
                    opened.asked.id,
                    value,
                    stopped=stopped,
                    intermediate=intermediate,
                    duration=duration_s,
                )
            elif teaches:
                self._import(self._inner, opened.trial, value)

    def add_trial(
        self,
        parameters: Mapping[str, Any],
        value: JsonValue,
        user_attrs: Mapping[str, JsonValue] | None = None,
    ) -> StudyTrial:
        """Add and return a trial that was evaluated elsewhere, as a result that the tuner learns.

        It is one of `results`, may be the incumbent, and counts for stopping rules. The tuner
        learns it unless a value lies outside of a range that a later trial suggests.

        Args:
            parameters: values by name.
            value: its result, see `tell`.
            user_attrs: values to attach to it.

        Returns:
            The trial, with an id of its own.

        Raises:
            ValueError: a value lies outside its range.
            TypeError: the value is not numeric, or `parameters` is no mapping.
        """
        require_numbers("value must be", value, self._objectives)
        if not isinstance(parameters, Mapping):
            raise TypeError(f"parameters must be a dict of values by name, got {parameters!r:.200}")
        attached = {key: checked_attribute(key, one) for key, one in (user_attrs or {}).items()}
        with self._lock:
            for name in parameters.keys() & self._ranges.keys():
                _checked(name, self._ranges[name], parameters[name])
            trial = StudyTrial(self._next_id, dict(parameters), None, attached)
            self._next_id += 1
            self._outcomes.add(trial, value)
            self._learned.append((trial, value))
            if self._inner is not None:
                self._import(self._inner, trial, value)
            return trial

    def _rebuild(self) -> None:
        """Build the inner study for the hyperparameters known now, and teach it all trials."""
        self._modelled = frozenset(self._ranges)
        self._generation += 1
        seed = self._seed
        if seed is not None and self._generation > 1:
            # Not the first proposals of the earlier tuner again.
            seed = Random(f"{seed}/{self._generation}").getrandbits(_SEED_BITS)
        known = []
        for number, sample in enumerate(self._known):
            parameters = sample["parameter"]
            codes = self._codes(-1 - number, parameters if isinstance(parameters, Mapping) else {})
            if codes is not None:
                known.append({"parameter": codes, "value": sample["value"]})
        self._inner = Study(
            {name: self._ranges[name].entry for name in sorted(self._modelled)},
            tuner=deepcopy(self._tuner),
            seed=seed,
            warm_start_from=known,
            **self._options,
        )
        for trial, value in self._learned:
            self._import(self._inner, trial, value)

    def _import(self, inner: Study, trial: StudyTrial, value: JsonValue) -> None:
        codes = self._codes(trial.id, trial.parameters)
        if codes is None:
            return  # an added trial may lie outside of a range that came later
        if value is not None:
            inner.add_trial(codes, value, duration=self._durations_s.get(trial.id))
        elif not inner.stopped_because:
            inner.enqueue(codes)
            inner.tell(inner.ask(), None)

    @property
    def explanation(self) -> str:
        """The tuner's explanation of its method, which `auto` has; else empty."""
        return "" if self._inner is None else self._inner.explanation

    @property
    def stopped_because(self) -> str:
        """Reason of the stopping rule that ended the search; empty if none did."""
        return "" if self._inner is None else self._inner.stopped_because


def _checked(name: str, values: SuggestedRange, value: Any) -> Any:  # noqa: ANN401 - a value of any type
    """Return a given value as its range decodes it; raise ValueError outside the range.

    Raises:
        ValueError: its range does not have it.
    """
    try:
        return values.decode(values.encode(value))
    except ValueError as error:
        raise ValueError(f"value of {name!r} {error}") from error
