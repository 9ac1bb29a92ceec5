"""Lines to and from a strategy's process: events of its candidates, and its outputs."""

from dataclasses import dataclass
from typing import TypeAlias

from svc_nas.domain.reports import Candidate


@dataclass(frozen=True, slots=True)
class Added:
    """Line to the process: a candidate of an earlier process is in the log."""

    key: str
    parameters: object


@dataclass(frozen=True, slots=True)
class Scheduled:
    """Line to the process: a trial was created for a candidate."""

    key: str
    trial_id: str


@dataclass(frozen=True, slots=True)
class Lost:
    """Line to the process: an attempt of a candidate was lost."""

    key: str


@dataclass(frozen=True, slots=True)
class Measured:
    """Line to the process: a candidate's trial has reported a metric, intermediate or final."""

    key: str
    value: object
    is_final: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """Line to the process: the trial of a candidate has ended."""

    key: str
    succeeded: bool


@dataclass(frozen=True, slots=True)
class Closed:
    """Line to the process: the experiment takes no more candidates, for a reason."""

    reason: str
    is_final: bool
    """Whether no trial runs any more."""


@dataclass(frozen=True, slots=True)
class Opened:
    """Line to the process: the experiment takes candidates again."""


@dataclass(frozen=True, slots=True)
class Resized:
    """Line to the process: the number of concurrent trials was changed."""

    concurrency: int


StrategyInput: TypeAlias = Added | Scheduled | Lost | Measured | Ended | Closed | Opened | Resized


@dataclass(frozen=True, slots=True)
class Ready:
    """Line from the process: the document was opened, and the strategy starts."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """Line from the process: the strategy submits a candidate."""

    candidate: Candidate


@dataclass(frozen=True, slots=True)
class StopWanted:
    """Line from the process: the strategy wants a trial to be stopped."""

    trial_id: str


@dataclass(frozen=True, slots=True)
class Exhausted:
    """Line from the process: the strategy has no more candidates."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Line from the process: document or strategy raised an error."""

    reason: str


StrategyOutput: TypeAlias = Ready | Submitted | StopWanted | Exhausted | Failed
