"""Fold of a log: events in, state out.

Folding the same events at the same times always gives the same state.
"""

from collections.abc import Callable
from typing import Any, Final

from svc_manager.domain import events
from svc_manager.domain.experiment import TRANSITIONS, Budget, ExperimentState
from svc_manager.domain.fold_trials import TRIAL_FOLDS
from svc_manager.domain.requests import request_record
from svc_manager.domain.state import Algorithm, Experiment

ERRORS_KEPT: Final = 100
"""Error texts that the state keeps; the log has them all."""


def fold(experiment: Experiment, event: events.Event, time_ms: int) -> None:
    """Apply the next event to the state.

    Args:
        experiment: the state; it is changed.
        event: the event.
        time_ms: time of its batch, ms since 1970.

    Raises:
        ValueError: the event is a transition that the tables do not allow.
    """
    _FOLDS[type(event)](experiment, event, time_ms)


def _created(experiment: Experiment, event: events.ExperimentCreated, time_ms: int) -> None:
    experiment.id = event.experiment_id
    experiment.created = True
    experiment.config = event.config
    experiment.settings = event.settings
    experiment.budget = event.budget
    experiment.directory = event.directory
    experiment.environment_sha256 = event.environment_sha256
    experiment.interpreter = event.interpreter
    experiment.optimize_mode = event.optimize_mode
    experiment.created_at_ms = experiment.changed_at_ms = time_ms


def _algorithm_requested(
    experiment: Experiment, event: events.AlgorithmRequested, _time_ms: int
) -> None:
    # Requests, promises and unused suggestions belong to one generation of the algorithm.
    experiment.algorithm = Algorithm(
        generation=event.generation, request_count=experiment.algorithm.request_count
    )


def _algorithm_started(
    experiment: Experiment, event: events.AlgorithmStarted, _time_ms: int
) -> None:
    experiment.algorithm.started = True
    experiment.algorithm.lookahead = event.lookahead
    experiment.algorithm.assesses = event.assesses
    experiment.algorithm.provenance = dict(event.provenance)


def _trials_requested(experiment: Experiment, event: events.TrialsRequested, _time_ms: int) -> None:
    experiment.algorithm.request_count += 1
    experiment.algorithm.asked[event.request_id] = set(event.parameter_ids)
    experiment.next_parameter_id = max(experiment.next_parameter_id, max(event.parameter_ids) + 1)


def _parameters_generated(
    experiment: Experiment, event: events.ParametersGenerated, _time_ms: int
) -> None:
    algorithm = experiment.algorithm
    given = {item.parameter_id for item in event.parameters}
    # An answer may hold ids that an earlier answer promised: advisors serve the oldest id first.
    kept = given & algorithm.late_ids
    algorithm.late_ids -= kept
    algorithm.late_count = max(0, algorithm.late_count - len(kept))
    asked = algorithm.asked.pop(event.request_id, None)
    if asked is None:
        if event.exhausted:  # the promised ids will not come either
            algorithm.late_ids.clear()
            algorithm.late_count = 0
    else:
        missing = asked - given
        algorithm.late_count += min(event.deferred, len(missing))
        if event.deferred:
            algorithm.late_ids |= missing
        # Fewer than requested, and the rest is not deferred: the algorithm has no more.
        algorithm.exhausted |= len(missing) > event.deferred
    algorithm.exhausted |= event.exhausted
    experiment.released_checkpoints.update(event.released_checkpoints)
    for item in event.parameters:
        algorithm.queue[item.parameter_id] = item


def _add_error(experiment: Experiment, text: str) -> None:
    experiment.errors.append(text)
    del experiment.errors[:-ERRORS_KEPT]


def _algorithm_failed(experiment: Experiment, event: events.AlgorithmFailed, _time_ms: int) -> None:
    experiment.failures.add((event.call, event.position))
    last_line = event.traceback.strip().rsplit("\n", 1)[-1]
    _add_error(experiment, f"{event.call}: {last_line}")


def _algorithm_diverged(
    experiment: Experiment, _event: events.AlgorithmDiverged, _time_ms: int
) -> None:
    experiment.repeatable = False


def _budget_changed(experiment: Experiment, event: events.BudgetChanged, _time_ms: int) -> None:
    old = experiment.budget
    experiment.budget = Budget(
        old.trial_concurrency if event.trial_concurrency is None else event.trial_concurrency,
        old.max_trial_number if event.max_trial_number is None else event.max_trial_number,
        old.max_duration_ms
        if event.max_experiment_duration_ms is None
        else event.max_experiment_duration_ms,
    )
    experiment.revision += 1


def _space_changed(experiment: Experiment, event: events.SearchSpaceChanged, _time_ms: int) -> None:
    experiment.search_space = event.search_space
    experiment.algorithm.exhausted = False
    experiment.revision += 1


def _data_imported(experiment: Experiment, _event: events.DataImported, _time_ms: int) -> None:
    experiment.algorithm.exhausted = False


def _custom_added(experiment: Experiment, event: events.CustomTrialAdded, _time_ms: int) -> None:
    experiment.next_parameter_id = max(experiment.next_parameter_id, event.parameter_id + 1)
    experiment.custom_queue[event.parameter_id] = event.parameters
    if event.request_id:
        experiment.custom_ids[event.request_id] = event.parameter_id


def _listener_opened(experiment: Experiment, event: events.ListenerOpened, _time_ms: int) -> None:
    experiment.port = event.port
    experiment.url_prefix = event.url_prefix


def _listener_closed(experiment: Experiment, _event: events.ListenerClosed, _time_ms: int) -> None:
    experiment.port = 0


def _state_changed(
    experiment: Experiment, event: events.ExperimentStateChanged, time_ms: int
) -> None:
    if event.old_state is not None and event.new_state not in TRANSITIONS[experiment.state]:
        change = f"from {experiment.state.name} to {event.new_state.name}"
        raise ValueError(f"experiment {experiment.id} cannot go {change}")
    experiment.state = event.new_state
    experiment.execution_ms = event.execution_time_ms
    experiment.changed_at_ms = time_ms
    if experiment.state is ExperimentState.RUNNING:
        experiment.started_at_ms = experiment.started_at_ms or time_ms
    if experiment.state in {ExperimentState.DONE, ExperimentState.ERROR, ExperimentState.STOPPED}:
        experiment.ended_at_ms = experiment.ended_at_ms or time_ms
    elif experiment.state in {ExperimentState.RUNNING, ExperimentState.INITIALIZED}:
        experiment.ended_at_ms = 0
    known = bool(experiment.errors) and experiment.errors[-1].endswith(event.reason)
    if experiment.state is ExperimentState.ERROR and not known:
        _add_error(experiment, event.reason)


def _ended(experiment: Experiment, _event: events.ExperimentEnded, _time_ms: int) -> None:
    experiment.custom_queue.clear()


def _moved(experiment: Experiment, event: events.ExperimentMoved, _time_ms: int) -> None:
    experiment.directory = event.directory
    experiment.code_directory = event.trial_code_directory or experiment.code_directory


def _recorded(experiment: Experiment, event: events.RequestRecorded, _time_ms: int) -> None:
    experiment.requests[event.request_id] = request_record(event.method, event.fingerprint)


# `Any`: each function takes the type of its key.
_FOLDS: dict[type, Callable[[Experiment, Any, int], None]] = {
    events.ExperimentCreated: _created,
    events.AlgorithmRequested: _algorithm_requested,
    events.AlgorithmStarted: _algorithm_started,
    events.TrialsRequested: _trials_requested,
    events.ParametersGenerated: _parameters_generated,
    events.AlgorithmFailed: _algorithm_failed,
    events.AlgorithmDiverged: _algorithm_diverged,
    events.BudgetChanged: _budget_changed,
    events.SearchSpaceChanged: _space_changed,
    events.DataImported: _data_imported,
    events.CustomTrialAdded: _custom_added,
    events.ListenerOpened: _listener_opened,
    events.ListenerClosed: _listener_closed,
    events.ExperimentStateChanged: _state_changed,
    events.ExperimentEnded: _ended,
    events.ExperimentMoved: _moved,
    events.RequestRecorded: _recorded,
    **TRIAL_FOLDS,
}
