"""Replay of an experiment: comparison of redrawn suggestions with the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nni.experiment.errors import ServiceFailedError
from nni_proto.experiment.v1 import replay_pb2
from nni_wire.values import from_value

if TYPE_CHECKING:
    from nni.experiment.client import ManagerClient


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """Suggestion that a replay did not reproduce: recorded and drawn parameters.

    Examples:
        >>> from nni.experiment import ReplayDifference
        >>> one = ReplayDifference(1, 4, "aBcDe", {"x": 0.5}, {"x": 0.7}, parameter="x")
        >>> f"trial {one.trial_id}: {one.parameter} differs"
        'trial aBcDe: x differs'
    """

    generation: int
    """Generation of the algorithm: 1 until the first stop, one more after each resume."""
    parameter_id: int
    """Number of the parameters in the experiment."""
    trial_id: str
    """Empty: no trial was made of it."""
    recorded: Any
    """Parameters in the log; `None`: there are none."""
    drawn: Any
    """Parameters that were drawn; `None`: there are none."""
    parameter: str
    """Path of the first parameter that differs, e.g. `model.C`; empty: all of it."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """Outcome of a replay: whether all was drawn again, counts, reason, differences.

    Examples:
        >>> from nni.experiment import ReplayResult
        >>> def summary(result: ReplayResult) -> str:
        ...     return f"{result.equal} of {result.suggestions} suggestions repeated"
    """

    repeatable: bool
    """True if every suggestion, and every stop that the algorithm advised, was drawn again."""
    suggestions: int
    """Number of suggestions in the log."""
    equal: int
    """Number of suggestions that were drawn again."""
    generations: int
    """Number of generations of the algorithm."""
    stops: int
    """Number of trials that the algorithm had stopped early."""
    equal_stops: int
    """Number of these trials that it would stop again."""
    missing_stops: tuple[str, ...]
    """Trials that it would not stop again; the first 100."""
    reason: str
    """Reason why it is not repeatable, with the remedy; empty if it is."""
    changed_versions: tuple[tuple[str, str, str], ...]
    """Name, recorded and present version of what has changed since."""
    differences: tuple[ReplayDifference, ...]
    """The first 1,000."""
    duration_s: float
    """Duration of the replay."""


def replay(
    client: ManagerClient, experiment_id: str, on_progress: Callable[[int, int], None]
) -> ReplayResult:
    """Draw every suggestion of an experiment again from its log; return the comparison.

    Args:
        client: of the services that know the experiment.
        experiment_id: the experiment; one that runs is replayed as far as its log goes now.
        on_progress: called with the amounts done and total, several times a second at most.

    Raises:
        NotFoundError: no experiment has this id.
        ServiceFailedError: the replay broke off.
    """
    differences: list[ReplayDifference] = []
    for message in client.replay(experiment_id):
        kind = message.WhichOneof("kind")
        if kind == "progress":
            on_progress(message.progress.handled, message.progress.total)
        elif kind == "difference":
            differences.append(_difference(message.difference))
        else:
            return _result(message.verdict, differences)
    raise ServiceFailedError(f"the replay of {experiment_id} broke off; try again")


def _difference(message: replay_pb2.ReplayDifference) -> ReplayDifference:
    return ReplayDifference(
        generation=message.generation,
        parameter_id=message.parameter_id,
        trial_id=message.trial_id,
        recorded=from_value(message.recorded) if message.HasField("recorded") else None,
        drawn=from_value(message.drawn) if message.HasField("drawn") else None,
        parameter=message.parameter,
    )


def _result(verdict: replay_pb2.ReplayVerdict, differences: list[ReplayDifference]) -> ReplayResult:
    return ReplayResult(
        repeatable=verdict.repeatable,
        suggestions=verdict.suggestions,
        equal=verdict.equal,
        generations=verdict.generations,
        stops=verdict.stops,
        equal_stops=verdict.equal_stops,
        missing_stops=tuple(verdict.missing_stops),
        reason=verdict.reason,
        changed_versions=tuple(
            (version.name, version.recorded, version.present)
            for version in verdict.changed_versions
        ),
        differences=tuple(differences),
        duration_s=verdict.duration.ToNanoseconds() / 1e9,
    )
