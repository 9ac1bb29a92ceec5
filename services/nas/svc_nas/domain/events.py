"""Events of an exploration's log that its strategy, or its progress, depends on."""

from dataclasses import dataclass
from typing import TypeAlias

from svc_common.experiment_events.events import (
    AlgorithmRequested,
    ExperimentMoved,
    TrialsRequested,
)

__all__ = [
    "AlgorithmRequested",
    "AlgorithmStarted",
    "BudgetChanged",
    "CandidatesRecorded",
    "Event",
    "ExperimentEnded",
    "ExperimentMoved",
    "ExplorationCreated",
    "MetricReported",
    "RecordedCandidate",
    "StateChanged",
    "TrialEnded",
    "TrialLost",
    "TrialScheduled",
    "TrialsRequested",
]


@dataclass(frozen=True, slots=True)
class ExplorationCreated:
    """Event: an exploration was created, with document's hash, classes, code, concurrency, seed."""

    document_sha256: str
    """Hash of the document with space, evaluator and strategy."""
    strategy: str
    """Class of the strategy."""
    evaluator: str
    """Class of the evaluator."""
    model_format: str
    interpreter: str
    """Interpreter of the client; empty for the service's own."""
    code_directory: str
    """Folder of the trials' code, from which user's modules are imported."""
    concurrency: int
    """Most concurrent trials."""
    seed: int
    log_level: str = "info"
    code_archive: str = ""
    """Hash of the archive of that folder, where the client is on another machine; empty: none."""


@dataclass(frozen=True, slots=True)
class AlgorithmStarted:
    """Event: the manager has recorded that the strategy runs."""

    generation: int


@dataclass(frozen=True, slots=True)
class RecordedCandidate:
    """Candidate in the log: parameter id, key in its strategy's process, parameters."""

    parameter_id: int
    key: str
    """Key under which a process of the strategy submitted it."""
    parameters: object
    """Decoded JSON."""


@dataclass(frozen=True, slots=True)
class CandidatesRecorded:
    """Event: the manager has recorded an answer: request, candidates, whether no more come."""

    request_id: str
    """Empty: the answer holds candidates that an earlier answer had deferred."""
    candidates: tuple[RecordedCandidate, ...]
    exhausted: bool
    """No more candidates come."""


@dataclass(frozen=True, slots=True)
class TrialScheduled:
    """Event: a trial was created for a candidate, or for parameters of a user."""

    trial_id: str
    parameter_id: int


@dataclass(frozen=True, slots=True)
class TrialLost:
    """Event: an attempt was lost; the trial is tried again."""

    trial_id: str


@dataclass(frozen=True, slots=True)
class MetricReported:
    """Event: a trial has reported a metric, intermediate or final, as decoded JSON."""

    trial_id: str
    value: object
    """Decoded JSON."""
    is_final: bool


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """Event: a trial has ended."""

    trial_id: str
    state: str
    """`SUCCEEDED`, `FAILED`, `SYS_CANCELED`, ..."""


@dataclass(frozen=True, slots=True)
class BudgetChanged:
    """Event: the number of concurrent trials was changed."""

    concurrency: int
    """0: a pause."""


@dataclass(frozen=True, slots=True)
class StateChanged:
    """Event: the experiment is in another state."""

    state: str
    """`RUNNING`, `NO_MORE_TRIAL`, `DONE`, ..."""


@dataclass(frozen=True, slots=True)
class ExperimentEnded:
    """Event: the experiment was stopped, or has failed."""


Event: TypeAlias = (
    AlgorithmRequested
    | AlgorithmStarted
    | BudgetChanged
    | CandidatesRecorded
    | ExperimentEnded
    | ExperimentMoved
    | ExplorationCreated
    | MetricReported
    | StateChanged
    | TrialEnded
    | TrialLost
    | TrialScheduled
    | TrialsRequested
)
