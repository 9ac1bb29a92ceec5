"""Events of an experiment's log that matter to its algorithm."""

from dataclasses import dataclass
from typing import TypeAlias

from svc_common.experiment_events.events import ExperimentMoved, TrialsRequested
from svc_dispatcher.domain.values import AlgorithmChoice, ExperimentSetup, Payload, Position

__all__ = [
    "AlgorithmDiverged",
    "AlgorithmEvent",
    "AlgorithmFailed",
    "AlgorithmRequested",
    "AlgorithmStarted",
    "CustomTrialAdded",
    "DataImported",
    "Event",
    "ExperimentCreated",
    "ExperimentEnded",
    "ExperimentEvent",
    "ExperimentMoved",
    "MetricReported",
    "ParametersGenerated",
    "SearchSpaceChanged",
    "TrialEnded",
    "TrialEvent",
    "TrialScheduled",
    "TrialStarted",
    "TrialStopRequested",
    "TrialsRequested",
]


@dataclass(frozen=True, slots=True)
class ExperimentCreated:
    """First event of a log: the experiment was created, with its algorithms and search space."""

    setup: ExperimentSetup


@dataclass(frozen=True, slots=True)
class AlgorithmRequested:
    """Event: the algorithm is to be constructed: at creation, resume or hand-over to a tuner."""

    generation: int
    """1 at creation, one more at each resume and each hand-over."""
    directory: str = ""
    """Folder of the experiment at this time; empty: unchanged since creation."""
    service: str = ""
    """Service that answers requests for parameters; empty: the dispatcher."""
    tuner: AlgorithmChoice | None = None
    """Tuner that takes over while trials may be live; None: the tuner is unchanged."""


@dataclass(frozen=True, slots=True)
class AlgorithmStarted:
    """Event: the manager has recorded that the algorithm is ready."""

    generation: int
    provenance: tuple[tuple[str, str], ...] = ()
    """Versions and machine at that time."""


@dataclass(frozen=True, slots=True)
class ParametersGenerated:
    """Event: the manager has accepted generated parameters for a request; more may follow."""

    request_id: str
    """Empty for deferred parameters, which come after the answer to their request."""
    parameters: tuple[tuple[int, Payload], ...]
    exhausted: bool = False
    deferred: int = 0
    """Number of parameters of the request that come later."""
    based_on: Position | None = None
    """Last event that the algorithm had handled."""
    proposers: tuple[tuple[int, str], ...] = ()
    """Label of the tuner by id of the parameters, where several tuners share the trials."""
    labels: frozenset[str] = frozenset()
    """Labels under which the results of these parameters are compared."""


@dataclass(frozen=True, slots=True)
class TrialScheduled:
    """Event: a trial was created with these parameters."""

    trial_id: str
    parameter_id: int
    parameters: Payload
    customized: bool
    """The user added the trial."""


@dataclass(frozen=True, slots=True)
class TrialStarted:
    """Event: a trial has started, with its id and the start time by the agent's clock."""

    trial_id: str
    started_at_ms: int
    """By the clock of the agent."""


@dataclass(frozen=True, slots=True)
class MetricReported:
    """Event: a trial has reported an intermediate or final metric."""

    trial_id: str
    attempt: int
    parameter_id: int
    final: bool
    sequence: int
    value: Payload


@dataclass(frozen=True, slots=True)
class TrialStopRequested:
    """Event: a stop of a running trial was requested by the user or the algorithm."""

    trial_id: str
    early: bool = False
    """Requested by the algorithm, not by the user."""


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """Event: a trial has ended in this state."""

    trial_id: str
    state: str
    """SUCCEEDED, FAILED, EARLY_STOPPED, USER_CANCELED or SYS_CANCELED: the last one also if
    the infrastructure has failed the trial, which tells nothing about its parameters."""
    ended_at_ms: int = 0
    """By the clock of the agent, or of the manager where that ended the trial; 0: unknown."""


@dataclass(frozen=True, slots=True)
class AlgorithmFailed:
    """Event: the manager has recorded an exception in a callback of the algorithm."""

    call: str
    position: Position
    """Event that the callback was called for."""


@dataclass(frozen=True, slots=True)
class AlgorithmDiverged:
    """Event: the manager has recorded that a replay gave other parameters."""

    parameter_id: int


@dataclass(frozen=True, slots=True)
class SearchSpaceChanged:
    """Event: the user has changed the search space."""

    search_space: Payload


@dataclass(frozen=True, slots=True)
class DataImported:
    """Event: the user has imported results measured elsewhere."""

    data: Payload


@dataclass(frozen=True, slots=True)
class CustomTrialAdded:
    """Event: the user has added a trial with chosen parameters."""

    parameter_id: int
    parameters: Payload


@dataclass(frozen=True, slots=True)
class ExperimentEnded:
    """Event: the algorithm is not needed any more, unless the experiment is resumed."""


TrialEvent: TypeAlias = (
    TrialsRequested
    | ParametersGenerated
    | TrialScheduled
    | TrialStarted
    | MetricReported
    | TrialStopRequested
    | TrialEnded
)
AlgorithmEvent: TypeAlias = (
    AlgorithmRequested | AlgorithmStarted | AlgorithmFailed | AlgorithmDiverged
)
ExperimentEvent: TypeAlias = (
    ExperimentCreated
    | SearchSpaceChanged
    | DataImported
    | CustomTrialAdded
    | ExperimentEnded
    | ExperimentMoved
)
Event: TypeAlias = TrialEvent | AlgorithmEvent | ExperimentEvent
