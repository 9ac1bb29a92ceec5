"""The values of an explanation: why a trial waits, was stopped or failed, and what helps."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum

from svc_manager.domain.trial import LostAttempt, TrialState


class TrialOutcome(IntEnum):
    """What became of a trial; the numbers are those of the contract."""

    NOT_CREATED = 1
    WAITS = 2
    RUNS = 3
    SUCCEEDED = 4
    STOPPED = 5
    FAILED = 6


class ReasonKind(IntEnum):
    """What a reason is about; the numbers are those of the contract."""

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
    """One reason in words."""

    kind: ReasonKind
    text: str
    """A sentence."""
    remedy: str = ""
    """What a person can do; empty: nothing is needed."""


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What is known of an agent when somebody asks."""

    runner_id: str
    pool: str
    silent_s: float
    """Since it was heard of last."""
    silent: bool
    """Whether that is too long."""
    draining: bool
    held_count: int
    """Attempts that it holds, of all experiments."""
    waits_for: str | None = None
    """What this trial waits for there; empty: it has started; None: the agent does not hold it."""


@dataclass(frozen=True, slots=True)
class Around:
    """What an explanation needs beside the log."""

    now_ms: int
    agents: Collection[AgentFacts]
    """All that have been heard of, whatever their pool."""
    bus_trouble: str = ""
    """Why nothing can be stored on the bus now; empty: it can."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a trial is as it is."""

    trial_id: str
    """Empty: the trial that does not exist yet."""
    state: TrialState | None
    """None: it does not exist yet."""
    verdict: TrialOutcome
    summary: str
    """One sentence."""
    reasons: tuple[Reason, ...] = ()
    """The most important one first."""
    lost_attempts: tuple[LostAttempt, ...] = ()
    stderr_tail: str = ""
    exit_code: int | None = None
    signal: int = 0


def ago(duration_ms: float) -> str:
    """Return a duration in words: `4 s`, `3 min 20 s`, `2 h 5 min`."""
    seconds = max(0, int(duration_ms / 1000))
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 trial`, `3 trials`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
