"""Outputs of an algorithm host, and reports to the manager."""

from dataclasses import dataclass
from typing import TypeAlias

from svc_dispatcher.domain.tuner_labels import FIRST_TUNER, TunerLabels
from svc_dispatcher.domain.values import Payload, Position, Suggestion


@dataclass(frozen=True, slots=True)
class Ready:
    """Output: the algorithm is constructed, with its capabilities and versions."""

    lookahead: bool
    """The algorithm never learns from results."""
    assesses: bool
    """The algorithm reads intermediate results."""
    provenance: tuple[tuple[str, str], ...]
    """Versions and machine."""
    learned_metrics: tuple[str, ...] = ()
    """Metrics whose numbers it learns from; empty: it gets the results as they are."""


@dataclass(frozen=True, slots=True)
class Unbuildable:
    """Output: the algorithm's import, construction or first search space failed."""

    position: Position
    reason: str
    """One line."""
    traceback: str


@dataclass(frozen=True, slots=True)
class Generated:
    """Output: parameters for a request or, with an empty request id, deferred earlier."""

    position: Position
    request_id: str
    suggestions: tuple[Suggestion, ...]
    exhausted: bool = False
    deferred: int = 0
    released_checkpoints: tuple[str, ...] = ()
    """Checkpoint folders that no later suggestion will load."""
    labels: TunerLabels = FIRST_TUNER
    """Labels of the experiment's tuners, in a report; a host does not know the earlier ones."""


@dataclass(frozen=True, slots=True)
class StopAdvised:
    """Output: the assessor advises to stop a running trial early."""

    position: Position
    trial_id: str


@dataclass(frozen=True, slots=True)
class CallFailed:
    """Output: a call of the algorithm raised an exception, with its traceback."""

    position: Position
    call: str
    traceback: str
    skipped: bool
    """False: the call was for parameters, and the host has ended itself."""


@dataclass(frozen=True, slots=True)
class Diverged:
    """Output: a replayed algorithm drew other parameters than the log; the log wins."""

    position: Position
    parameter_id: int
    recorded: Payload
    replayed: Payload


@dataclass(frozen=True, slots=True)
class Done:
    """Output of a host: all commands up to and including this position have been handled."""

    position: Position


Output: TypeAlias = Ready | Unbuildable | Generated | StopAdvised | CallFailed | Diverged | Done


@dataclass(frozen=True, slots=True)
class Started:
    """Report to the manager: the algorithm of a generation is ready."""

    generation: int
    ready: Ready


@dataclass(frozen=True, slots=True)
class GaveUp:
    """Report to the manager: the algorithm cannot be run, for this reason."""

    generation: int
    reason: str


Report: TypeAlias = Started | Generated | StopAdvised | CallFailed | Diverged | GaveUp
