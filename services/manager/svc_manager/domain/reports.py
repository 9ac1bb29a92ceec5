"""Reports of agents about one attempt of a trial."""

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from svc_common.experiment_events.causes import LossReason, WaitReason
from svc_manager.domain.checkpoints import SavedCheckpoint, TrialCheckpoint
from svc_manager.domain.values import Metric


class ExitCause(IntEnum):
    """Cause of an attempt's end: by itself, stop, time limit, not started; contract's numbers."""

    UNSPECIFIED = 0
    ENDED = 1
    STOPPED = 2
    TIME_LIMIT = 3
    NOT_STARTED = 4


@dataclass(frozen=True, slots=True)
class Started:
    """Report body: the trial's process started, with time, process id and GPUs."""

    started_at_ms: int
    pid: int = 0
    gpu_indices: tuple[int, ...] = ()
    warm: bool = False


@dataclass(frozen=True, slots=True)
class Exited:
    """Report body: the trial's process ended, with exit code or signal, stderr and checkpoint."""

    ended_at_ms: int
    cause: ExitCause
    exit_code: int | None = None
    """None: killed by ``signal``, or never started."""
    signal: int = 0
    detail: str = ""
    checkpoint: SavedCheckpoint | None = None
    """Checkpoint that it saved, where checkpoints travel."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Loss of the attempt: the agent does not know its outcome."""

    loss: LossReason


@dataclass(frozen=True, slots=True)
class Waits:
    """Delay of a task that the agent holds and cannot start yet."""

    wait: WaitReason


@dataclass(frozen=True, slots=True)
class CheckpointSaved:
    """Report body: the trial has completed a checkpoint, and it is stored."""

    checkpoint: TrialCheckpoint


ReportBody: TypeAlias = Started | Metric | Exited | Lost | Waits | CheckpointSaved


@dataclass(frozen=True, slots=True)
class Report:
    """Numbered report of an agent on one attempt of a trial: start, metric, end, loss, wait."""

    runner_id: str
    trial_id: str
    attempt: int
    sequence: int
    """0, 1, 2, ... within (trial, attempt, claim)."""
    claim_id: str
    body: ReportBody

    @property
    def claim(self) -> tuple[str, int, str]:
        """(trial id, attempt, claim id), the key within which the sequence counts."""
        return (self.trial_id, self.attempt, self.claim_id)
