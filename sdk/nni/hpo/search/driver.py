"""Contract of the drivers of tuners and advisors, with the values and parts that they share."""

import json
import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from nni.hpo.json_value import plain_value

_logger = logging.getLogger(__name__)

_TRACEBACK_LIMIT_CHARACTERS: Final = 16_000

SendMessage = Callable[[dict[str, Any]], None]
"""Callback that sends one message to the host; the host adds the position of the command."""


# A replay makes tens of thousands of the following values; a named tuple takes a third of the time
# of a frozen dataclass.
class Suggestions(NamedTuple):
    """Suggested configurations, how many follow later, and if the search is exhausted."""

    parameters: tuple[tuple[int, Any, dict[str, Any]], ...]
    """(parameter id, configuration, provenance) of the trials that can start now."""
    deferred: int = 0
    """Number of requested configurations that follow later."""
    exhausted: bool = False
    released: tuple[str, ...] = ()
    """Checkpoint folders that no later trial loads."""


def released_by(algorithm: object) -> tuple[str, ...]:
    """Return the checkpoint folders that an algorithm no longer needs; most have none."""
    released = getattr(algorithm, "released_checkpoints", None)
    return tuple(map(str, released())) if callable(released) else ()


class MetricCommand(NamedTuple):
    """Command: process a metric that a trial reported, intermediate or final."""

    trial_id: str
    attempt: int
    parameter_id: int
    final: bool
    sequence: int
    value: Any
    customized: bool
    """True if the user added the trial by hand."""


class TrialEndCommand(NamedTuple):
    """Command: process the end of a trial, with its final status."""

    trial_id: str
    parameter_id: int
    event: str
    """SUCCEEDED, FAILED, EARLY_STOPPED, USER_CANCELED or SYS_CANCELED."""
    customized: bool
    duration_s: float | None = None
    """Seconds from the start to the end of the last attempt, by the log; None if unknown."""

    @property
    def success(self) -> bool:
        """True if the trial completed: its event is SUCCEEDED."""
        return self.event == "SUCCEEDED"


class AlgorithmDriver(Protocol):
    """Uniform interface to tuners and advisors for a host: one call at a time, in log order."""

    lookahead: bool
    """True if proposals are independent of results."""
    assesses: bool
    """True if it processes intermediate results."""

    def initialize(self, search_space: object) -> None:
        """Set the first search space; exceptions propagate."""

    def update_search_space(self, search_space: object) -> None:
        """Replace the search space; exceptions are reported and skipped."""

    def generate(self, parameter_ids: list[int]) -> Suggestions:
        """Return configurations for new trials, or which are deferred; exceptions propagate."""

    def prepare(self) -> None:
        """Compute proposals in advance, where that may save time."""

    def metric(self, command: MetricCommand) -> None:
        """Process a metric; exceptions are reported and skipped."""

    def trial_end(self, command: TrialEndCommand) -> None:
        """Process the end of a trial; exceptions are reported and skipped."""

    def import_data(self, data: object, *, own: bool = False) -> None:
        """Pass results of other runs to the algorithm; report and skip its exceptions.

        Args:
            data: samples.
            own: whether the samples are of this experiment, from before it was resumed.
        """

    def import_curves(self, curves: list[dict[str, Any]]) -> None:
        """Pass what earlier trials of this experiment have shown; report and skip exceptions.

        Args:
            curves: see `Tuner.import_curves`.
        """

    def import_reports(self, reports: list[list[Any]]) -> None:
        """Pass the assessor the reports that it had before another tuner took over.

        Args:
            reports: `[trial id, attempt, sequence, value]` of an intermediate result, or
                `[trial id, event]` of the end of a trial; in the order of the log.
        """

    def add_customized(self, parameter_id: int, parameters: object) -> None:
        """Process a trial that the user added; exceptions are reported and skipped."""

    def record(self, parameter_id: int, parameters: object) -> None:
        """Set the logged parameters of an id, which override the algorithm's."""

    def knows(self, parameter_id: int) -> bool:
        """Return whether the id belongs to a trial that has not ended."""

    def snapshot(self) -> dict[str, Any] | None:
        """Return the whole state as JSON; None if the algorithm does not support it."""

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a snapshot of an algorithm with the same arguments and search space."""

    def repeat(self, parameter_ids: list[int]) -> Suggestions:
        """Return again the configurations of a request that was handled before the snapshot."""


@dataclass(slots=True)
class CallbackGuard:
    """Caller of an algorithm's callbacks that reports and skips exceptions."""

    send: SendMessage

    def call(self, name: str, callback: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any callback
        """Call `callback` and return its result; if it raises, send a report and return None.

        Args:
            name: name of the call, for the report.
            callback: a bound method of the algorithm.
            *args: positional arguments.
            **kwargs: keyword arguments.
        """
        try:
            return callback(*args, **kwargs)
        except Exception:
            _logger.exception("%s failed; the experiment goes on without this call", name)
            self.send(failure_report(name, skipped=True))
            return None


def failure_report(call: str, *, skipped: bool) -> dict[str, Any]:
    """Return the message of a failed call: name, current traceback, and if it is skipped."""
    return {"failed": {"call": call, "traceback": traceback_text(), "skipped": skipped}}


def traceback_text() -> str:
    """Return the end of the current exception's traceback, short enough for the log."""
    return traceback.format_exc()[-_TRACEBACK_LIMIT_CHARACTERS:]


@dataclass(slots=True)
class Provenance:
    """Provenance of suggestions: algorithm, seed and number of results."""

    origin: dict[str, Any]
    """Constant part: algorithm and seed."""
    results: int = 0
    """Number of results that the algorithm has processed."""

    def imported(self, data: object) -> None:
        """Add the samples of an import to the number of results."""
        self.results += len(data) if isinstance(data, list) else 1

    def now(self) -> dict[str, Any]:
        """Return algorithm, seed and number of results so far, as a new dict."""
        return {**self.origin, "results": self.results}


@dataclass(slots=True)
class ParameterTable:
    """Configurations of unfinished trials by parameter id; logged ones take precedence."""

    send: SendMessage
    _by_id: dict[int, Any] = field(default_factory=dict)

    def put(self, parameter_id: int, parameters: object) -> None:
        """Store the algorithm's configuration of an id."""
        self._by_id[parameter_id] = parameters

    def snapshot(self) -> list[tuple[int, Any]]:
        """Return all ids with their configurations."""
        return list(self._by_id.items())

    def __contains__(self, parameter_id: int) -> bool:
        """Return whether the table has the id."""
        return parameter_id in self._by_id

    def get(self, parameter_id: int) -> Any:  # noqa: ANN401 - JSON made by the tuner
        """Return the configuration of an id; None if it is unknown."""
        return self._by_id.get(parameter_id)

    def forget(self, parameter_id: int) -> None:
        """Remove an id whose trial has ended."""
        self._by_id.pop(parameter_id, None)

    def record(self, parameter_id: int, recorded: object) -> bool:
        """Return whether an id's configuration is the logged one; replace and report another one.

        Returns:
            Whether they are equal.
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
