"""What an agent says about one attempt of a trial."""

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from svc_manager.domain.checkpoints import SavedCheckpoint
from svc_manager.domain.values import Metric


class ExitCause(IntEnum):
    """Why an attempt is over; the numbers are those of the contract."""

    UNSPECIFIED = 0
    ENDED = 1
    STOPPED = 2
    TIME_LIMIT = 3
    NOT_STARTED = 4


@dataclass(frozen=True, slots=True)
class Started:
    """The process of the trial exists."""

    started_at_ms: int
    pid: int = 0
    gpu_indices: tuple[int, ...] = ()
    warm: bool = False


@dataclass(frozen=True, slots=True)
class Exited:
    """The process has ended; its socket and pipes have been read to their end."""

    ended_at_ms: int
    cause: ExitCause
    exit_code: int | None = None
    """None: killed by ``signal``, or never started."""
    signal: int = 0
    detail: str = ""
    checkpoint: SavedCheckpoint | None = None
    """What it has saved, where checkpoints travel."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The agent can no longer tell what became of it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Waits:
    """The agent holds the task but cannot start it yet."""

    reason: str


ReportBody: TypeAlias = Started | Metric | Exited | Lost | Waits


@dataclass(frozen=True, slots=True)
class Report:
    """One thing that happened to one attempt of a trial."""

    runner_id: str
    trial_id: str
    attempt: int
    sequence: int
    """0, 1, 2, ... within (trial, attempt, claim)."""
    claim_id: str
    saying: ReportBody

    @property
    def claim(self) -> tuple[str, int, str]:
        """Within what its sequence counts."""
        return (self.trial_id, self.attempt, self.claim_id)
