"""The state of one experiment: the fold of its log.

`Experiment.fold` owns the state and changes it in place; nothing else may change it. Folding the
same events at the same times gives the same state, whoever does it.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from svc_manager.domain import events as e
from svc_manager.domain.experiment import (
    TICKING_STATES,
    TRANSITIONS,
    Budget,
    ExperimentState,
    Settings,
)
from svc_manager.domain.reports import Report
from svc_manager.domain.trial import Trial, TrialState
from svc_manager.domain.values import (
    EncodedValue,
    MetricType,
    OptimizeMode,
    Parameters,
    Position,
)

ERRORS_KEPT: Final = 100
"""Texts of errors that the state keeps; the log has them all."""


@dataclass(slots=True)
class Algorithm:
    """What is known of the algorithm in its present life."""

    generation: int = 0
    """0: never asked for."""
    started: bool = False
    lookahead: bool = False
    assesses: bool = False
    exhausted: bool = False
    """No more parameters will come until space or data change."""
    request_count: int = 0
    asked: dict[str, set[int]] = field(default_factory=dict)
    """Parameter ids of each request that has no answer yet."""
    late_ids: set[int] = field(default_factory=set)
    """Ids of answered requests that may still come."""
    late_count: int = 0
    """How many of ``late_ids`` were promised."""
    queue: dict[int, Parameters] = field(default_factory=dict)
    """What was suggested and is no trial yet, in order."""
    provenance: dict[str, str] = field(default_factory=dict)

    @property
    def outstanding(self) -> int:
        """How many sets of parameters are asked for or promised."""
        return sum(len(ids) for ids in self.asked.values()) + self.late_count


@dataclass(slots=True)
class Experiment:
    """One experiment as its log tells it."""

    id: str = ""
    state: ExperimentState = ExperimentState.INITIALIZED
    created: bool = False
    config: bytes = b""
    settings: Settings = field(default_factory=Settings)
    budget: Budget = field(default_factory=Budget)
    search_space: EncodedValue | None = None
    """Set once it was replaced; else it stands in ``config``."""
    directory: str = ""
    environment_sha256: str = ""
    interpreter: str = ""
    optimize_mode: OptimizeMode | None = None
    revision: int = 0
    created_at_ms: int = 0
    started_at_ms: int = 0
    """First time it was RUNNING; 0: never."""
    ended_at_ms: int = 0
    execution_ms: int = 0
    """Time that counted until ``changed_at_ms``."""
    changed_at_ms: int = 0
    """When its state changed last."""
    algorithm: Algorithm = field(default_factory=Algorithm)
    trials: dict[str, Trial] = field(default_factory=dict)
    """All trials, in order of creation."""
    live: dict[str, Trial] = field(default_factory=dict)
    """Those that are not over."""
    counts: Counter[TrialState] = field(default_factory=Counter)
    next_parameter_id: int = 0
    custom_queue: dict[int, EncodedValue] = field(default_factory=dict)
    """Parameters of users that are no trial yet."""
    custom_ids: dict[str, int] = field(default_factory=dict)
    """Parameter id by the request that added it."""
    deferred: dict[tuple[str, int, str], dict[int, Report]] = field(default_factory=dict)
    """Reports beyond a gap, by claim and sequence."""
    requests: dict[str, str] = field(default_factory=dict)
    """Method by id of each request that was carried out."""
    port: int = 0
    url_prefix: str = ""
    errors: list[str] = field(default_factory=list)
    failures: set[tuple[str, Position]] = field(default_factory=set)
    """Calls of the algorithm that are known to have failed."""
    repeatable: bool = True
    best_trial_id: str = ""
    best_value: float | None = None

    def execution_time_ms(self, now_ms: int) -> int:
        """Return the time spent against the longest duration."""
        if self.state in TICKING_STATES:
            return self.execution_ms + max(0, now_ms - self.changed_at_ms)
        return self.execution_ms

    def fold(self, event: e.Event, time_ms: int) -> None:
        """Take in the next fact.

        Args:
            event: what happened.
            time_ms: when it was written, ms since 1970.

        Raises:
            ValueError: the log tells of a change that the tables do not have.
        """
        _FOLDS[type(event)](self, event, time_ms)


def _created(x: Experiment, event: e.ExperimentCreated, time_ms: int) -> None:
    x.id = event.experiment_id
    x.created = True
    x.config = event.config
    x.settings = event.settings
    x.budget = event.budget
    x.directory = event.directory
    x.environment_sha256 = event.environment_sha256
    x.interpreter = event.interpreter
    x.optimize_mode = event.optimize_mode
    x.created_at_ms = x.changed_at_ms = time_ms


def _algorithm_requested(x: Experiment, event: e.AlgorithmRequested, _time_ms: int) -> None:
    # Requests, promises and unused suggestions die with the algorithm that they belong to.
    x.algorithm = Algorithm(generation=event.generation, request_count=x.algorithm.request_count)


def _algorithm_started(x: Experiment, event: e.AlgorithmStarted, _time_ms: int) -> None:
    x.algorithm.started = True
    x.algorithm.lookahead = event.lookahead
    x.algorithm.assesses = event.assesses
    x.algorithm.provenance = dict(event.provenance)


def _trials_requested(x: Experiment, event: e.TrialsRequested, _time_ms: int) -> None:
    x.algorithm.request_count += 1
    x.algorithm.asked[event.request_id] = set(event.parameter_ids)
    x.next_parameter_id = max(x.next_parameter_id, max(event.parameter_ids) + 1)


def _parameters_generated(x: Experiment, event: e.ParametersGenerated, _time_ms: int) -> None:
    algorithm = x.algorithm
    given = {item.parameter_id for item in event.parameters}
    asked = algorithm.asked.pop(event.request_id, None)
    if asked is None:
        algorithm.late_ids -= given
        algorithm.late_count = max(0, algorithm.late_count - len(given))
    else:
        missing = asked - given
        algorithm.late_count += min(event.deferred, len(missing))
        if event.deferred:
            algorithm.late_ids |= missing
        # Fewer than asked for, and no word that the rest comes later: there are no more.
        algorithm.exhausted |= len(missing) > event.deferred
    algorithm.exhausted |= event.exhausted
    for item in event.parameters:
        algorithm.queue[item.parameter_id] = item


def _trial_scheduled(x: Experiment, event: e.TrialScheduled, time_ms: int) -> None:
    suggested = x.algorithm.queue.pop(event.parameter_id, None)
    x.custom_queue.pop(event.parameter_id, None)
    trial = Trial(
        id=event.trial_id,
        sequence_id=event.sequence_id,
        parameter_id=event.parameter_id,
        parameters=event.parameters,
        provenance=suggested.provenance if suggested else b"",
        source=event.source,
        pool=event.pool,
        created_at_ms=time_ms,
    )
    x.trials[trial.id] = trial
    x.live[trial.id] = trial
    x.counts[trial.state] += 1


def _change_trial(x: Experiment, trial: Trial, state: TrialState) -> None:
    if trial.state is not state or state is TrialState.WAITING:
        x.counts[trial.state] -= 1
        trial.change(state)
        x.counts[state] += 1
    if not trial.live:
        x.live.pop(trial.id, None)


def _count_report(x: Experiment, trial: Trial, sequence: int) -> None:
    trial.report_sequence = sequence
    if x.deferred:
        key = (trial.id, trial.attempt, trial.claim_id)
        waiting = x.deferred.get(key)
        if waiting is not None:
            waiting.pop(sequence, None)
            if not waiting:
                del x.deferred[key]


def _forget_deferred(x: Experiment, trial: Trial) -> None:
    if x.deferred:
        for key in [key for key in x.deferred if key[0] == trial.id]:
            del x.deferred[key]


def _trial_started(x: Experiment, event: e.TrialStarted, _time_ms: int) -> None:
    trial = x.trials[event.trial_id]
    trial.claim_id = event.claim_id
    trial.runner_id = event.runner_id
    trial.started_at_ms = event.started_at_ms
    trial.gpu_indices = event.gpu_indices
    trial.reason = ""
    _change_trial(x, trial, TrialState.RUNNING)
    _count_report(x, trial, event.report_sequence)


def _metric_reported(x: Experiment, event: e.MetricReported, _time_ms: int) -> None:
    trial = x.trials[event.trial_id]
    if event.metric.type is MetricType.FINAL:
        trial.final = event.metric
        _compare(x, trial)
    else:
        trial.intermediate_count += 1
        trial.last_intermediate = event.metric
    if trial.state is TrialState.UNKNOWN:
        _change_trial(x, trial, TrialState.RUNNING)
    _count_report(x, trial, event.report_sequence)


def _compare(x: Experiment, trial: Trial) -> None:
    assert trial.final is not None
    value = trial.final.number(x.settings.objective)
    if value is None or value != value:  # noqa: PLR0124 - NaN is the only number unequal to itself
        return
    best = x.best_value
    if best is None or (
        value > best if x.settings.optimize_mode is OptimizeMode.MAXIMIZE else value < best
    ):
        x.best_value = value
        x.best_trial_id = trial.id


def _stop_requested(x: Experiment, event: e.TrialStopRequested, _time_ms: int) -> None:
    trial = x.trials[event.trial_id]
    trial.asked_end = event.end_state
    trial.stop_reason = event.reason


def _trial_lost(x: Experiment, event: e.TrialLost, _time_ms: int) -> None:
    trial = x.trials[event.trial_id]
    if event.command_failed:
        trial.failures += 1
    elif trial.state is not TrialState.WAITING:
        trial.losses += 1
    _forget_deferred(x, trial)
    _change_trial(x, trial, TrialState.WAITING)
    trial.attempt = event.attempt + 1
    trial.claim_id = ""
    trial.runner_id = ""
    trial.report_sequence = -1
    trial.gpu_indices = ()
    trial.reason = event.reason
    trial.intermediate_count = 0
    trial.last_intermediate = None


def _trial_ended(x: Experiment, event: e.TrialEnded, _time_ms: int) -> None:
    trial = x.trials[event.trial_id]
    _count_report(x, trial, event.report_sequence)
    _forget_deferred(x, trial)
    trial.exit_code = event.exit_code
    trial.ended_at_ms = event.ended_at_ms
    trial.reason = event.reason
    _change_trial(x, trial, event.state)


def _trial_unknown(x: Experiment, event: e.TrialUnknown, _time_ms: int) -> None:
    _change_trial(x, x.trials[event.trial_id], TrialState.UNKNOWN)


def _trial_waits(x: Experiment, event: e.TrialWaits, _time_ms: int) -> None:
    trial = x.trials[event.trial_id]
    trial.claim_id = event.claim_id
    trial.runner_id = event.runner_id
    trial.reason = event.reason
    _count_report(x, trial, event.report_sequence)


def _report_deferred(x: Experiment, event: e.ReportDeferred, _time_ms: int) -> None:
    x.deferred.setdefault(event.report.claim, {})[event.report.sequence] = event.report


def _report_ignored(x: Experiment, event: e.ReportIgnored, _time_ms: int) -> None:
    _count_report(x, x.trials[event.trial_id], event.report_sequence)


def _add_error(x: Experiment, text: str) -> None:
    x.errors.append(text)
    del x.errors[:-ERRORS_KEPT]


def _algorithm_failed(x: Experiment, event: e.AlgorithmFailed, _time_ms: int) -> None:
    x.failures.add((event.call, event.position))
    last_line = event.traceback.strip().rsplit("\n", 1)[-1]
    _add_error(x, f"{event.call}: {last_line}")


def _algorithm_diverged(x: Experiment, _event: e.AlgorithmDiverged, _time_ms: int) -> None:
    x.repeatable = False


def _budget_changed(x: Experiment, event: e.BudgetChanged, _time_ms: int) -> None:
    old = x.budget
    x.budget = Budget(
        old.trial_concurrency if event.trial_concurrency is None else event.trial_concurrency,
        old.max_trial_number if event.max_trial_number is None else event.max_trial_number,
        old.max_duration_ms if event.max_duration_ms is None else event.max_duration_ms,
    )
    x.revision += 1


def _space_changed(x: Experiment, event: e.SearchSpaceChanged, _time_ms: int) -> None:
    x.search_space = event.search_space
    x.algorithm.exhausted = False
    x.revision += 1


def _data_imported(x: Experiment, _event: e.DataImported, _time_ms: int) -> None:
    x.algorithm.exhausted = False


def _custom_added(x: Experiment, event: e.CustomTrialAdded, _time_ms: int) -> None:
    x.next_parameter_id = max(x.next_parameter_id, event.parameter_id + 1)
    x.custom_queue[event.parameter_id] = event.parameters
    if event.request_id:
        x.custom_ids[event.request_id] = event.parameter_id


def _listener_opened(x: Experiment, event: e.ListenerOpened, _time_ms: int) -> None:
    x.port = event.port
    x.url_prefix = event.url_prefix


def _listener_closed(x: Experiment, _event: e.ListenerClosed, _time_ms: int) -> None:
    x.port = 0


def _state_changed(x: Experiment, event: e.ExperimentStateChanged, time_ms: int) -> None:
    if event.from_state is not None and event.to_state not in TRANSITIONS[x.state]:
        raise ValueError(
            f"experiment {x.id} cannot go from {x.state.name} to {event.to_state.name}"
        )
    x.state = event.to_state
    x.execution_ms = event.execution_time_ms
    x.changed_at_ms = time_ms
    if x.state is ExperimentState.RUNNING:
        x.started_at_ms = x.started_at_ms or time_ms
    if x.state in {ExperimentState.DONE, ExperimentState.ERROR, ExperimentState.STOPPED}:
        x.ended_at_ms = x.ended_at_ms or time_ms
    elif x.state in {ExperimentState.RUNNING, ExperimentState.INITIALIZED}:
        x.ended_at_ms = 0
    if x.state is ExperimentState.ERROR:
        _add_error(x, event.reason)


def _ended(x: Experiment, _event: e.ExperimentEnded, _time_ms: int) -> None:
    x.custom_queue.clear()


def _moved(x: Experiment, event: e.ExperimentMoved, _time_ms: int) -> None:
    x.directory = event.directory


def _recorded(x: Experiment, event: e.RequestRecorded, _time_ms: int) -> None:
    x.requests[event.request_id] = event.method


# `Any`: each function takes the type of event that it stands beside.
_FOLDS: dict[type, Callable[[Experiment, Any, int], None]] = {
    e.ExperimentCreated: _created,
    e.AlgorithmRequested: _algorithm_requested,
    e.AlgorithmStarted: _algorithm_started,
    e.TrialsRequested: _trials_requested,
    e.ParametersGenerated: _parameters_generated,
    e.TrialScheduled: _trial_scheduled,
    e.TrialStarted: _trial_started,
    e.MetricReported: _metric_reported,
    e.TrialStopRequested: _stop_requested,
    e.TrialLost: _trial_lost,
    e.TrialEnded: _trial_ended,
    e.TrialUnknown: _trial_unknown,
    e.TrialWaits: _trial_waits,
    e.ReportDeferred: _report_deferred,
    e.ReportIgnored: _report_ignored,
    e.AlgorithmFailed: _algorithm_failed,
    e.AlgorithmDiverged: _algorithm_diverged,
    e.BudgetChanged: _budget_changed,
    e.SearchSpaceChanged: _space_changed,
    e.DataImported: _data_imported,
    e.CustomTrialAdded: _custom_added,
    e.ListenerOpened: _listener_opened,
    e.ListenerClosed: _listener_closed,
    e.ExperimentStateChanged: _state_changed,
    e.ExperimentEnded: _ended,
    e.ExperimentMoved: _moved,
    e.RequestRecorded: _recorded,
}
