"""Inputs of decisions: users' commands, and notifications of algorithms, agents and the clock.

Reports of agents and answers of algorithms are values of `reports` and `events`; the others are
here.
"""

from dataclasses import dataclass
from typing import TypeAlias

from svc_common.experiment_events.causes import ExperimentCause, LossReason
from svc_manager.domain.agent_limits import AgentLimits
from svc_manager.domain.events import (
    AlgorithmDiverged,
    AlgorithmFailed,
    AlgorithmStarted,
    AlgorithmWaits,
    ExperimentCreated,
    ParametersGenerated,
)
from svc_manager.domain.reports import Report
from svc_manager.domain.values import EncodedValue, Metric


@dataclass(frozen=True, slots=True)
class Create:
    """Command: create an experiment from a checked configuration, with its port."""

    created: ExperimentCreated
    port: int
    url_prefix: str


@dataclass(frozen=True, slots=True)
class Resume:
    """Command: resume a stopped experiment, with port and current folder."""

    port: int
    url_prefix: str
    directory: str
    """Current folder of the experiment."""


@dataclass(frozen=True, slots=True)
class View:
    """Command: open a stopped experiment for reading only, with port and folder."""

    port: int
    url_prefix: str
    directory: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Command: cancel the live trials and stop the experiment."""

    cause: ExperimentCause = ExperimentCause.STOPPED_BY_USER


@dataclass(frozen=True, slots=True)
class Update:
    """Command: change budgets or the search space; a field that is None stays as it is."""

    trial_concurrency: int | None = None
    max_trial_number: int | None = None
    max_duration_ms: int | None = None
    search_space: EncodedValue | None = None


@dataclass(frozen=True, slots=True)
class ChangeTuner:
    """Command: hand the experiment over to another tuner, which learns all results."""

    tuner: EncodedValue


@dataclass(frozen=True, slots=True)
class ChangeAgentLimits:
    """Command: change limits of the experiment's agents; None keeps one unless `removed` has it."""

    limits: AgentLimits


@dataclass(frozen=True, slots=True)
class KillTrial:
    """Command: end a live trial as USER_CANCELED."""

    trial_id: str


@dataclass(frozen=True, slots=True)
class AddTrial:
    """Command: run a trial with parameters that the user chose."""

    request_id: str
    parameters: EncodedValue


@dataclass(frozen=True, slots=True)
class ImportData:
    """Command: import samples into the algorithm."""

    import_id: str
    data: EncodedValue


@dataclass(frozen=True, slots=True)
class ChangeRemarks:
    """Command: change remarks on the experiment or a trial; a field that is None stays as it is."""

    trial_id: str = ""
    """Empty: on the experiment."""
    note: str | None = None
    tags: tuple[str, ...] | None = None
    starred: bool | None = None


@dataclass(frozen=True, slots=True)
class AskTrial:
    """Command: start the next trial for a caller, now or once there are parameters."""

    request_id: str
    """Becomes the claim of the attempt."""
    caller_id: str
    parameters: EncodedValue = b""
    """Parameters of the trial; empty: the next ones of the algorithm."""


@dataclass(frozen=True, slots=True)
class TellTrial:
    """Command: end a trial that a caller runs, with its result or as failed."""

    trial_id: str
    attempt: int
    result: Metric | None
    """None: it failed."""
    detail: str = ""
    """Why it failed, in words of the caller."""
    stopped: bool = False
    """Whether it was stopped early, and has not failed."""
    sample: EncodedValue = b""
    """Sample for the algorithm, of a trial whose parameters it did not suggest; empty: none."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Notification: time has passed."""


@dataclass(frozen=True, slots=True)
class StopAdvice:
    """Notification: the assessor advises to stop a trial early."""

    trial_id: str
    detail: str
    """Words of the assessor; empty: none."""


@dataclass(frozen=True, slots=True)
class AlgorithmGaveUp:
    """Notification: the algorithm of this generation failed for good."""

    generation: int
    detail: str
    """Message of the algorithm or of its host."""


@dataclass(frozen=True, slots=True)
class HeldAttempt:
    """Trial, attempt and claim that an agent's presence message lists as held."""

    trial_id: str
    attempt: int
    claim_id: str


@dataclass(frozen=True, slots=True)
class AgentSeen:
    """Notification: an agent is present and holds these attempts of this experiment."""

    runner_id: str
    held: tuple[HeldAttempt, ...]


@dataclass(frozen=True, slots=True)
class AgentSilent:
    """Notification: silence of an agent, long enough for its state to be unknown."""

    runner_id: str


@dataclass(frozen=True, slots=True)
class AgentOverdue:
    """Notification: two missing presence messages of an agent."""

    runner_id: str


@dataclass(frozen=True, slots=True)
class AgentRestarted:
    """Notification: a pool's agent restarted; its predecessor may have left tasks unclaimed."""

    pool: str
    boot_id: str
    """Of the new agent."""


@dataclass(frozen=True, slots=True)
class AgentGone:
    """Notification: an agent left or was silent until its trials are dead."""

    runner_id: str
    loss: LossReason


@dataclass(frozen=True, slots=True)
class AttemptGone:
    """Notification: a restarted agent does not hold an attempt that the log assigns to it."""

    held: HeldAttempt
    loss: LossReason


@dataclass(frozen=True, slots=True)
class RecordedCommand:
    """User's command with request id, method and user, so that a repetition is recognised."""

    command: "Command"
    request_id: str
    method: str
    user: str = ""
    fingerprint: str = ""
    """Fingerprint of the request; empty: computed from the command."""


Command: TypeAlias = (
    Create
    | Resume
    | View
    | Stop
    | Update
    | ChangeTuner
    | ChangeAgentLimits
    | KillTrial
    | AddTrial
    | ImportData
    | ChangeRemarks
    | AskTrial
    | TellTrial
)

Notification: TypeAlias = (
    Report
    | AlgorithmStarted
    | ParametersGenerated
    | AlgorithmFailed
    | AlgorithmDiverged
    | AlgorithmWaits
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
