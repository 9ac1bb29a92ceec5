"""A trial, and the one table of how its state may change."""

from dataclasses import dataclass
from enum import IntEnum

from svc_manager.domain.values import EncodedValue, Metric, ParameterSource


class TrialState(IntEnum):
    """The life of a trial; the numbers are those of the contract."""

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
    # A command that cannot be started never runs, and a short one may end before the word of its
    # start is read; hence WAITING may end in every way but SUCCEEDED, which needs a start.
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
"""Every change of state that an experiment's log may tell of."""


@dataclass(frozen=True, slots=True)
class LostAttempt:
    """An attempt that was followed by another one."""

    attempt: int
    runner_id: str
    """Empty: nobody had claimed it."""
    reason: str
    command_failed: bool
    """Its command failed and was run again, as the user asked."""


@dataclass(slots=True)
class Trial:
    """One set of parameters and what became of it; owned and changed by the fold only."""

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
    """The attempt that waits or runs; 1-based."""
    claim_id: str = ""
    """Whose claim on this attempt came first; empty: nobody's yet."""
    runner_id: str = ""
    report_sequence: int = -1
    """Last report of this claim that has been counted."""
    started_at_ms: int = 0
    """Start of the last attempt that ran; 0: none did."""
    ended_at_ms: int = 0
    exit_code: int | None = None
    reason: str = ""
    """Why it waits, was stopped or failed."""
    asked_end: TrialState | None = None
    """State it ends in once it has stopped; None: nobody asked for a stop."""
    stop_reason: str = ""
    losses: int = 0
    """How many of its attempts were lost with their agent."""
    failures: int = 0
    """How many of its attempts failed and were run again."""
    final: Metric | None = None
    intermediate_count: int = 0
    last_intermediate: Metric | None = None
    gpu_indices: tuple[int, ...] = ()
    lost_attempts: tuple[LostAttempt, ...] = ()
    """Oldest first; few, for each of them is something gone wrong."""

    @property
    def never_started(self) -> int:
        """How many of its attempts were lost before its command had started."""
        return self.attempt - 1 - self.losses - self.failures

    @property
    def live(self) -> bool:
        """Whether it counts against the concurrency."""
        return self.state in LIVE_STATES

    def change(self, state: TrialState) -> None:
        """Go to ``state``.

        Raises:
            ValueError: the table has no such transition.
        """
        if state not in TRANSITIONS[self.state]:
            raise ValueError(f"trial {self.id} cannot go from {self.state.name} to {state.name}")
        self.state = state
