"""State of one experiment, folded from its log.

Owned and changed in place by `svc_manager.domain.fold` only.
"""

from collections import Counter
from dataclasses import dataclass, field

from svc_manager.domain.checkpoints import SavedCheckpoint
from svc_manager.domain.experiment import (
    TICKING_STATES,
    Budget,
    ExperimentSettings,
    ExperimentState,
)
from svc_manager.domain.remarks import Remarks
from svc_manager.domain.reports import Report
from svc_manager.domain.trial import Trial, TrialState
from svc_manager.domain.values import (
    EncodedValue,
    OptimizeMode,
    Parameters,
    Position,
)


@dataclass(slots=True)
class FailedStarts:
    """Count of failed starts since the last good one, with the time of the next probe."""

    count: int = 0
    steps: int = 0
    """Doublings of the interval between probes."""
    probe_at_ms: int = 0
    """Time of the next probe, if the experiment holds, ms since 1970."""
    detail: str = ""
    """Message of the last failure."""


@dataclass(slots=True)
class Algorithm:
    """State of the algorithm: generation, capabilities, open requests and queued parameters."""

    generation: int = 0
    """0: never requested."""
    started: bool = False
    lookahead: bool = False
    assesses: bool = False
    learned_metrics: tuple[str, ...] = ()
    """Metrics whose numbers it learns from; empty: it gets the results as they are."""
    exhausted: bool = False
    """No more parameters will come until the space changes or data are imported."""
    request_count: int = 0
    asked: dict[str, set[int]] = field(default_factory=dict)
    """Parameter ids of each unanswered request."""
    late_ids: set[int] = field(default_factory=set)
    """Ids of answered requests that may still come."""
    late_count: int = 0
    """Number of ``late_ids`` that were promised."""
    queue: dict[int, Parameters] = field(default_factory=dict)
    """Suggestions without a trial, in order."""
    provenance: dict[str, str] = field(default_factory=dict)
    wait_reason: str = ""
    """Why a report of the algorithm is delayed; empty: none is known to be."""

    @property
    def outstanding(self) -> int:
        """Number of parameter sets that are requested or promised."""
        return sum(len(ids) for ids in self.asked.values()) + self.late_count


@dataclass(slots=True)
class Experiment:
    """State of one experiment, folded from its log: configuration, trials, algorithm, requests."""

    id: str = ""
    state: ExperimentState = ExperimentState.INITIALIZED
    created: bool = False
    config: bytes = b""
    settings: ExperimentSettings = field(default_factory=ExperimentSettings)
    budget: Budget = field(default_factory=Budget)
    search_space: EncodedValue | None = None
    """Set once it was replaced; otherwise part of ``config``."""
    tuner: EncodedValue | None = None
    """Set once another tuner took over; otherwise part of ``config``."""
    directory: str = ""
    code_directory: str = ""
    """Of the trials, set once it moved; otherwise part of ``config``."""
    environment_sha256: str = ""
    interpreter: str = ""
    optimize_mode: OptimizeMode | None = None
    revision: int = 0
    created_at_ms: int = 0
    started_at_ms: int = 0
    """First time it was RUNNING; 0: never."""
    ended_at_ms: int = 0
    execution_ms: int = 0
    """Time that counted until ``counted_at_ms``."""
    changed_at_ms: int = 0
    """Time of the last change of state."""
    counted_at_ms: int = 0
    """Time at which ``execution_ms`` was counted; 0: at the last change of state."""
    logged_at_ms: int = 0
    """Latest time of an event; later ones are not earlier."""
    algorithm: Algorithm = field(default_factory=Algorithm)
    trials: dict[str, Trial] = field(default_factory=dict)
    """All trials, in order of creation."""
    live: dict[str, Trial] = field(default_factory=dict)
    """Trials that have not ended."""
    counts: Counter[TrialState] = field(default_factory=Counter)
    failed_starts: FailedStarts = field(default_factory=FailedStarts)
    backing_off: dict[str, int] = field(default_factory=dict)
    """Live trials whose next attempt has no task yet, because the last start failed: earliest time
    of the task, ms since 1970, by trial id."""
    next_parameter_id: int = 0
    custom_queue: dict[int, EncodedValue] = field(default_factory=dict)
    """Parameters of users without a trial."""
    custom_ids: dict[str, int] = field(default_factory=dict)
    """Parameter id by the request that added it."""
    deferred: dict[tuple[str, int, str], dict[int, Report]] = field(default_factory=dict)
    """Reports beyond a gap, by claim and sequence."""
    deferred_since_ms: dict[tuple[str, int, str], int] = field(default_factory=dict)
    """Time at which the first report beyond the present gap came, by claim."""
    checkpoints: dict[str, SavedCheckpoint] = field(default_factory=dict)
    """Saved checkpoints by folder; only where checkpoints travel."""
    released_checkpoints: set[str] = field(default_factory=set)
    """Folders that the algorithm will not name again."""
    superseded_checkpoints: set[str] = field(default_factory=set)
    """Hashes of trials' checkpoints that no attempt will go on from."""
    remarks: dict[str, Remarks] = field(default_factory=dict)
    """Remarks of users by trial id; empty id: on the experiment. Empty remarks are left out."""
    requests: dict[str, str] = field(default_factory=dict)
    """Records of the requests that were carried out, by request id; see
    `requests.request_record`."""
    creator: str = ""
    """Name of the caller that created the experiment; empty: it is not known."""
    port: int = 0
    url_prefix: str = ""
    errors: list[str] = field(default_factory=list)
    failures: set[tuple[str, Position]] = field(default_factory=set)
    """Known failed calls of the algorithm."""
    unlearned_count: int = 0
    """Number of final results without a number for each metric that the algorithm learns from."""
    unlearned_trial_id: str = ""
    """Trial of the first such result."""
    repeatable: bool = True
    best_trial_id: str = ""
    best_value: float | None = None

    def execution_time_ms(self, now_ms: int) -> int:
        """Return the time that counts against the maximum duration, up to now, in ms."""
        if self.state in TICKING_STATES:
            counted_at_ms = self.counted_at_ms or self.changed_at_ms
            return self.execution_ms + max(0, now_ms - counted_at_ms)
        return self.execution_ms
