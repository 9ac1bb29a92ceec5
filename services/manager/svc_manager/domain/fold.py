"""The fold of a log: facts in, state out.

Folding the same facts at the same times gives the same state, whoever does it.
"""

from collections.abc import Callable
from typing import Any, Final

from svc_manager.domain import events as e
from svc_manager.domain.experiment import TRANSITIONS, Budget, ExperimentState
from svc_manager.domain.fold_trials import TRIAL_FOLDS
from svc_manager.domain.requests import noted
from svc_manager.domain.state import Algorithm, Experiment

ERRORS_KEPT: Final = 100
"""Texts of errors that the state keeps; the log has them all."""


def fold(experiment: Experiment, event: e.Event, time_ms: int) -> None:
    """Take in the next fact.

    Args:
        experiment: the state; it is changed.
        event: what happened.
        time_ms: when it was written, ms since 1970.

    Raises:
        ValueError: the log tells of a change that the tables do not have.
    """
    _FOLDS[type(event)](experiment, event, time_ms)


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
    # An answer may bring what an earlier one has promised: advisors serve the oldest id first.
    kept = given & algorithm.late_ids
    algorithm.late_ids -= kept
    algorithm.late_count = max(0, algorithm.late_count - len(kept))
    asked = algorithm.asked.pop(event.request_id, None)
    if asked is None:
        if event.exhausted:  # what was promised will not come either
            algorithm.late_ids.clear()
            algorithm.late_count = 0
    else:
        missing = asked - given
        algorithm.late_count += min(event.deferred, len(missing))
        if event.deferred:
            algorithm.late_ids |= missing
        # Fewer than asked for, and no word that the rest comes later: there are no more.
        algorithm.exhausted |= len(missing) > event.deferred
    algorithm.exhausted |= event.exhausted
    x.released_checkpoints.update(event.released_checkpoints)
    for item in event.parameters:
        algorithm.queue[item.parameter_id] = item


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
    told = bool(x.errors) and x.errors[-1].endswith(event.reason)
    if x.state is ExperimentState.ERROR and not told:
        _add_error(x, event.reason)


def _ended(x: Experiment, _event: e.ExperimentEnded, _time_ms: int) -> None:
    x.custom_queue.clear()


def _moved(x: Experiment, event: e.ExperimentMoved, _time_ms: int) -> None:
    x.directory = event.directory
    x.code_directory = event.code_directory or x.code_directory


def _recorded(x: Experiment, event: e.RequestRecorded, _time_ms: int) -> None:
    x.requests[event.request_id] = noted(event.method, event.fingerprint)


# `Any`: each function takes the type of event that it stands beside.
_FOLDS: dict[type, Callable[[Experiment, Any, int], None]] = {
    e.ExperimentCreated: _created,
    e.AlgorithmRequested: _algorithm_requested,
    e.AlgorithmStarted: _algorithm_started,
    e.TrialsRequested: _trials_requested,
    e.ParametersGenerated: _parameters_generated,
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
    **TRIAL_FOLDS,
}
