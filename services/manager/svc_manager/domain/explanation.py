"""Values of an explanation: why a trial waits, was stopped or failed, and the remedies."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum

from svc_common.experiment_events.cause_text import end_text, loss_text, wait_text
from svc_common.experiment_events.causes import EndReason, WaitReason
from svc_manager.domain.trial import LostAttempt, Trial, TrialState


class TrialOutcome(IntEnum):
    """Outcome of a trial in an explanation (waits, runs, failed, …); numbers of the contract."""

    NOT_CREATED = 1
    WAITS = 2
    RUNS = 3
    SUCCEEDED = 4
    STOPPED = 5
    FAILED = 6


class ReasonKind(IntEnum):
    """Subject of a reason (slot, GPU, budget, user, …); numbers of the proto contract."""

    SLOT = 1
    GPU = 2
    POOL = 3
    AGENT = 4
    OBJECT = 5
    BUDGET = 6
    ALGORITHM = 7
    EXPERIMENT = 8
    USER = 9
    ASSESSOR = 10
    TIME_LIMIT = 11
    EXIT_CODE = 12
    SIGNAL = 13
    NOT_STARTED = 14
    LOST = 15
    BUS = 16


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason in an explanation of a trial: its subject, a sentence, and a remedy."""

    kind: ReasonKind
    text: str
    """A sentence."""
    remedy: str = ""
    """Action that helps; empty: none is needed."""


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """Facts about an agent for explanations: pool, silence, draining, held attempts, wait."""

    runner_id: str
    pool: str
    silent_s: float
    """Time since its last presence."""
    silent: bool
    """Whether it has been silent for too long."""
    draining: bool
    held_count: int
    """Number of attempts that it holds, of all experiments."""
    holds: bool = False
    """Whether it holds this trial."""
    wait: WaitReason | None = None
    """Cause for which it delays this trial; None: it does not."""


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """Facts about a pool that platforms feed, for explanations: its growth, from the fleet."""

    reason: str = ""
    """Why it does not grow although trials wait, in the platform's words; empty: it grows."""
    remedy: str = ""
    coming_count: int = 0
    """Agents that were asked for and have not been heard from."""
    coming_reason: str = ""
    """Why one of these is not there yet, in the platform's words; empty: none is named."""


@dataclass(frozen=True, slots=True)
class ExplanationContext:
    """Time, known agents and bus trouble: facts for an explanation that are not in the log."""

    now_ms: int
    agents: Collection[AgentFacts]
    """All known agents, of every pool."""
    bus_trouble: str = ""
    """Reason why events cannot be appended; empty: they can."""
    pool: PoolFacts | None = None
    """Of the experiment's pool; None: no platform feeds it, or the fleet is silent on it."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explanation of a trial's state: outcome, summary, reasons and lost attempts."""

    trial_id: str
    """Empty: the trial that is not created yet."""
    state: TrialState | None
    """None: the trial is not created yet."""
    outcome: TrialOutcome
    summary: str
    """One sentence."""
    reasons: tuple[Reason, ...] = ()
    """Most important first."""
    lost_attempts: tuple[LostAttempt, ...] = ()
    stderr_tail: str = ""
    exit_code: int | None = None
    signal: int = 0
    end: EndReason | None = None
    """None: the trial is live, or not created yet."""


def trial_text(trial: Trial) -> str:
    """Return the text of a trial's end, wait or last loss; empty: it runs or has succeeded."""
    if trial.end is not None:
        return end_text(trial.end)
    if trial.wait is not None:
        return wait_text(trial.wait)
    if trial.state is TrialState.WAITING and trial.lost_attempts:
        return loss_text(trial.lost_attempts[-1].loss)
    return ""


def ago(duration_ms: float) -> str:
    """Return milliseconds as text: `4 s`, `3 min 20 s`, `2 h 5 min`, `50 h 0 min`."""
    seconds = max(0, int(duration_ms / 1000))
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 trial`, `3 trials`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
