"""What a host says, and what of it the manager is told."""

from dataclasses import dataclass
from typing import TypeAlias

from svc_dispatcher.domain.values import Payload, Position, Suggestion


@dataclass(frozen=True, slots=True)
class Ready:
    """The algorithm is built and has its search space."""

    lookahead: bool
    """It never learns from results."""
    assesses: bool
    """It wants intermediate results."""
    provenance: tuple[tuple[str, str], ...]
    """Versions and machine."""


@dataclass(frozen=True, slots=True)
class Unbuildable:
    """Import, construction or the first search space failed."""

    position: Position
    reason: str
    """One line."""
    traceback: str


@dataclass(frozen=True, slots=True)
class Generated:
    """The answer to one request, or (empty request id) what was deferred before."""

    position: Position
    request_id: str
    suggestions: tuple[Suggestion, ...]
    exhausted: bool = False
    deferred: int = 0
    released_checkpoints: tuple[str, ...] = ()
    """Folders that no later suggestion will load."""


@dataclass(frozen=True, slots=True)
class StopAdvised:
    """A running trial is not worth going on."""

    position: Position
    trial_id: str


@dataclass(frozen=True, slots=True)
class CallFailed:
    """The algorithm raised."""

    position: Position
    call: str
    traceback: str
    skipped: bool
    """False: it was asked for parameters, and the host has ended itself."""


@dataclass(frozen=True, slots=True)
class Diverged:
    """The algorithm did not repeat what the log holds; the log wins."""

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
    """The algorithm answers from now on."""

    generation: int
    ready: Ready


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The algorithm cannot be brought to answer."""

    generation: int
    reason: str


Report: TypeAlias = Started | Generated | StopAdvised | CallFailed | Diverged | GaveUp
