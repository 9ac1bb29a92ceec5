"""Ask-and-tell interface to tuners, in one process and without services: `Study`."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from datetime import timedelta
from functools import cache
from threading import Lock
from typing import Any

from nni.errors import NoMoreTrialError
from nni.hpo.base import EARLY_STOPPED, FAILED, Resumable, Tuner, generate
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import Objectives, checked_optimize_mode, objectives_of, require_numbers
from nni.hpo.registry.factory import create
from nni.hpo.search.durations import seconds_of
from nni.hpo.search.earlier_results import EarlierResults, WarmStartWay, split_by_way
from nni.hpo.search.local_results import LocalResults
from nni.hpo.search.managed_tuner import DuplicatePolicy, ManagedTuner, SearchPlan, managed
from nni.hpo.search.outcomes import (
    Outcomes,
    Recommendation,
    StudyTrial,
    checked_attribute,
)
from nni.hpo.search.stopping_rules import StoppingRule
from nni.hpo.space.typed_space import TypedSpace, is_type_of_space, with_entries


def named_arguments(
    tuner_args: Mapping[str, JsonValue] | None, optimize_mode: str, seed: int | None
) -> dict[str, JsonValue]:
    """Return a tuner's arguments without `optimize_mode` and `seed`; ValueError if these differ.

    Raises:
        ValueError: `tuner_args` holds another `optimize_mode` or `seed`, or the mode is unknown.
    """
    arguments = dict(tuner_args or {})
    checked_optimize_mode(optimize_mode)
    for key, outer in (("optimize_mode", optimize_mode), ("seed", seed)):
        inner = arguments.pop(key, outer)
        if inner != outer:
            raise ValueError(
                f"tuner_args[{key!r}] must equal the argument {key}={outer!r} or be left out, "
                f"got {inner!r}"
            )
    return arguments


def make_tuner(
    tuner: str | Tuner,
    tuner_args: Mapping[str, JsonValue] | None,
    objectives: Objectives,
    seed: int | None,
) -> Tuner:
    """Create a tuner by name, or return the given object; ValueError for a bad name or arguments.

    Raises:
        ValueError: no tuner has the name, or it rejects its arguments.
    """
    # Several objectives become a loss, for tuners that know one number only.
    optimize_mode = "minimize" if objectives.several else objectives.items[0].mode
    arguments = named_arguments(tuner_args, optimize_mode, seed)
    if isinstance(tuner, Tuner):
        if tuner_args:
            raise ValueError("tuner_args must be left out when tuner is an object")
        return tuner
    return create("tuner", tuner, arguments, seed, optimize_mode)


class Study(LocalResults):
    """Search with an ask-and-tell interface.

    Starts no thread. Its methods may be called from several threads; one lock serialises the tuner.

    Args:
        search_space: the space; for built-in tuners a dict of name to
            `{"_type": ..., "_value": [...]}` or to a sampling such as `Uniform(0, 1)`. Or a type or
            function that declares it, see `nni.hpo.search_space`; then `StudyTrial.configuration`
            is typed.
        tuner: name of a tuner, or a tuner object without a space.
        tuner_args: further arguments of a named tuner.
        optimize_mode: `minimize` or `maximize`; or a dict of metric to mode, with several
            objectives or other names than `default`. Then results are dicts of these metrics.
        constraints: limits on outcomes, dicts with `metric` and `max`; results beyond are
            infeasible. Constraints between parameters belong to the search space.
        duplicates: policy for a proposal that was evaluated or is open: `replicate` evaluates it
            again, `resample` requests another one, `reuse` gives the tuner the known result and
            requests another one.
        warm_start_from: results of earlier searches of this space: a `Study`, a result of
            `optimize`, samples `{"parameter", "value"}`, the path of a file of them as
            `nnictl experiment export` writes it, or a list of these.
        warm_start_by: `value`: they are results of the same objective; or `rank`: they are of
            related tasks, each item of the list a search of its own, whose results count by their
            ranks in it. For one objective; other spaces that share parameters are accepted.
        stop: stopping rules, such as `NoImprovement(30)`; for one objective.
        seed: seed of the tuner; None for a random one.

    Raises:
        ValueError: an argument or the space is wrong.
        TypeError: the space is a type that declares none.

    Examples:
        >>> from nni.hpo import Study
        >>> study = Study({"x": {"_type": "uniform", "_value": [-1, 1]}}, seed=0)
        >>> for _ in range(50):
        ...     trial = study.ask()
        ...     study.tell(trial, trial.parameters["x"] ** 2)
        >>> study.best_value < 0.001
        True
    """

    def __init__(  # noqa: PLR0913 - documented signature
        self,
        search_space: JsonValue,
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
        self._objectives = objectives_of(optimize_mode, constraints)
        known, earlier = split_by_way(warm_start_from, warm_start_by)
        plan = SearchPlan(
            self._objectives,
            duplicates,
            known=known,
            earlier=earlier,
            rules=tuple(stop) if isinstance(stop, Sequence) else (stop,),
        )
        self._tuner: ManagedTuner = managed(
            make_tuner(tuner, tuner_args, self._objectives, seed), plan, seed
        )
        self._typed = TypedSpace(search_space) if is_type_of_space(search_space) else None
        self.search_space: JsonValue = (
            with_entries(search_space) if self._typed is None else self._typed.search_space()
        )
        """The search space in JSON."""
        self.user_attrs: dict[str, JsonValue] = {}
        """Values that `set_user_attr` has attached to the study."""
        self._tuner.update_search_space(self.search_space)
        self._lock = Lock()
        self._next_id = 0
        self._open: dict[int, StudyTrial] = {}
        self._outcomes = Outcomes(self._objectives)

    def enqueue(self, parameters: JsonValue) -> None:
        """Enqueue a configuration, to be evaluated before any proposal of the tuner.

        Args:
            parameters: a configuration of the space; the tuner receives its result.

        Raises:
            ValueError: the configuration lies outside the search space, or violates a constraint.
        """
        with self._lock:
            self._tuner.enqueue(parameters)

    def ask(self) -> StudyTrial:
        """Open and return the next trial to evaluate; raise NoMoreTrialError if there is none.

        Returns:
            A trial with an id, for `tell`.

        Raises:
            NoMoreTrialError: the tuner has none left, or none before results of open trials, or a
                stopping rule ended the search.
        """
        with self._lock:
            with one_blas_thread():
                answer = generate(self._tuner, [self._next_id])
            if not answer.parameters:
                if answer.deferred:
                    raise NoMoreTrialError(
                        "the tuner waits for results of open trials; tell them first"
                    )
                raise NoMoreTrialError(self.stopped_because or "the search space is exhausted")
            ((trial_id, parameters),) = answer.parameters
            self._next_id += 1
            self._open[trial_id] = StudyTrial(trial_id, parameters, self._typed)
            # The caller may change it; values that it attaches are those of the trial.
            attached = self._open[trial_id].user_attrs
            return StudyTrial(trial_id, deepcopy(parameters), self._typed, attached)

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
            stopped: whether a trial without a value was stopped early: then it has not failed, and
                teaches nothing about where trials fail.
            intermediate: its intermediate results, oldest first. Those of a stopped trial are
                compared with those of completed ones: a tuner with `learns_stopped` estimates its
                final result.
            duration: run time of the trial, in seconds or as a timedelta; None if unknown. A
                cost-aware tuner learns it, others ignore it.

        Raises:
            ValueError: the trial is not open: unknown, or its result was told; or the duration is
                not positive.
            TypeError: the value is neither None nor numeric.

        Examples:
            >>> from nni.hpo import Study
            >>> space = {"width": {"_type": "loguniform", "_value": [1, 1000]}}
            >>> study = Study(space, tuner_args={"cost_aware": True}, seed=0)
            >>> study.tell(study.ask(), 0.5, duration=12.5)
            >>> study.best_value
            0.5
        """
        trial_id = trial.id if isinstance(trial, StudyTrial) else trial
        if value is not None:
            require_numbers("value must be", value, self._objectives)
        duration_s = None if duration is None else seconds_of("duration", duration)
        with self._lock:
            opened = self._open.pop(trial_id, None)
            if opened is None:
                raise ValueError(f"trial must be open, got id {trial_id!r}: unknown or told before")
            self._learn(opened, value, duration_s, stopped=stopped, intermediate=intermediate)

    def add_trial(
        self,
        parameters: JsonValue,
        value: JsonValue,
        user_attrs: Mapping[str, JsonValue] | None = None,
        *,
        duration: float | timedelta | None = None,
    ) -> StudyTrial:
        """Add and return a trial that was evaluated elsewhere, as a result that the tuner learns.

        It is one of `results`, may be the incumbent, and counts for stopping rules. The tuner
        learns it as one of `warm_start_from`.

        Args:
            parameters: a configuration of the search space.
            value: its result, see `tell`.
            user_attrs: values to attach to it.
            duration: its run time, see `tell`.

        Returns:
            The trial, with an id of its own.

        Raises:
            ValueError: the configuration lies outside the search space, or violates a constraint;
                or the duration is not positive.
            TypeError: the value is not numeric.

        Examples:
            >>> from nni.hpo import Study
            >>> study = Study({"x": {"_type": "uniform", "_value": [-1, 1]}}, tuner="TPE")
            >>> study.add_trial({"x": 0.5}, 0.25).id, study.best_value
            (0, 0.25)
        """
        require_numbers("value must be", value, self._objectives)
        sample = {"parameter": deepcopy(parameters), "value": value}
        if duration is not None:
            sample["duration_s"] = seconds_of("duration", duration)
        attached = {key: checked_attribute(key, one) for key, one in (user_attrs or {}).items()}
        with self._lock:
            self._tuner.require_allowed("parameters", parameters)
            trial = StudyTrial(self._next_id, deepcopy(parameters), self._typed, attached)
            self._next_id += 1
            self._tuner.resume_search([sample])
            self._outcomes.add(trial, value)
            return trial

    def copy(self) -> "Study":
        """Return a study with the same trials and state, which continues independently.

        Returns:
            The copy; both make the same proposals if they are told the same results. Open trials
            are open in both.

        Raises:
            TypeError: a custom tuner has a part that cannot be copied, such as a lock.

        Examples:
            >>> from nni.hpo import Study
            >>> study = Study({"x": {"_type": "uniform", "_value": [-1, 1]}}, seed=0)
            >>> study.copy().ask() == study.ask()
            True
        """
        with self._lock:
            attributes = dict(self.__dict__)
            del attributes["_lock"]
            copied = object.__new__(type(self))
            copied.__dict__ = deepcopy(attributes)
            copied._lock = Lock()
            return copied

    def set_user_attr(self, key: str, value: JsonValue) -> None:
        """Attach a value to the study, such as the version of its data.

        Args:
            key: name of the value; one that is known is replaced.
            value: JSON value.

        Raises:
            TypeError: the value cannot be written as JSON.
        """
        self.user_attrs[key] = checked_attribute(key, value)

    def _learn(
        self,
        trial: StudyTrial,
        value: JsonValue,
        duration_s: float | None,
        *,
        stopped: bool,
        intermediate: Sequence[JsonValue],
    ) -> None:
        if value is not None:
            self._tuner.receive_trial_result(
                trial.id, trial.parameters, value, trial_job_id=str(trial.id), customized=False
            )
            self._outcomes.add(trial, value)
        event = EARLY_STOPPED if stopped else FAILED
        ending: dict[str, JsonValue] = {} if value is not None else {"event": event}
        if intermediate:
            ending["intermediate"] = list(intermediate)
        if duration_s is not None:
            ending["duration_s"] = duration_s
        self._tuner.trial_end(trial.id, value is not None, trial_job_id=str(trial.id), **ending)

    def state(self) -> dict[str, JsonValue]:
        """Return the state of the study as JSON, for `load_state`.

        Returns:
            JSON object for `load_state` of a study with the same arguments.

        Raises:
            TypeError: the tuner is a custom one without `state` and `load_state`.
        """
        with self._lock:
            return {
                "search_space": deepcopy(self.search_space),
                "tuner": deepcopy(self._resumable().state()),
                "next_id": self._next_id,
                "open": [[trial.id, deepcopy(trial.parameters)] for trial in self._open.values()],
                "told": [
                    [trial.id, deepcopy(trial.parameters), value]
                    for trial, value in self._outcomes.results
                ],
                "user_attrs": deepcopy(self.user_attrs),
                "trial_attrs": [
                    [trial.id, deepcopy(trial.user_attrs)]
                    for trial in (*self._open.values(), *(one for one, _ in self._outcomes.results))
                    if trial.user_attrs
                ],
            }

    def load_state(self, state: Mapping[str, JsonValue]) -> None:
        """Restore tuner, open trials and results; ValueError after an ask, or for another space.

        Open trials stay open, and stopping rules count the restored results.

        Args:
            state: return value of `state`.

        Raises:
            ValueError: this study has trials, or the state is of another search space.
            TypeError: the tuner is a custom one without `state` and `load_state`.
        """
        with self._lock:
            if self._next_id:
                raise ValueError(f"state must be loaded before the first ask, got {self._next_id}")
            if state["search_space"] != self.search_space:
                raise ValueError("state must be of the search space of this study")
            self._resumable().load_state(deepcopy(state["tuner"]))
            self._next_id = int(state["next_id"])
            # A state of an earlier version has no attributes.
            self.user_attrs = deepcopy(dict(state.get("user_attrs", {})))
            attached = dict(deepcopy(state.get("trial_attrs", [])))

            def restored(trial_id: int, parameters: JsonValue) -> StudyTrial:
                attributes = attached.get(trial_id, {})
                return StudyTrial(trial_id, deepcopy(parameters), self._typed, attributes)

            for trial_id, parameters in state["open"]:
                self._open[trial_id] = restored(trial_id, parameters)
            for trial_id, parameters, value in state["told"]:
                self._outcomes.add(restored(trial_id, parameters), value)

    def _resumable(self) -> Resumable:
        if not isinstance(self._tuner, Resumable):
            raise TypeError("tuner must have the methods state and load_state to be put aside")
        return self._tuner

    @property
    def recommended(self) -> Recommendation:
        """The trial that the tuner's model expects to be best, where results are noisy.

        It is the incumbent, with its measured value, where results seem to be exact, or the tuner
        has no such model: `auto` and `GPTuner` have one, with one objective and no limits.

        Raises:
            ValueError: there is no feasible finite result, or there are several objectives.
        """
        with self._lock, one_blas_thread():
            return self._outcomes.recommended(self._tuner.expected_results)

    @property
    def explanation(self) -> str:
        """The tuner's explanation of its method, which `auto` has; else empty."""
        with self._lock:
            return self._tuner.explanation

    @property
    def stopped_because(self) -> str:
        """Reason of the stopping rule that ended the search; empty if none did."""
        return self._tuner.ended_because


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context that limits numpy's linear algebra to one thread, where that is possible.

    The matrices of algorithms are small: several threads wait for each other on a busy machine, up
    to seconds per proposal, and round differently. The host of an experiment sets the same limit in
    its environment.
    """
    if "numpy" not in sys.modules:
        return nullcontext()
    controller = _controller()
    return nullcontext() if controller is None else controller.limit(limits=1, user_api="blas")


@cache
def _controller() -> Any:  # noqa: ANN401 - of a package without types
    """Return the controller of the loaded BLAS libraries; None without threadpoolctl."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
