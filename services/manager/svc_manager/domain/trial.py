"""Trials, and the transitions of their state."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from svc_common.experiment_events.causes import (
    EndReason,
    LossCause,
    LossReason,
    StopReason,
    WaitReason,
)
from svc_manager.domain.checkpoints import TrialCheckpoint
from svc_manager.domain.values import EncodedValue, Metric, ParameterSource


class TrialState(IntEnum):
    """States of a trial, WAITING to UNKNOWN; the numbers are those of the proto contract."""

    WAITING = 1
    RUNNING = 2
    SUCCEEDED = 3
    FAILED = 4
    USER_CANCELED = 5
    SYS_CANCELED = 6
    EARLY_STOPPED = 7
    UNKNOWN = 8


LIVE_STATES = frozenset({TrialState.WAITING, TrialState.RUNNING, TrialState.UNKNOWN})
"""States that count against the concurrency."""

FINAL_STATES = frozenset(TrialState) - LIVE_STATES

TRANSITIONS: dict[TrialState, frozenset[TrialState]] = {
    # A command that cannot be started never runs, and a short one may end before its start report
    # is read; hence WAITING may end in every state but SUCCEEDED, which needs a start.
    TrialState.WAITING: frozenset(
        {
            TrialState.RUNNING,
            TrialState.WAITING,
            TrialState.FAILED,
            TrialState.USER_CANCELED,
            TrialState.SYS_CANCELED,
            TrialState.EARLY_STOPPED,
        }
    ),
    # Back to WAITING: the agent was lost, another attempt follows.
    TrialState.RUNNING: frozenset({TrialState.WAITING, TrialState.UNKNOWN}) | FINAL_STATES,
    TrialState.UNKNOWN: frozenset({TrialState.WAITING, TrialState.RUNNING}) | FINAL_STATES,
    **{state: frozenset() for state in FINAL_STATES},
}
"""All transitions that an experiment's log may contain."""


@dataclass(frozen=True, slots=True)
class LostAttempt:
    """Attempt of a trial that was lost and followed by another: number, agent, cause."""

    attempt: int
    runner_id: str
    """Empty: it was unclaimed."""
    loss: LossReason

    @property
    def command_failed(self) -> bool:
        """Whether its command failed and was retried, as configured."""
        return self.loss.cause is LossCause.COMMAND_FAILED


@dataclass(frozen=True, slots=True)
class Interruptions:
    """Failed starts, losses after progress and checkpointed steps of a trial."""

    failed_starts: int = 0
    """Number of attempts lost because their environment failed."""
    own_failed_starts: int = 0
    """Those of them that were lost while the experiment did not hold: the trial's fault, maybe."""
    reached_step: int | None = None
    """Largest step of its checkpoints; None: it has saved none."""
    resumed_step: int | None = None
    """Largest step of its checkpoints at the begin of the current attempt."""
    resumed_losses: int = 0
    """Number of attempts that were lost after they had made progress, whatever the cause."""


NO_INTERRUPTIONS: Final = Interruptions()


@dataclass(slots=True)
class Trial:
    """Trial's parameters, state, attempts, metrics and outcome; changed only by the fold."""

    id: str
    sequence_id: int
    parameter_id: int
    parameters: EncodedValue
    provenance: EncodedValue
    source: ParameterSource
    pool: str
    created_at_ms: int
    state: TrialState = TrialState.WAITING
    attempt: int = 1
    """Number of the current attempt; 1-based."""
    claim_id: str = ""
    """First claim of this attempt; empty: unclaimed."""
    runner_id: str = ""
    report_sequence: int = -1
    """Sequence of the last applied report of this claim."""
    started_at_ms: int = 0
    """Start of the last started attempt; 0: none."""
    ended_at_ms: int = 0
    exit_code: int | None = None
    end: EndReason | None = None
    """None: it is live."""
    wait: WaitReason | None = None
    """Delay that its agent reported; None: none."""
    asked_end: TrialState | None = None
    """State in which it ends once stopped; None: no stop was requested."""
    stop: StopReason | None = None
    """Cause of the requested stop."""
    losses: int = 0
    """Number of attempts lost with their agent that count against `maxTrialRetries`."""
    failures: int = 0
    """Number of failed attempts that were retried."""
    final: Metric | None = None
    intermediate_count: int = 0
    last_intermediate: Metric | None = None
    gpu_indices: tuple[int, ...] = ()
    checkpoint: TrialCheckpoint | None = None
    """Last complete checkpoint, of this or an earlier attempt."""
    rare: Interruptions | None = None
    """None, as for most trials: `NO_INTERRUPTIONS`, without its memory for each trial."""
    lost_attempts: tuple[LostAttempt, ...] = ()
    """Oldest first; few, since each is a failure."""

    @property
    def interruptions(self) -> Interruptions:
        """Failed starts, losses after progress and checkpointed steps of the trial; or zeros."""
        return self.rare or NO_INTERRUPTIONS

    @property
    def never_started(self) -> int:
        """Number of earlier attempts lost before their start, or without the trial's fault."""
        rare = self.interruptions
        others = self.losses + self.failures + rare.failed_starts + rare.resumed_losses
        return self.attempt - 1 - others

    @property
    def progressed(self) -> bool:
        """Whether the current attempt has saved a later step than all attempts before it."""
        rare = self.interruptions
        if rare.reached_step is None:
            return False
        return rare.resumed_step is None or rare.reached_step > rare.resumed_step

    @property
    def live(self) -> bool:
        """Whether the trial waits, runs or is UNKNOWN, and so counts against the concurrency."""
        return self.state in LIVE_STATES

    def is_claimed_by(self, attempt: int, claim_id: str) -> bool:
        """Return whether the trial is live, the attempt current, and its claim this one or none."""
        return self.live and attempt == self.attempt and self.claim_id in {"", claim_id}

    def change(self, state: TrialState) -> None:
        """Set the trial's state; raise ValueError if the table has no such transition.

        Raises:
            ValueError: the table has no such transition.
        """
        if state not in TRANSITIONS[self.state]:
            raise ValueError(f"trial {self.id} cannot go from {self.state.name} to {state.name}")
        self.state = state
