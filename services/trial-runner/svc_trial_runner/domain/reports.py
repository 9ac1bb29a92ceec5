"""What the agent tells the manager about an attempt, in the order it happened."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, TypeAlias

from svc_trial_runner.domain.tasks import BlobKey


class EndCause(Enum):
    """Why an attempt is over."""

    ENDED = "ended"
    STOPPED = "stopped"
    TIME_LIMIT = "time limit"
    NOT_STARTED = "not started"


@dataclass(frozen=True, slots=True)
class ProcessStarted:
    """The process exists."""

    started_at: datetime
    pid: int
    gpu_indices: tuple[int, ...]
    warm: bool


@dataclass(frozen=True, slots=True)
class MetricReported:
    """A metric was taken over from the trial."""

    final: bool
    sequence: int
    """0-based, per type."""
    value: Any
    """A JSON value; a `BlobKey` if it lies in the byte store."""
    reported_at: datetime


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """A checkpoint folder that lies in the byte store now."""

    directory: str
    """As the algorithm calls it."""
    archive: BlobKey


@dataclass(frozen=True, slots=True)
class ProcessExited:
    """The process has ended and everything it said was read; always the last word."""

    ended_at: datetime
    cause: EndCause
    exit_code: int | None
    """None: killed by `signal`, or never started."""
    signal: int
    """0: none."""
    detail: str
    checkpoint: SavedCheckpoint | None = None


@dataclass(frozen=True, slots=True)
class AttemptLost:
    """Nobody can tell what became of it; always the last word."""

    reason: str


@dataclass(frozen=True, slots=True)
class AttemptWaits:
    """It cannot start yet."""

    reason: str


AttemptReport: TypeAlias = (
    ProcessStarted | MetricReported | ProcessExited | AttemptLost | AttemptWaits
)


def is_last(report: AttemptReport) -> bool:
    """Tell whether nothing can follow this in its attempt."""
    return isinstance(report, ProcessExited | AttemptLost)


def split_wait_status(status: int) -> tuple[int | None, int]:
    """Give exit code and signal of a wait status: the one or the other."""
    signal = status & 0x7F
    return (None, signal) if signal else ((status >> 8) & 0xFF, 0)


def shell_code(exit_code: int | None, signal: int) -> int:
    """Give the one number that a shell makes of exit code and signal."""
    return 128 + signal if exit_code is None else exit_code
