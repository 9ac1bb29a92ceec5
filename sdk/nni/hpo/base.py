"""What tuners and assessors promise, and the one way to ask and tell them.

An algorithm knows no service: it is called from one thread at a time, in the order of the
experiment's log, and keeps all it needs in memory. A host may build it anew and repeat every call;
an algorithm that draws all its randomness from its seed then gives the same answers.

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
"""Called as `start_later(parameter_id, parameters)` when a deferred configuration is ready."""


class _Deferred(Enum):
    DEFERRED = "deferred"


DEFERRED: Final = _Deferred.DEFERRED
"""Returned by `generate_parameters`, or an item of the list that `generate_multiple_parameters`
returns: this id is served later through the callable `kwargs["st_callback"]`.

A deferred id is no sign of an exhausted space.
"""


class Tuner(ABC):
    """Proposes configurations and learns from their results.

    A subclass overrides `update_search_space`, `receive_trial_result` and one of
    `generate_parameters` and `generate_multiple_parameters`. All methods accept and ignore keyword
    arguments that they do not know.
    """

    lookahead: ClassVar[bool] = False
    """Whether results never change what is proposed, so that the tuner may be asked early."""

    multi_objective: ClassVar[bool] = False
    """Whether it learns several metrics at once: then it is told them with `set_objectives`, and
    results as they were reported. Else it gets one number, see `nni.hpo.search._scalarization`."""

    @abstractmethod
    def update_search_space(self, search_space: JsonValue) -> None:
        """Take the search space, before the first generation and at each change by the user.

        A tuner that cannot take a second space says so in its docstring.

        Args:
            search_space: the JSON value that the experiment's owner gave.

        Raises:
            ValueError: the space is malformed or holds what this tuner does not support.
        """

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> JsonValue:
        """Return one configuration for a new trial.

        Args:
            parameter_id: unique; told again with the result.
            **kwargs: unstable; `st_callback` starts a deferred trial (see `DEFERRED`).

        Returns:
            JsonValue value that JSON can hold, delivered unchanged to the trial, or `DEFERRED`.

        Raises:
            NoMoreTrialError: the space is exhausted.
        """
        del parameter_id, kwargs
        raise TypeError(
            f"{type(self).__qualname__} must override generate_parameters or "
            "generate_multiple_parameters"
        )

    def generate_multiple_parameters(
        self, parameter_id_list: list[int], **kwargs: object
    ) -> list[JsonValue]:
        """Return configurations for several new trials, in the order of the ids.

        The default asks `generate_parameters` for each and stops at the first `NoMoreTrialError`.

        Returns:
            A list as long as `parameter_id_list`, items possibly `DEFERRED`; a shorter one, also an
            empty one, says that there are no more trials after it.
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
        """Learn the final result of a trial.

        Not called for trials that the user added by hand.

        Args:
            parameter_id: the id given to `generate_parameters`.
            parameters: the object made for that id.
            value: what the trial reported: a number, or a dict whose `default` is one; possibly
                NaN or infinite.
            **kwargs: unstable; holds `trial_job_id` and `customized`.
        """

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:  # noqa: B027, FBT001 - documented signature
        """Learn that a trial left the running state.

        Args:
            parameter_id: the id given to `generate_parameters`.
            success: true only for a completed trial; false for failed, stopped early, killed.
            **kwargs: unstable; holds `trial_job_id`.
        """

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """Learn results that were measured elsewhere.

        Args:
            data: samples `{"parameter": ..., "value": ...}`; a tuner may define another form.
        """
        _logger.warning(
            "%s ignores %d imported samples: it does not override import_data",
            type(self).__qualname__,
            len(data),
        )

    def prepare_parameters(self) -> None:  # noqa: B027 - optional callback
        """Work out ahead what the next `generate_parameters` would give, while trials run.

        Called at any time by what hosts the tuner, when nobody waits. Changes nothing that any
        other call gives, the state included: without it everything is the same, only later.
        """

    def set_objectives(self, objectives: Objectives) -> None:  # noqa: B027 - optional callback
        """Learn what is optimised; called before the first space, if `multi_objective` is true.

        Args:
            objectives: the metrics with their modes, and limits on outcomes; a result beyond a
                limit is worse than any within.
        """

    def save_checkpoint(self) -> None:  # noqa: B027 - optional callback
        """Unstable hook, kept for tuners that were written for it; does nothing."""

    def load_checkpoint(self) -> None:  # noqa: B027 - optional callback
        """Unstable hook, kept for tuners that were written for it; does nothing."""


class AssessResult(Enum):
    """What an assessor thinks of a running trial."""

    Good = True
    """It may go on."""

    Bad = False
    """It is to be stopped."""


class Assessor(ABC):
    """Reads the intermediate results of running trials and may end a trial early."""

    @abstractmethod
    def assess_trial(self, trial_job_id: str, trial_history: list[JsonValue]) -> AssessResult:
        """Judge one running trial.

        Args:
            trial_job_id: the trial.
            trial_history: what it reported, oldest first; never empty, and longer than at the
                previous call for this trial. Calls may go on after `Bad`, and after a retry the
                earlier elements may differ.
        """

    def trial_end(self, trial_job_id: str, success: bool) -> None:  # noqa: B027, FBT001 - documented signature
        """Learn that a trial ended; called once per trial.

        Args:
            trial_job_id: the trial.
            success: true only for a completed trial.
        """

    def save_checkpoint(self) -> None:  # noqa: B027 - optional callback
        """Unstable hook, kept for assessors that were written for it; does nothing."""

    def load_checkpoint(self) -> None:  # noqa: B027 - optional callback
        """Unstable hook, kept for assessors that were written for it; does nothing."""


@runtime_checkable
class Resumable(Protocol):
    """An algorithm that can be put aside and gone on with; what hosts one may snapshot it."""

    def state(self) -> dict[str, JsonValue]:
        """Return all that later calls depend on, as JSON."""
        ...

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Go on from a state.

        Called on an object that was built with the same arguments and, if it is a tuner, has been
        given the same search space.
        """
        ...


@dataclass(frozen=True, slots=True)
class Generated:
    """A tuner's answer to one request."""

    parameters: tuple[tuple[int, JsonValue], ...]
    """Pairs (parameter id, configuration) of the trials that can start now."""

    deferred: tuple[int, ...]
    """Ids that the tuner serves later."""

    exhausted: bool
    """Whether the tuner said that there are no more trials after these."""


def generate(
    tuner: Tuner, parameter_ids: Sequence[int], start_later: StartLater | None = None
) -> Generated:
    """Ask `tuner` for configurations and sort its answer.

    Args:
        tuner: any tuner; its exceptions other than `NoMoreTrialError` pass through.
        parameter_ids: one per wanted trial.
        start_later: receives what the tuner defers; None if deferring cannot be served.

    Raises:
        TypeError: the tuner returned no list, or more items than asked for.
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
        parameters=tuple(pair for pair in pairs if pair[1] is not DEFERRED),
        deferred=tuple(parameter_id for parameter_id, item in pairs if item is DEFERRED),
        exhausted=len(items) < len(ids),
    )


def assess(assessor: Assessor, trial_job_id: str, trial_history: list[JsonValue]) -> AssessResult:
    """Ask `assessor` about one trial and make its answer an `AssessResult`.

    A plain bool is accepted; anything else is logged and counts as `Good`. Exceptions pass
    through: what hosts the assessor reports them and goes on.
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
    """One configuration and what it was found to be worth."""

    parameter: JsonValue
    value: JsonValue
    """A number, a dict with `default`, or anything else that the user wrote; None if missing."""


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
            yield Sample(item["parameter"], item.get("value"))
        else:
            _logger.warning("an imported sample must be a dict with 'parameter', got %.200r", item)
