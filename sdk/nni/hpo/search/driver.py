"""What hosting a tuner and hosting an advisor have in common."""

import json
import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from nni.hpo.json_value import plain_value

_logger = logging.getLogger(__name__)

_TRACEBACK_LIMIT_CHARACTERS: Final = 16_000

SendMessage = Callable[[dict[str, Any]], None]
"""Sends one answer to the dispatcher; the loop adds the position of the command in hand."""


@dataclass(frozen=True, slots=True)
class Suggestions:
    """What an algorithm gave for one request."""

    parameters: tuple[tuple[int, Any, dict[str, Any]], ...]
    """(parameter id, configuration, provenance) of the trials that can start now."""
    deferred: int = 0
    """How many of the request come later."""
    exhausted: bool = False
    released: tuple[str, ...] = ()
    """Checkpoint folders that it will never again have a trial load."""


def released_by(algorithm: object) -> tuple[str, ...]:
    """Ask an algorithm which checkpoint folders are over; most know of none."""
    released = getattr(algorithm, "released_checkpoints", None)
    return tuple(map(str, released())) if callable(released) else ()


@dataclass(frozen=True, slots=True)
class MetricCommand:
    """Metric that a trial reported."""

    trial_id: str
    attempt: int
    parameter_id: int
    final: bool
    sequence: int
    value: Any
    customized: bool
    """The user added the trial by hand."""


@dataclass(frozen=True, slots=True)
class TrialEndCommand:
    """The end of one trial."""

    trial_id: str
    parameter_id: int
    event: str
    """SUCCEEDED, FAILED, EARLY_STOPPED, USER_CANCELED or SYS_CANCELED."""
    customized: bool

    @property
    def success(self) -> bool:
        """Whether the trial completed."""
        return self.event == "SUCCEEDED"


class AlgorithmDriver(Protocol):
    """An algorithm as the command loop drives it: one call at a time, in log order."""

    lookahead: bool
    """It never learns from results."""
    assesses: bool
    """It wants intermediate results."""

    def initialize(self, search_space: object) -> None:
        """Give the first search space; exceptions pass through."""

    def update_search_space(self, search_space: object) -> None:
        """Give another search space; exceptions are reported and skipped."""

    def generate(self, parameter_ids: list[int]) -> Suggestions:
        """Ask for parameters; exceptions pass through."""

    def prepare(self) -> None:
        """Let the algorithm work ahead, if that may pay; changes nothing that it answers."""

    def metric(self, command: MetricCommand) -> None:
        """Tell a report; exceptions are reported and skipped."""

    def trial_end(self, command: TrialEndCommand) -> None:
        """Tell an end; exceptions are reported and skipped."""

    def import_data(self, data: object, *, own: bool = False) -> None:
        """Tell results that no trial of this life gave; exceptions are reported and skipped.

        Args:
            data: samples.
            own: they are of this experiment, from before it was stopped and resumed.
        """

    def add_customized(self, parameter_id: int, parameters: object) -> None:
        """Tell of a trial that the user added; exceptions are reported and skipped."""

    def record(self, parameter_id: int, parameters: object) -> None:
        """Take the parameters that the log holds for an id; they win."""

    def knows(self, parameter_id: int) -> bool:
        """Whether the id is of a trial that has not ended."""

    def snapshot(self) -> dict[str, Any] | None:
        """Return all that is known, as JSON; None if the algorithm cannot tell."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a snapshot of an algorithm that was built and initialized alike."""

    def repeat(self, parameter_ids: list[int]) -> Suggestions:
        """Suggestions a request that was answered before the snapshot, from what is known."""


@dataclass(slots=True)
class CallbackGuard:
    """Calls an algorithm's callbacks; an exception costs that call and no more."""

    send: SendMessage

    def call(self, name: str, callback: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any callback
        """Return what `callback` returns, or None after reporting that it raised.

        Args:
            name: of the call, for the report.
            callback: a bound method of the algorithm.
            *args: its arguments.
            **kwargs: its keyword arguments.
        """
        try:
            return callback(*args, **kwargs)
        except Exception:
            _logger.exception("%s failed; the experiment goes on without this call", name)
            self.send(failure_report(name, skipped=True))
            return None


def failure_report(call: str, *, skipped: bool) -> dict[str, Any]:
    """Return the report of the exception in hand."""
    return {"failed": {"call": call, "traceback": traceback_text(), "skipped": skipped}}


def traceback_text() -> str:
    """Return the end of the traceback of the exception in hand: it goes into the log for ever."""
    return traceback.format_exc()[-_TRACEBACK_LIMIT_CHARACTERS:]


@dataclass(slots=True)
class Provenance:
    """Where suggestions come from."""

    origin: dict[str, Any]
    """What is the same for all of them: algorithm and seed."""
    results: int = 0
    """How many results the algorithm knows."""

    def imported(self, data: object) -> None:
        """Count the samples of an import."""
        self.results += len(data) if isinstance(data, list) else 1

    def now(self) -> dict[str, Any]:
        """Return the provenance of a suggestion that is made now."""
        return {**self.origin, "results": self.results}


@dataclass(slots=True)
class ParameterTable:
    """Configurations of live trials by parameter id, where the log has the last word."""

    send: SendMessage
    _by_id: dict[int, Any] = field(default_factory=dict)

    def put(self, parameter_id: int, parameters: object) -> None:
        """Remember the object that the algorithm made."""
        self._by_id[parameter_id] = parameters

    def snapshot(self) -> list[tuple[int, Any]]:
        """Return all ids with their objects."""
        return list(self._by_id.items())

    def __contains__(self, parameter_id: int) -> bool:
        """Whether anything is known for an id."""
        return parameter_id in self._by_id

    def get(self, parameter_id: int) -> Any:  # noqa: ANN401 - JSON made by the tuner
        """Return the object made for an id; None if there is none."""
        return self._by_id.get(parameter_id)

    def forget(self, parameter_id: int) -> None:
        """Forget an id whose trial has ended."""
        self._by_id.pop(parameter_id, None)

    def record(self, parameter_id: int, recorded: object) -> bool:
        """Compare with what the log holds; report and replace what differs.

        Returns:
            Whether they were equal.
        """
        replayed = self._by_id.get(parameter_id)
        if _text(replayed) == _text(recorded):
            return True
        self._by_id[parameter_id] = recorded
        self.send({"diverged": [parameter_id, recorded, replayed]})
        return False


def _text(value: object) -> str:
    """Return a text that is equal for equal JSON values, NaN included."""
    return json.dumps(value, default=plain_value, sort_keys=True)
