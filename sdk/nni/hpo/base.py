"""Contracts of tuners and assessors, and functions that call them and validate their answers.

An algorithm knows no service: it is called from one thread at a time, in the order of the
experiment's log, and keeps its state in memory. A host may build the algorithm again and repeat
every call; with all randomness drawn from its seed, an algorithm then repeats its proposals.

Order of calls for a tuner: `update_search_space` once, then for every parameter id one of the
`generate_*` methods, at most one `receive_trial_result`, one `trial_end`. `import_data` and further
calls of `update_search_space` may come at any time after the first.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Final, Protocol, TypeAlias, runtime_checkable

from nni.errors import NoMoreTrialError
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import Objectives

_logger = logging.getLogger(__name__)

StartLater: TypeAlias = Callable[[int, JsonValue], None]
"""Callback `start_later(parameter_id, parameters)` for a deferred configuration that is ready."""


class _Deferred(Enum):
    DEFERRED = "deferred"


DEFERRED: Final = _Deferred.DEFERRED
"""Returned by `generate_parameters`, or an item of the list of `generate_multiple_parameters`: the
configuration of this id follows later through the callback `kwargs["st_callback"]`.

A deferred id does not mean that the space is exhausted.
"""


FAILED: Final = "FAILED"
"""Value of `kwargs["event"]` of `Tuner.trial_end` for a trial that failed by itself."""

EARLY_STOPPED: Final = "EARLY_STOPPED"
"""The same for a trial that an assessor, an advisor or `TrialPruned` stopped."""
CANCELED: Final = frozenset({"USER_CANCELED", "SYS_CANCELED"})
"""The same for trials that a user ended, or that ended with a machine: they teach nothing."""


class Tuner(ABC):
    """Base class of tuners, which propose configurations and learn from their results.

    A subclass overrides `update_search_space`, `receive_trial_result` and one of
    `generate_parameters` and `generate_multiple_parameters`. All methods accept and ignore unknown
    keyword arguments.

    Examples:
        A tuner that halves its proposal each time.

        >>> from nni.hpo import Study, Tuner
        >>> class Halving(Tuner):
        ...     def update_search_space(self, search_space):
        ...         self.last = {name: entry["_value"][1] for name, entry in search_space.items()}
        ...     def generate_parameters(self, parameter_id, **kwargs):
        ...         self.last = {name: value / 2 for name, value in self.last.items()}
        ...         return dict(self.last)
        ...     def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        ...         pass
        >>> study = Study({"x": {"_type": "uniform", "_value": [0, 8]}}, tuner=Halving())
        >>> [study.ask().parameters["x"] for _ in range(3)]
        [4.0, 2.0, 1.0]
    """

    lookahead: ClassVar[bool] = False
    """True if proposals are independent of results, so that they may be generated in advance."""

    multi_objective: ClassVar[bool] = False
    """True if the tuner optimises several metrics. If so, it gets `set_objectives` and whole
    reports; otherwise one number per result, see `nni.hpo.search._scalarization`."""

    imports_failures: ClassVar[bool] = False
    """True if `import_data` learns a sample with the value NaN as a trial that failed. If so, it
    gets the failed trials that the tuner did not propose."""

    learns_stopped: ClassVar[bool] = False
    """True if `trial_end` learns from what trials have shown before they were stopped. If so, it
    gets `intermediate`, the intermediate results of the trial; others get no such argument."""

    @property
    def learns_durations(self) -> bool:
        """False by default; True for a tuner whose `trial_end` gets run times as `duration_s`.

        If true, it gets `import_durations` as well.
        """
        return False

    @abstractmethod
    def update_search_space(self, search_space: JsonValue) -> None:
        """Set the search space, before the first proposal and at each change by the user.

        A tuner that supports no second space says so in its docstring.

        Args:
            search_space: the JSON value of the experiment's configuration.

        Raises:
            ValueError: the space is malformed, or this tuner does not support it.
        """

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> JsonValue:
        """Return a new trial's configuration, or `DEFERRED`; by default raise TypeError.

        Args:
            parameter_id: unique id, repeated with the result.
            **kwargs: unstable; `st_callback` starts a deferred trial (see `DEFERRED`).

        Returns:
            A JSON value, delivered unchanged to the trial, or `DEFERRED`.

        Raises:
            NoMoreTrialError: the space is exhausted.
            TypeError: the tuner overrides neither this method nor `generate_multiple_parameters`.
        """
        del parameter_id, kwargs
        raise TypeError(
            f"{type(self).__qualname__} must override generate_parameters or "
            "generate_multiple_parameters"
        )

    def generate_multiple_parameters(
        self, parameter_id_list: list[int], **kwargs: object
    ) -> list[JsonValue]:
        """Return configurations in the order of the ids; stop at the first NoMoreTrialError.

        The default calls `generate_parameters` per id and stops at the first `NoMoreTrialError`.

        Args:
            parameter_id_list: unique ids of the new trials.
            **kwargs: as of `generate_parameters`.

        Returns:
            A list as long as `parameter_id_list`, items possibly `DEFERRED`; a shorter list
            means that no more trials follow.
        """
        configurations: list[JsonValue] = []
        for parameter_id in parameter_id_list:
            try:
                configurations.append(self.generate_parameters(parameter_id, **kwargs))
            except NoMoreTrialError:
                break
        return configurations

    @abstractmethod
    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """Learn a trial's final result, which may be NaN; a subclass must override this.

        Not called for trials that the user added by hand.

        Args:
            parameter_id: the id given to `generate_parameters`.
            parameters: the configuration of that id.
            value: the trial's report: a number, or a dict whose `default` is one; possibly NaN or
                infinite.
            **kwargs: unstable; holds `trial_job_id` and `customized`.
        """

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:  # noqa: B027, FBT001 - documented signature
        """Process the end of a trial; by default do nothing.

        Args:
            parameter_id: the id given to `generate_parameters`.
            success: true for a completed trial; false if it failed or was stopped.
            **kwargs: unstable; holds `trial_job_id`. Without success also `event`: `FAILED`,
                `EARLY_STOPPED`, `USER_CANCELED` or `SYS_CANCELED`. If `learns_stopped` is true and
                there are intermediate results also `intermediate`: a list of them, oldest first.
                If `learns_durations` is true and the run time is known also `duration_s`, the
                seconds from the start to the end of the last attempt.
        """

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """Process results measured elsewhere; the default ignores them with a warning.

        Args:
            data: samples `{"parameter": ..., "value": ...}`; a tuner may define another form.
        """
        _logger.warning(
            "%s ignores %d imported samples: it does not override import_data",
            type(self).__qualname__,
            len(data),
        )

    def import_curves(self, curves: list[dict[str, JsonValue]]) -> None:  # noqa: B027 - optional callback
        """Learn trials from before a resumption, stopped ones too; by default do nothing.

        Called after `import_data`, if `learns_stopped` is true and trials were stopped early.

        Args:
            curves: dicts with `parameter`, `value`, which is None for a trial that was stopped
                early, and `intermediate`, the first results of the trial, at most 200. Completed
                trials, whose results `import_data` got, come first.
        """

    def import_durations(self, durations: list[dict[str, JsonValue]]) -> None:  # noqa: B027 - optional callback
        """Learn run times of trials from before a resumption; by default do nothing.

        Called after `import_data`, if `learns_durations` is true and run times are known.

        Args:
            durations: dicts with `parameter` and `duration_s`, in seconds, of completed trials.
        """

    def expected_results(self, configurations: list[JsonValue]) -> list[float] | None:
        """Return the results that a model expects; None, the default: there is no such model.

        Args:
            configurations: of trials with results.

        Returns:
            A number per configuration, in the units of the only objective; None without a model, or
            if results seem to be exact. Must not change what any other call returns.
        """
        del configurations
        return None

    def prepare_parameters(self) -> None:  # noqa: B027 - optional callback
        """Compute the next proposal in advance, while trials run; by default do nothing.

        Called by the host at any time at which no request waits. Must not change what any other
        call returns, the state included: the call only saves time later.
        """

    def set_objectives(self, objectives: Objectives) -> None:  # noqa: B027 - optional callback
        """Set objectives, before the first space, if `multi_objective`; by default do nothing.

        Args:
            objectives: the metrics with their modes, and limits on outcomes; an infeasible result
                is worse than any feasible one.
        """

    def save_checkpoint(self) -> None:  # noqa: B027 - optional callback
        """Unstable hook, kept for tuners that were written for it; does nothing."""

    def load_checkpoint(self) -> None:  # noqa: B027 - optional callback
        """Unstable hook, kept for tuners that were written for it; does nothing."""


class AssessResult(Enum):
    """Decision of an assessor on a running trial.

    Examples:
        >>> from nni.hpo import AssessResult
        >>> AssessResult(False)
        <AssessResult.Bad: False>
    """

    Good = True
    """The trial continues."""

    Bad = False
    """The trial is stopped early."""


class Assessor(ABC):
    """Base class of assessors, which stop trials early by their intermediate results.

    Examples:
        An assessor that stops trials whose first result is above 1.

        >>> from nni.hpo import Assessor, AssessResult, optimize
        >>> class Threshold(Assessor):
        ...     def assess_trial(self, trial_job_id, trial_history):
        ...         return AssessResult.Good if trial_history[0] <= 1 else AssessResult.Bad
        >>> def objective(parameters):
        ...     for _ in range(3):
        ...         yield parameters["x"]
        >>> space = {"x": {"_type": "choice", "_value": [1, 2]}}
        >>> found = optimize(objective, space, tuner="GridSearch", assessor=Threshold())
        >>> [(trial.parameters["x"], trial.status) for trial in found.trials]
        [(1, 'SUCCEEDED'), (2, 'EARLY_STOPPED')]
    """

    @abstractmethod
    def assess_trial(self, trial_job_id: str, trial_history: list[JsonValue]) -> AssessResult:
        """Return Good to let a running trial continue, Bad to stop it early.

        Args:
            trial_job_id: the trial.
            trial_history: its reports, oldest first; never empty, and longer than at the previous
                call for this trial. Further calls may follow `Bad`; after a retry the earlier
                elements may differ.

        Returns:
            `Good` or `Bad`; a bool counts as these.
        """

    def trial_end(self, trial_job_id: str, success: bool) -> None:  # noqa: B027, FBT001 - documented signature
        """Process the end of a trial, called once per trial; by default do nothing.

        Args:
            trial_job_id: the trial.
            success: true for a completed trial.
        """

    def save_checkpoint(self) -> None:  # noqa: B027 - optional callback
        """Unstable hook, kept for assessors that were written for it; does nothing."""

    def load_checkpoint(self) -> None:  # noqa: B027 - optional callback
        """Unstable hook, kept for assessors that were written for it; does nothing."""


@runtime_checkable
class Resumable(Protocol):
    """Algorithm whose state can be saved and restored, so that a host may take snapshots."""

    def state(self) -> dict[str, JsonValue]:
        """Return the state that later calls depend on, as JSON.

        Returns:
            JSON object; only `load_state` reads it.
        """
        ...

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore a state that `state` returned, on an object built with the same arguments.

        Called on an object that was built with the same arguments and, if it is a tuner, has the
        same search space.

        Args:
            state: what `state` returned, possibly that of an earlier version.
        """
        ...


def is_resumable(algorithm: object) -> bool:
    """Return whether the state of an algorithm can be saved: it has the methods, and all parts do.

    Args:
        algorithm: any; its attribute `resumable` is False if a part of it has no state.
    """
    return isinstance(algorithm, Resumable) and bool(getattr(algorithm, "resumable", True))


@dataclass(frozen=True, slots=True)
class Generated:
    """Checked answer of a tuner: configurations, deferred ids, and whether it is exhausted."""

    parameters: tuple[tuple[int, JsonValue], ...]
    """Pairs (parameter id, configuration) of the trials that can start now."""

    deferred: tuple[int, ...]
    """Ids whose configurations follow later."""

    exhausted: bool
    """True if the tuner has no more trials after these."""


def generate(
    tuner: Tuner, parameter_ids: Sequence[int], start_later: StartLater | None = None
) -> Generated:
    """Ask a tuner for configurations; return its checked answer, TypeError if it is malformed.

    Args:
        tuner: any tuner; its exceptions other than `NoMoreTrialError` propagate.
        parameter_ids: one per requested trial.
        start_later: callback for deferred configurations; None if unsupported.

    Raises:
        TypeError: the tuner returned no list, or more items than requested.
    """
    ids = list(parameter_ids)
    kwargs: dict[str, JsonValue] = {} if start_later is None else {"st_callback": start_later}
    try:
        items: object = tuner.generate_multiple_parameters(list(ids), **kwargs)
    except NoMoreTrialError:
        items = []
    if not isinstance(items, list | tuple) or len(items) > len(ids):
        raise TypeError(
            f"{type(tuner).__qualname__}.generate_multiple_parameters must return a list of at "
            f"most {len(ids)} items, got {items!r:.200}"
        )
    pairs = list(zip(ids, items, strict=False))
    return Generated(
        parameters=tuple([pair for pair in pairs if pair[1] is not DEFERRED]),
        deferred=tuple([parameter_id for parameter_id, item in pairs if item is DEFERRED]),
        exhausted=len(items) < len(ids),
    )


def assess(assessor: Assessor, trial_job_id: str, trial_history: list[JsonValue]) -> AssessResult:
    """Return an assessor's decision on one trial; an invalid one is logged and counts as Good.

    A bool is accepted; any other value is logged and counts as `Good`. Exceptions propagate.
    """
    result: object = assessor.assess_trial(trial_job_id, trial_history)
    if isinstance(result, AssessResult):
        return result
    if isinstance(result, bool):
        return AssessResult(result)
    _logger.warning(
        "%s.assess_trial must return an AssessResult, got %r for trial %s; taken as Good",
        type(assessor).__qualname__,
        result,
        trial_job_id,
    )
    return AssessResult.Good


@dataclass(frozen=True, slots=True)
class Sample:
    """Configuration with its result, measured elsewhere."""

    parameter: JsonValue
    value: JsonValue
    """A number, a dict with `default`, or any other value of the user; None if missing."""
    duration_s: JsonValue = None
    """Run time of the trial in seconds; None if unknown."""


def samples(data: object) -> Iterator[Sample]:
    """Yield the well-formed samples of `data`; others are logged and skipped.

    Args:
        data: list of dicts with `parameter` and `value`.
    """
    if not isinstance(data, list | tuple):
        _logger.warning("imported data must be a list of samples, got %.200r", data)
        return
    for item in data:
        if isinstance(item, dict) and "parameter" in item:
            yield Sample(item["parameter"], item.get("value"), item.get("duration_s"))
        else:
            _logger.warning("an imported sample must be a dict with 'parameter', got %.200r", item)
