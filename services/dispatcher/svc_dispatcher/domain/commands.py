"""What a host is told; each command bears the position of the event it comes from.

A command is `urgent` if something waits for the answer; others may wait for company.
"""

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from svc_dispatcher.domain.values import ExperimentSetup, Payload, Position


@dataclass(frozen=True, slots=True)
class Initialize:
    """Build the algorithm and give it its search space; the first command."""

    urgent: ClassVar[bool] = True

    position: Position
    setup: ExperimentSetup
    search_space: Payload
    """The one in force, which may differ from the setup's after a resume."""
    seed: int


@dataclass(frozen=True, slots=True)
class Generate:
    """Make parameters for these ids."""

    urgent: ClassVar[bool] = True

    position: Position
    request_id: str
    parameter_ids: tuple[int, ...]
    replayed: bool = False
    """The log holds the answer, and `Recorded` follows: nothing is to be said."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The log holds these parameters, whatever the algorithm has made."""

    urgent: ClassVar[bool] = False

    position: Position
    parameters: tuple[tuple[int, Payload], ...]


@dataclass(frozen=True, slots=True)
class TellMetric:
    """A trial has reported."""

    position: Position
    trial_id: str
    attempt: int
    parameter_id: int
    final: bool
    sequence: int
    value: Payload
    customized: bool

    @property
    def urgent(self) -> bool:
        """Whether somebody waits for what comes of it: an assessor may stop the trial."""
        return not self.final


@dataclass(frozen=True, slots=True)
class TellEnd:
    """A trial has ended."""

    urgent: ClassVar[bool] = False

    position: Position
    trial_id: str
    parameter_id: int
    state: str
    customized: bool


@dataclass(frozen=True, slots=True)
class ImportData:
    """Results that the user measured elsewhere."""

    urgent: ClassVar[bool] = False

    position: Position
    data: Payload


@dataclass(frozen=True, slots=True)
class ImportTrials:
    """Results of the experiment's earlier lives, as pairs (parameters, value)."""

    urgent: ClassVar[bool] = False

    position: Position
    samples: tuple[tuple[Payload, Payload], ...]


@dataclass(frozen=True, slots=True)
class UpdateSearchSpace:
    """The user has changed the search space."""

    urgent: ClassVar[bool] = False

    position: Position
    search_space: Payload


@dataclass(frozen=True, slots=True)
class AddCustomized:
    """The user has added a trial by hand."""

    urgent: ClassVar[bool] = False

    position: Position
    parameter_id: int
    parameters: Payload


Command: TypeAlias = (
    Initialize
    | Generate
    | Recorded
    | TellMetric
    | TellEnd
    | ImportData
    | ImportTrials
    | UpdateSearchSpace
    | AddCustomized
)
