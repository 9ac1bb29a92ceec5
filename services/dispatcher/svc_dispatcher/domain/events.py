"""The facts of an experiment's log that matter to its algorithm."""

from dataclasses import dataclass
from typing import TypeAlias

from svc_dispatcher.domain.values import ExperimentSetup, Payload, Position


@dataclass(frozen=True, slots=True)
class ExperimentCreated:
    """The first event of a log."""

    setup: ExperimentSetup


@dataclass(frozen=True, slots=True)
class AlgorithmRequested:
    """The algorithm is to be built, or built anew after a resume."""

    generation: int
    """1 at creation, one more at each resume."""
    directory: str = ""
    """The experiment's folder at this time; empty if it is where it was created."""


@dataclass(frozen=True, slots=True)
class AlgorithmStarted:
    """The manager knows that the algorithm answers."""

    generation: int
    provenance: tuple[tuple[str, str], ...] = ()
    """Versions and machine at that time."""


@dataclass(frozen=True, slots=True)
class TrialsRequested:
    """Parameters are wanted."""

    request_id: str
    parameter_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ParametersGenerated:
    """What the algorithm answered, or the manager took as its answer."""

    request_id: str
    """Empty for parameters that came later than their request was answered."""
    parameters: tuple[tuple[int, Payload], ...]
    exhausted: bool = False
    deferred: int = 0
    """How many of the request come later."""
    based_on: Position | None = None
    """The last event that the algorithm had seen."""


@dataclass(frozen=True, slots=True)
class TrialScheduled:
    """A trial has got parameters."""

    trial_id: str
    parameter_id: int
    parameters: Payload
    customized: bool
    """The user added it by hand."""


@dataclass(frozen=True, slots=True)
class MetricReported:
    """A trial has reported."""

    trial_id: str
    attempt: int
    parameter_id: int
    final: bool
    sequence: int
    value: Payload


@dataclass(frozen=True, slots=True)
class TrialStopRequested:
    """A trial is being stopped."""

    trial_id: str
    early: bool = False
    """The algorithm wanted it, not the user."""


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """A trial has ended."""

    trial_id: str
    state: str
    """SUCCEEDED, FAILED, EARLY_STOPPED, USER_CANCELED or SYS_CANCELED."""


@dataclass(frozen=True, slots=True)
class AlgorithmFailed:
    """The manager knows of an exception in a callback."""

    call: str
    position: Position
    """The event that the callback was given."""


@dataclass(frozen=True, slots=True)
class AlgorithmDiverged:
    """The manager knows that replay gave another configuration."""

    parameter_id: int


@dataclass(frozen=True, slots=True)
class SearchSpaceChanged:
    """The user has changed the search space."""

    search_space: Payload


@dataclass(frozen=True, slots=True)
class DataImported:
    """The user has imported results measured elsewhere."""

    data: Payload


@dataclass(frozen=True, slots=True)
class CustomTrialAdded:
    """The user has added a trial by hand."""

    parameter_id: int
    parameters: Payload


@dataclass(frozen=True, slots=True)
class ExperimentEnded:
    """No more is asked of the algorithm, unless the experiment is resumed."""


@dataclass(frozen=True, slots=True)
class ExperimentMoved:
    """The experiment lies elsewhere now; empty: as it was."""

    directory: str
    trial_code_directory: str


Event: TypeAlias = (
    ExperimentCreated
    | AlgorithmRequested
    | AlgorithmStarted
    | TrialsRequested
    | ParametersGenerated
    | TrialScheduled
    | MetricReported
    | TrialStopRequested
    | TrialEnded
    | AlgorithmFailed
    | AlgorithmDiverged
    | SearchSpaceChanged
    | DataImported
    | CustomTrialAdded
    | ExperimentEnded
    | ExperimentMoved
)
