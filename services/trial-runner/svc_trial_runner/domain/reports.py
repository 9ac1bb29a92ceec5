"""Reports of an attempt to the manager, in the order of events."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from signal import Signals
from typing import Any, Final, TypeAlias

from svc_common.experiment_events.causes import LossReason, WaitReason
from svc_trial_runner.domain.tasks import BlobKey, TrialCheckpoint

_SHUTDOWN_SIGNALS: Final = frozenset({Signals.SIGTERM, Signals.SIGINT, Signals.SIGHUP})


class ExitCause(Enum):
    """Reported kind of an attempt's end: by itself, stopped, time limit, not started."""

    ENDED = "ended"
    STOPPED = "stopped"
    TIME_LIMIT = "time limit"
    NOT_STARTED = "not started"


@dataclass(frozen=True, slots=True)
class ProcessStarted:
    """Report that the process of a trial was started, with its GPUs."""

    started_at: datetime
    pid: int
    gpu_indices: tuple[int, ...]
    warm: bool


@dataclass(frozen=True, slots=True)
class MetricReported:
    """Report of a metric that the trial sent, with its sequence and time."""

    final: bool
    sequence: int
    """0-based, per type."""
    value: Any
    """JSON value, or a `BlobKey` of one in the blob store."""
    reported_at: datetime


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """Directory name and blob of a checkpoint that a trial saved."""

    directory: str
    """Name given by the algorithm."""
    archive: BlobKey


@dataclass(frozen=True, slots=True)
class ProcessExited:
    """Last report of an attempt: exit code or signal, cause, stderr, checkpoint."""

    ended_at: datetime
    cause: ExitCause
    exit_code: int | None
    """None: killed by `signal`, or never started."""
    signal: int
    """0: none."""
    detail: str
    checkpoint: SavedCheckpoint | None = None


@dataclass(frozen=True, slots=True)
class AttemptLost:
    """Report: the outcome of the attempt is unknown; always the last report."""

    loss: LossReason


@dataclass(frozen=True, slots=True)
class AttemptWaits:
    """Report: the attempt cannot start yet, with the reason."""

    wait: WaitReason


@dataclass(frozen=True, slots=True)
class CheckpointSaved:
    """Report of a complete checkpoint that is stored."""

    checkpoint: TrialCheckpoint


AttemptReport: TypeAlias = (
    ProcessStarted | MetricReported | ProcessExited | AttemptLost | AttemptWaits | CheckpointSaved
)


def is_last(report: AttemptReport) -> bool:
    """Return whether this is the last report of its attempt."""
    return isinstance(report, ProcessExited | AttemptLost)


def split_wait_status(status: int) -> tuple[int | None, int]:
    """Return (exit code, 0) of a wait status, or (None, signal) if a signal killed the process."""
    signal = status & 0x7F
    return (None, signal) if signal else ((status >> 8) & 0xFF, 0)


def ended_by_shutdown_signal(status: int | None) -> bool:
    """Return whether a wait status shows TERM, INT or HUP, also as 128 + signal; True for None.

    Args:
        status: wait status; None: the end was not seen, since the starter ended too.
    """
    if status is None:
        return True
    exit_code, signal = split_wait_status(status)
    return shell_code(exit_code, signal) - 128 in _SHUTDOWN_SIGNALS


def shell_code(exit_code: int | None, signal: int) -> int:
    """Return the single exit number that a shell makes of exit code and signal."""
    return 128 + signal if exit_code is None else exit_code
