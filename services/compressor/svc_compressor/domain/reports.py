"""Reports of the compressor to the manager."""

from dataclasses import dataclass
from typing import TypeAlias

from nni.compression.job.steps import Step


@dataclass(frozen=True, slots=True)
class Started:
    """Report: the job is followed, and requests for parameters will be answered."""

    generation: int


@dataclass(frozen=True, slots=True)
class StepGenerated:
    """Report: next step under a parameter id, for a request; later steps answer its other ids."""

    request_id: str
    """Empty: an earlier answer has deferred these parameters."""
    parameter_id: int
    step: Step
    deferred: int = 0
    """Number of requested parameters that come with later steps."""


@dataclass(frozen=True, slots=True)
class Completed:
    """Report: the job has no more steps, to a request, or (empty) to deferred parameters."""

    request_id: str
    """Empty: an earlier answer has deferred parameters that will not come."""


@dataclass(frozen=True, slots=True)
class GaveUp:
    """Report: the job cannot continue."""

    generation: int
    reason: str


Report: TypeAlias = Started | StepGenerated | Completed | GaveUp
