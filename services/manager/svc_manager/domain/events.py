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
from svc_common.experiment_events.events import AlgorithmRequested, ExperimentMoved, TrialsRequested
from svc_manager.domain.checkpoints import SavedCheckpoint
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
    "AlgorithmDiverged",
    "AlgorithmFailed",
    "AlgorithmRequested",
    "AlgorithmStarted",
    "BudgetChanged",
    "CustomTrialAdded",
    "DataImported",
    "Event",
    "ExperimentCreated",
    "ExperimentEnded",
    "ExperimentMoved",
    "ExperimentStateChanged",
    "ListenerClosed",
    "ListenerOpened",
    "MetricReported",
    "ParametersGenerated",
    "ReportDeferred",
    "ReportIgnored",
    "RequestRecorded",
    "SearchSpaceChanged",
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
    """First event of every log."""

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
class AlgorithmStarted:
    """The algorithm is ready for requests."""

    generation: int
    lookahead: bool
    assesses: bool
    provenance: Mapping[str, str]
    learned_metrics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParametersGenerated:
    """The algorithm answered a request."""

    request_id: str
    parameters: tuple[Parameters, ...]
    exhausted: bool
    deferred: int
    based_on: Position
    released_checkpoints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrialScheduled:
    """A trial was created."""

    trial_id: str
    sequence_id: int
    parameter_id: int
    parameters: EncodedValue
    source: ParameterSource
    pool: str


@dataclass(frozen=True, slots=True)
class TrialStarted:
    """The process of an attempt was started."""

    trial_id: str
    attempt: int
    claim_id: str
    runner_id: str
    started_at_ms: int
    gpu_indices: tuple[int, ...]
    report_sequence: int


@dataclass(frozen=True, slots=True)
class MetricReported:
    """A metric of a trial was accepted."""

    trial_id: str
    attempt: int
    parameter_id: int
    metric: Metric
    report_sequence: int


@dataclass(frozen=True, slots=True)
class TrialStopRequested:
    """The stop of a running trial was requested."""

    trial_id: str
    end_state: TrialState
    stop: StopReason


@dataclass(frozen=True, slots=True)
class TrialLost:
    """An attempt was lost; another one follows."""

    trial_id: str
    attempt: int
    loss: LossReason
    command_failed: bool


@dataclass(frozen=True, slots=True)
class TrialRequeued:
    """The task of an attempt is published, after the back-off that followed a failed start."""

    trial_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """A trial ended."""

    trial_id: str
    attempt: int
    state: TrialState
    exit_code: int | None
    ended_at_ms: int
    end: EndReason
    report_sequence: int
    checkpoint: SavedCheckpoint | None = None


@dataclass(frozen=True, slots=True)
class TrialUnknown:
    """The agent of a running trial fell silent."""

    trial_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class TrialWaits:
    """An agent holds the task and reports why it does not start it."""

    trial_id: str
    attempt: int
    claim_id: str
    runner_id: str
    wait: WaitReason
    report_sequence: int


@dataclass(frozen=True, slots=True)
class ReportDeferred:
    """A report arrived before an earlier one; it is kept until the gap is filled."""

    report: Report


@dataclass(frozen=True, slots=True)
class ReportIgnored:
    """A report had no effect, but used a sequence number."""

    trial_id: str
    attempt: int
    report_sequence: int
    cause: IgnoreCause


@dataclass(frozen=True, slots=True)
class AlgorithmFailed:
    """A call of the algorithm raised an exception."""

    call: str
    traceback: str
    position: Position
    skipped: bool


@dataclass(frozen=True, slots=True)
class AlgorithmDiverged:
    """A replay gave another answer than the log; the log wins."""

    parameter_id: int
    recorded: EncodedValue
    replayed: EncodedValue


@dataclass(frozen=True, slots=True)
class BudgetChanged:
    """Budgets changed; None leaves one as it is."""

    trial_concurrency: int | None
    max_trial_number: int | None
    max_experiment_duration_ms: int | None


@dataclass(frozen=True, slots=True)
class SearchSpaceChanged:
    """The search space was replaced."""

    search_space: EncodedValue


@dataclass(frozen=True, slots=True)
class DataImported:
    """Samples were imported into the algorithm."""

    import_id: str
    data: EncodedValue


@dataclass(frozen=True, slots=True)
class CustomTrialAdded:
    """A user requested a trial with these parameters."""

    request_id: str
    parameter_id: int
    parameters: EncodedValue


@dataclass(frozen=True, slots=True)
class ListenerOpened:
    """The experiment got a port of its own."""

    port: int
    url_prefix: str


@dataclass(frozen=True, slots=True)
class ListenerClosed:
    """The experiment's port was closed."""


@dataclass(frozen=True, slots=True)
class ExperimentStateChanged:
    """The state of the experiment changed."""

    old_state: ExperimentState | None
    """None: it was created."""
    new_state: ExperimentState
    cause: ExperimentReason
    execution_time_ms: int


@dataclass(frozen=True, slots=True)
class ExperimentEnded:
    """The current run of the experiment ended: STOPPED, or ERROR."""

    final_state: ExperimentState
    cause: ExperimentReason


@dataclass(frozen=True, slots=True)
class RequestRecorded:
    """A user's request was carried out."""

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
    | BudgetChanged
    | SearchSpaceChanged
    | DataImported
    | CustomTrialAdded
    | ListenerOpened
    | ListenerClosed
    | ExperimentStateChanged
    | ExperimentEnded
    | ExperimentMoved
    | RequestRecorded
)
