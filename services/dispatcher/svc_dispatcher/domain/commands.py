"""Commands to an algorithm host; each has the position of the event that it comes from.

A command is `urgent` if its answer is awaited; other commands may be batched.
"""

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from svc_dispatcher.domain.values import ExperimentSetup, Payload, Position


@dataclass(frozen=True, slots=True)
class Initialize:
    """First command to a host: construct the algorithm with its search space and seed."""

    urgent: ClassVar[bool] = True

    position: Position
    setup: ExperimentSetup
    search_space: Payload
    """The current space, which may differ from the setup's after a resume."""
    seed: int
    log_end: Position | None = None
    """Last event of the log when the host was started: a checkpoint beyond is of another log.
    None: unknown."""
    running: tuple[Payload, ...] = ()
    """Parameters of the trials that an earlier tuner left running; none is to be tried again."""


@dataclass(frozen=True, slots=True)
class Generate:
    """Command to a host: generate parameters for these ids; send them unless the log has them."""

    urgent: ClassVar[bool] = True

    position: Position
    request_id: str
    parameter_ids: tuple[int, ...]
    replayed: bool = False
    """The log has the answer, and `Recorded` follows: the host sends no answer."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Command to a host: replace generated parameters by those recorded in the log."""

    urgent: ClassVar[bool] = False

    position: Position
    parameters: tuple[tuple[int, Payload], ...]


@dataclass(frozen=True, slots=True)
class TellMetric:
    """Command to a host: pass a trial's reported metric to the algorithm."""

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
        """True for an intermediate metric: an assessor may stop the trial because of it."""
        return not self.final


@dataclass(frozen=True, slots=True)
class TellEnd:
    """Command to a host: pass the end of a trial to the algorithm."""

    urgent: ClassVar[bool] = False

    position: Position
    trial_id: str
    parameter_id: int
    state: str
    customized: bool
    duration_s: float | None = None
    """From the start to the end of the last attempt; None: unknown."""


@dataclass(frozen=True, slots=True)
class ImportData:
    """Command to a host: import results that the user measured elsewhere."""

    urgent: ClassVar[bool] = False

    position: Position
    data: Payload


@dataclass(frozen=True, slots=True)
class ImportTrials:
    """Command to a host: import results of earlier generations as (parameters, value)."""

    urgent: ClassVar[bool] = False

    position: Position
    samples: tuple[tuple[Payload, Payload], ...]
    proposers: tuple[str, ...] = ()
    """Labels of the tuners that proposed them, where several share the trials; else none."""
    durations_s: tuple[float | None, ...] = ()
    """Run times, None for one that is unknown; empty: all are."""


@dataclass(frozen=True, slots=True)
class PastCurve:
    """Trial of an earlier generation: parameters, result if any, first intermediate results."""

    parameters: Payload
    final: tuple[Payload] | None
    """Its result; None if it was stopped early."""
    intermediates: tuple[Payload, ...]
    """The first ones of its last attempt, oldest first; at least one."""


@dataclass(frozen=True, slots=True)
class ImportCurves:
    """Command to a host: learn from intermediate results of earlier generations' trials."""

    urgent: ClassVar[bool] = False

    position: Position
    curves: tuple[PastCurve, ...]


@dataclass(frozen=True, slots=True)
class PastReport:
    """Intermediate result, or end, of a trial that was reported to an earlier host."""

    trial_id: str
    attempt: int = 0
    sequence: int = 0
    value: Payload = None
    end_state: str = ""
    """State in which the trial has ended; empty: an intermediate result."""


@dataclass(frozen=True, slots=True)
class ImportReports:
    """Command to a host: pass on reports of trials that its assessor knew before a hand-over."""

    urgent: ClassVar[bool] = False

    position: Position
    reports: tuple[PastReport, ...]
    """In the order of the log."""


@dataclass(frozen=True, slots=True)
class UpdateSearchSpace:
    """Command to a host: replace the search space."""

    urgent: ClassVar[bool] = False

    position: Position
    search_space: Payload


@dataclass(frozen=True, slots=True)
class AddCustomized:
    """Command to a host: add a trial whose parameters the user chose."""

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
    | ImportCurves
    | ImportReports
    | UpdateSearchSpace
    | AddCustomized
)
