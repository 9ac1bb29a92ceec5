"""Events of a job's log that decide its next step."""

from dataclasses import dataclass
from typing import TypeAlias

from svc_common.experiment_events.events import AlgorithmRequested, TrialsRequested

__all__ = [
    "AlgorithmRequested",
    "Event",
    "ExperimentEnded",
    "JobCreated",
    "ParametersGenerated",
    "TrialEnded",
    "TrialScheduled",
    "TrialsRequested",
]


@dataclass(frozen=True, slots=True)
class JobCreated:
    """Event: the experiment of a job was created."""

    job: object
    """Description of the job: decoded JSON."""


@dataclass(frozen=True, slots=True)
class ParametersGenerated:
    """Event: the manager has recorded an answer: request, parameter ids, whether no more come."""

    request_id: str
    """Empty: the answer holds parameters that an earlier answer had deferred."""
    parameter_ids: tuple[int, ...]
    exhausted: bool
    """No more parameters come."""


@dataclass(frozen=True, slots=True)
class TrialScheduled:
    """Event: a trial was created for a parameter id, which a step or a user's trial has."""

    trial_id: str
    parameter_id: int


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """Event: a trial has ended."""

    trial_id: str
    state: str
    """`SUCCEEDED`, `FAILED`, `USER_CANCELED`, ..."""


@dataclass(frozen=True, slots=True)
class ExperimentEnded:
    """Event: the experiment was stopped, or failed."""


Event: TypeAlias = (
    AlgorithmRequested
    | ExperimentEnded
    | JobCreated
    | ParametersGenerated
    | TrialEnded
    | TrialScheduled
    | TrialsRequested
)
