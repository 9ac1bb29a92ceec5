"""What decisions answer: users' commands, and words of algorithms, agents and the clock.

Reports of agents and answers of algorithms are values of `reports` and `events`; the rest is here.
"""

from dataclasses import dataclass
from typing import TypeAlias

from svc_manager.domain.events import (
    AlgorithmDiverged,
    AlgorithmFailed,
    AlgorithmStarted,
    ExperimentCreated,
    ParametersGenerated,
)
from svc_manager.domain.reports import Report
from svc_manager.domain.values import EncodedValue


@dataclass(frozen=True, slots=True)
class Create:
    """Begin an experiment; everything has been checked."""

    created: ExperimentCreated
    port: int
    url_prefix: str


@dataclass(frozen=True, slots=True)
class Resume:
    """Let a stopped one go on."""

    port: int
    url_prefix: str
    directory: str
    """Where its folder lies now."""


@dataclass(frozen=True, slots=True)
class View:
    """Open a stopped one for reading."""

    port: int
    url_prefix: str
    directory: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Cancel what lives and close."""

    reason: str = "stopped by the user"


@dataclass(frozen=True, slots=True)
class Update:
    """Change limits or the search space; None leaves a field as it is."""

    trial_concurrency: int | None = None
    max_trial_number: int | None = None
    max_duration_ms: int | None = None
    search_space: EncodedValue | None = None


@dataclass(frozen=True, slots=True)
class KillTrial:
    """End a live trial as USER_CANCELED."""

    trial_id: str


@dataclass(frozen=True, slots=True)
class AddTrial:
    """Run a trial with parameters of the user's choice."""

    request_id: str
    parameters: EncodedValue


@dataclass(frozen=True, slots=True)
class ImportData:
    """Give samples to the algorithm."""

    import_id: str
    data: EncodedValue


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class StopAdvice:
    """The assessor wants a trial stopped."""

    trial_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class AlgorithmGaveUp:
    """The algorithm cannot be brought to answer."""

    generation: int
    reason: str


@dataclass(frozen=True, slots=True)
class HeldAttempt:
    """A trial of this experiment that an agent says to hold."""

    trial_id: str
    attempt: int
    claim_id: str


@dataclass(frozen=True, slots=True)
class AgentSeen:
    """An agent said that it lives, and what it holds of this experiment."""

    runner_id: str
    held: tuple[HeldAttempt, ...]


@dataclass(frozen=True, slots=True)
class AgentSilent:
    """An agent has not been heard of for so long that its state is unknown."""

    runner_id: str


@dataclass(frozen=True, slots=True)
class AgentOverdue:
    """An agent has missed to say that it lives, twice."""

    runner_id: str


@dataclass(frozen=True, slots=True)
class AgentRestarted:
    """An agent took the place of one that may have been given tasks which it did not claim."""

    pool: str
    boot_id: str
    """Of the new one."""


@dataclass(frozen=True, slots=True)
class AgentGone:
    """An agent has been silent for so long that it has killed its trials by now, or left."""

    runner_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class AttemptGone:
    """An agent that should hold an attempt was restarted and knows nothing of it."""

    held: HeldAttempt
    reason: str


@dataclass(frozen=True, slots=True)
class RecordedCommand:
    """A command with the id that makes it repeatable."""

    command: "Command"
    request_id: str
    method: str
    user: str = ""
    fingerprint: str = ""
    """Of what was asked; empty: the command says all of it."""


Command: TypeAlias = Create | Resume | View | Stop | Update | KillTrial | AddTrial | ImportData

Notification: TypeAlias = (
    Report
    | AlgorithmStarted
    | ParametersGenerated
    | AlgorithmFailed
    | AlgorithmDiverged
    | StopAdvice
    | AlgorithmGaveUp
    | AgentSeen
    | AgentOverdue
    | AgentRestarted
    | AgentSilent
    | AgentGone
    | AttemptGone
    | Tick
)
"""What needs no answer."""
