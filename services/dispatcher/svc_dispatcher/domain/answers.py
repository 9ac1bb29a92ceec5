"""Outputs of an algorithm host, and reports to the manager."""

from dataclasses import dataclass
from typing import TypeAlias

from svc_dispatcher.domain.values import Payload, Position, Suggestion


@dataclass(frozen=True, slots=True)
class Ready:
    """The algorithm is constructed and has its search space."""

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
    """Import, construction or the first search space failed."""

    position: Position
    reason: str
    """One line."""
    traceback: str


@dataclass(frozen=True, slots=True)
class Generated:
    """Answer to one request, or (with an empty request id) parameters deferred earlier."""

    position: Position
    request_id: str
    suggestions: tuple[Suggestion, ...]
    exhausted: bool = False
    deferred: int = 0
    released_checkpoints: tuple[str, ...] = ()
    """Checkpoint folders that no later suggestion will load."""


@dataclass(frozen=True, slots=True)
class StopAdvised:
    """Advice to stop a running trial early."""

    position: Position
    trial_id: str


@dataclass(frozen=True, slots=True)
class CallFailed:
    """An exception of the algorithm."""

    position: Position
    call: str
    traceback: str
    skipped: bool
    """False: the call was for parameters, and the host has ended itself."""


@dataclass(frozen=True, slots=True)
class Diverged:
    """The algorithm did not reproduce recorded parameters; the log wins."""

    position: Position
    parameter_id: int
    recorded: Payload
    replayed: Payload


@dataclass(frozen=True, slots=True)
class Done:
    """All commands up to and including this position have been handled."""

    position: Position


Output: TypeAlias = Ready | Unbuildable | Generated | StopAdvised | CallFailed | Diverged | Done


@dataclass(frozen=True, slots=True)
class Started:
    """The algorithm is ready to answer requests."""

    generation: int
    ready: Ready


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The algorithm cannot be run."""

    generation: int
    reason: str


Report: TypeAlias = Started | Generated | StopAdvised | CallFailed | Diverged | GaveUp
