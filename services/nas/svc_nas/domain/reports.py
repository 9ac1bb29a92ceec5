"""Reports of the NAS service to the manager."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Candidate:
    """Model that a strategy's process submits: key unique in the process, trial parameters."""

    key: str
    """Unique among the candidates of this process."""
    parameters: object
    """Parameters of its trial: decoded JSON."""


@dataclass(frozen=True, slots=True)
class Started:
    """Report: the strategy runs, and requests for parameters will be answered."""

    generation: int


@dataclass(frozen=True, slots=True)
class CandidatesGenerated:
    """Report: candidates by id, for a request or deferred ids; count still deferred; exhausted."""

    request_id: str
    """Request that it answers; empty: an earlier answer has deferred these ids."""
    candidates: tuple[tuple[int, Candidate], ...]
    """Parameter ids and what they stand for."""
    deferred: int = 0
    """Number of requested parameters that come later."""
    exhausted: bool = False
    """No more candidates come."""


@dataclass(frozen=True, slots=True)
class TrialStopped:
    """Report: the strategy wants a trial to be stopped."""

    trial_id: str


@dataclass(frozen=True, slots=True)
class GaveUp:
    """Report: the exploration cannot continue."""

    generation: int
    reason: str


Report: TypeAlias = Started | CandidatesGenerated | TrialStopped | GaveUp
