"""Inputs of decisions: users' commands, and notifications of algorithms, agents and the clock.

Reports of agents and answers of algorithms are values of `reports` and `events`; the others are
here.
"""

from dataclasses import dataclass
from typing import TypeAlias

from svc_common.experiment_events.causes import ExperimentCause, LossReason
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
    """Create an experiment whose configuration is checked."""

    created: ExperimentCreated
    port: int
    url_prefix: str


@dataclass(frozen=True, slots=True)
class Resume:
    """Resume a stopped experiment."""

    port: int
    url_prefix: str
    directory: str
    """Current folder of the experiment."""


@dataclass(frozen=True, slots=True)
class View:
    """Open a stopped experiment for reading."""

    port: int
    url_prefix: str
    directory: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Cancel the live trials and stop the experiment."""

    cause: ExperimentCause = ExperimentCause.STOPPED_BY_USER


@dataclass(frozen=True, slots=True)
class Update:
    """Change budgets or the search space; None leaves a field as it is."""

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
    """Run a trial with parameters that the user chose."""

    request_id: str
    parameters: EncodedValue


@dataclass(frozen=True, slots=True)
class ImportData:
    """Import samples into the algorithm."""

    import_id: str
    data: EncodedValue


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class StopAdvice:
    """The assessor advises to stop a trial."""

    trial_id: str
    detail: str
    """Words of the assessor; empty: none."""


@dataclass(frozen=True, slots=True)
class AlgorithmGaveUp:
    """The algorithm failed for good."""

    generation: int
    detail: str
    """Message of the algorithm or of its host."""


@dataclass(frozen=True, slots=True)
class HeldAttempt:
    """Attempt that an agent's presence lists."""

    trial_id: str
    attempt: int
    claim_id: str


@dataclass(frozen=True, slots=True)
class AgentSeen:
    """Presence of an agent, with the attempts of this experiment that it holds."""

    runner_id: str
    held: tuple[HeldAttempt, ...]


@dataclass(frozen=True, slots=True)
class AgentSilent:
    """Silence of an agent, long enough for its state to be unknown."""

    runner_id: str


@dataclass(frozen=True, slots=True)
class AgentOverdue:
    """Two missing presences of an agent."""

    runner_id: str


@dataclass(frozen=True, slots=True)
class AgentRestarted:
    """Start of an agent in place of one that may have pulled tasks without a claim."""

    pool: str
    boot_id: str
    """Of the new agent."""


@dataclass(frozen=True, slots=True)
class AgentGone:
    """Silence of an agent, long enough for it to have killed its trials, or its departure."""

    runner_id: str
    loss: LossReason


@dataclass(frozen=True, slots=True)
class AttemptGone:
    """Restart of an agent that should hold an attempt and does not."""

    held: HeldAttempt
    loss: LossReason


@dataclass(frozen=True, slots=True)
class RecordedCommand:
    """Command with the request id that makes it repeatable."""

    command: "Command"
    request_id: str
    method: str
    user: str = ""
    fingerprint: str = ""
    """Fingerprint of the request; empty: computed from the command."""


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
"""Input without an answer."""
