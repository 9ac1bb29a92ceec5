"""Events of an experiment, in the past tense; each mirrors a message of the proto contract.

Fields that the contract documents are documented there (`nni_proto/experiment/v1/event.proto`).
Encoded fields hold messages as bytes, which the domain does not decode.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from svc_common.experiment_events.causes import (
    EndReason,
    ExperimentReason,
    IgnoreCause,
    LossReason,
    StopReason,
    WaitReason,
)
from svc_common.experiment_events.events import ExperimentMoved, TrialsRequested
from svc_manager.domain.agent_limits import AgentLimits
from svc_manager.domain.checkpoints import SavedCheckpoint, TrialCheckpoint
from svc_manager.domain.experiment import Budget, ExperimentSettings, ExperimentState
from svc_manager.domain.reports import Report
from svc_manager.domain.trial import TrialState
from svc_manager.domain.values import (
    EncodedValue,
    Metric,
    OptimizeMode,
    Parameters,
    ParameterSource,
    Position,
)

__all__ = [
    "AgentLimitsChanged",
    "AlgorithmDiverged",
    "AlgorithmFailed",
    "AlgorithmRequested",
    "AlgorithmStarted",
    "AlgorithmWaits",
    "BudgetChanged",
    "CustomTrialAdded",
    "DataImported",
    "Event",
    "ExperimentCreated",
    "ExperimentEnded",
    "ExperimentMoved",
    "ExperimentStateChanged",
    "ExperimentTimeCounted",
    "ListenerClosed",
    "ListenerOpened",
    "MetricReported",
    "ParametersGenerated",
    "RemarksChanged",
    "ReportDeferred",
    "ReportIgnored",
    "RequestRecorded",
    "SearchSpaceChanged",
    "TrialCheckpointed",
    "TrialEnded",
    "TrialEvent",
    "TrialLost",
    "TrialRequeued",
    "TrialScheduled",
    "TrialStarted",
    "TrialStopRequested",
    "TrialUnknown",
    "TrialWaits",
    "TrialsRequested",
]


@dataclass(frozen=True, slots=True)
class ExperimentCreated:
    """First event of a log: configuration, settings, budget, folder and versions."""

    experiment_id: str
    config: bytes
    """Serialised `ExperimentConfig`; not decoded here."""
    settings: ExperimentSettings
    """Settings of ``config`` that decisions need."""
    budget: Budget
    """Budgets of ``config``."""
    directory: str
    environment_sha256: str
    interpreter: str
    nni_version: str
    optimize_mode: OptimizeMode | None


@dataclass(frozen=True, slots=True)
class AlgorithmRequested:
    """Event: the algorithm is to be constructed: at creation, resume or hand-over to a tuner."""

    generation: int
    directory: str = ""
    service: str = ""
    tuner: EncodedValue | None = None
    """Encoded `AlgorithmConfig` of the tuner that takes over; None: the tuner is unchanged."""


@dataclass(frozen=True, slots=True)
class AlgorithmStarted:
    """Event: the algorithm of this generation is ready for requests; its capabilities."""

    generation: int
    lookahead: bool
    assesses: bool
    provenance: Mapping[str, str]
    learned_metrics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParametersGenerated:
    """Event: the algorithm's parameters for a request; how many come later, if any are left."""

    request_id: str
    parameters: tuple[Parameters, ...]
    exhausted: bool
    deferred: int
    based_on: Position
    released_checkpoints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrialScheduled:
    """Event: a trial was created with these parameters, for this pool of agents."""

    trial_id: str
    sequence_id: int
    parameter_id: int
    parameters: EncodedValue
    source: ParameterSource
    pool: str


@dataclass(frozen=True, slots=True)
class TrialStarted:
    """Event: an agent started the process of a trial's attempt, with this claim and GPUs."""

    trial_id: str
    attempt: int
    claim_id: str
    runner_id: str
    started_at_ms: int
    gpu_indices: tuple[int, ...]
    report_sequence: int


@dataclass(frozen=True, slots=True)
class MetricReported:
    """Event: a metric that a trial reported was accepted."""

    trial_id: str
    attempt: int
    parameter_id: int
    metric: Metric
    report_sequence: int


@dataclass(frozen=True, slots=True)
class TrialStopRequested:
    """Event: the stop of a running trial was requested, and the state in which it will end."""

    trial_id: str
    end_state: TrialState
    stop: StopReason


@dataclass(frozen=True, slots=True)
class TrialLost:
    """Event: an attempt of a trial was lost or failed, and another one follows."""

    trial_id: str
    attempt: int
    loss: LossReason
    command_failed: bool


@dataclass(frozen=True, slots=True)
class TrialRequeued:
    """Event: the task of an attempt is published again, after the back-off of a failed start."""

    trial_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """Event: a trial ended in this state, with exit code, cause and checkpoint."""

    trial_id: str
    attempt: int
    state: TrialState
    exit_code: int | None
    ended_at_ms: int
    end: EndReason
    report_sequence: int
    checkpoint: SavedCheckpoint | None = None
    infrastructure: bool = False


@dataclass(frozen=True, slots=True)
class TrialUnknown:
    """Event: the agent of a running trial fell silent, so the trial is UNKNOWN."""

    trial_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class TrialWaits:
    """Event: an agent holds a trial's task and reports why it does not start it."""

    trial_id: str
    attempt: int
    claim_id: str
    runner_id: str
    wait: WaitReason
    report_sequence: int


@dataclass(frozen=True, slots=True)
class TrialCheckpointed:
    """Event: a trial has completed a checkpoint, from which its next attempt continues."""

    trial_id: str
    attempt: int
    checkpoint: TrialCheckpoint
    report_sequence: int


@dataclass(frozen=True, slots=True)
class ReportDeferred:
    """Event: a report arrived before an earlier one; it is kept until the gap is filled."""

    report: Report


@dataclass(frozen=True, slots=True)
class ReportIgnored:
    """Event: a trial report with a valid sequence number had no effect, and why."""

    trial_id: str
    attempt: int
    report_sequence: int
    cause: IgnoreCause


@dataclass(frozen=True, slots=True)
class AlgorithmFailed:
    """Event: a call of the tuner or assessor raised an exception, with its traceback."""

    call: str
    traceback: str
    position: Position
    skipped: bool


@dataclass(frozen=True, slots=True)
class AlgorithmDiverged:
    """Event: a replay of the algorithm gave other parameters than the log; the log wins."""

    parameter_id: int
    recorded: EncodedValue
    replayed: EncodedValue


@dataclass(frozen=True, slots=True)
class AlgorithmWaits:
    """Event: a report of the algorithm is delayed, and why; its next event ends the delay."""

    generation: int
    reason: str


@dataclass(frozen=True, slots=True)
class BudgetChanged:
    """Event: a user changed concurrency or limits; a field that is None stays as it is."""

    trial_concurrency: int | None
    max_trial_number: int | None
    max_experiment_duration_ms: int | None


@dataclass(frozen=True, slots=True)
class AgentLimitsChanged:
    """Event: a user changed limits of the experiment's agents."""

    limits: AgentLimits
    """Limits that are None stay as they are, except those that it removes."""


@dataclass(frozen=True, slots=True)
class SearchSpaceChanged:
    """Event: the search space was replaced."""

    search_space: EncodedValue


@dataclass(frozen=True, slots=True)
class DataImported:
    """Event: a user's samples were imported, to be passed to the algorithm."""

    import_id: str
    data: EncodedValue


@dataclass(frozen=True, slots=True)
class CustomTrialAdded:
    """Event: a user requested a trial with these parameters."""

    request_id: str
    parameter_id: int
    parameters: EncodedValue


@dataclass(frozen=True, slots=True)
class ListenerOpened:
    """Event: the experiment got a port of its own for its page and REST API."""

    port: int
    url_prefix: str


@dataclass(frozen=True, slots=True)
class ListenerClosed:
    """Event: the experiment's port was closed."""


@dataclass(frozen=True, slots=True)
class ExperimentStateChanged:
    """Event: the experiment changed its state, with cause and execution time so far."""

    old_state: ExperimentState | None
    """None: it was created."""
    new_state: ExperimentState
    cause: ExperimentReason
    execution_time_ms: int


@dataclass(frozen=True, slots=True)
class ExperimentTimeCounted:
    """Event: the execution time was counted; it continues from this sum."""

    execution_time_ms: int


@dataclass(frozen=True, slots=True)
class ExperimentEnded:
    """Event: the current run of the experiment ended in STOPPED or ERROR."""

    final_state: ExperimentState
    cause: ExperimentReason


@dataclass(frozen=True, slots=True)
class RemarksChanged:
    """Event: a user replaced the remarks on the experiment, or on one of its trials."""

    trial_id: str
    """Empty: on the experiment."""
    note: str
    tags: tuple[str, ...]
    starred: bool


@dataclass(frozen=True, slots=True)
class RequestRecorded:
    """Event: a user's request was carried out; its id makes a repetition recognisable."""

    request_id: str
    user: str
    method: str
    fingerprint: str = ""
    """Fingerprint of the request; empty: not recorded."""


TrialEvent: TypeAlias = (
    MetricReported
    | TrialStarted
    | TrialEnded
    | TrialScheduled
    | TrialLost
    | TrialRequeued
    | TrialWaits
    | TrialStopRequested
    | TrialCheckpointed
    | ReportIgnored
    | ReportDeferred
    | TrialUnknown
)
"""Event of one trial; the frequent ones come first, since `isinstance` tries them in order."""

Event: TypeAlias = (
    TrialEvent
    | ExperimentCreated
    | AlgorithmRequested
    | AlgorithmStarted
    | TrialsRequested
    | ParametersGenerated
    | AlgorithmFailed
    | AlgorithmDiverged
    | AlgorithmWaits
    | BudgetChanged
    | AgentLimitsChanged
    | SearchSpaceChanged
    | DataImported
    | CustomTrialAdded
    | ListenerOpened
    | ListenerClosed
    | ExperimentStateChanged
    | ExperimentEnded
    | ExperimentMoved
    | ExperimentTimeCounted
    | RemarksChanged
    | RequestRecorded
)
