"""Fold of a log: events in, state out.

Folding the same events at the same times always gives the same state.
"""

from dataclasses import replace
from typing import Final, assert_never

from svc_manager.domain import events
from svc_manager.domain.experiment import TRANSITIONS, Budget, ExperimentState
from svc_manager.domain.fold_trials import fold_trial
from svc_manager.domain.remarks import Remarks
from svc_manager.domain.requests import CREATE_METHOD, request_record
from svc_manager.domain.state import Algorithm, Experiment

ERRORS_KEPT: Final = 100
"""Error texts that the state keeps; the log has them all."""


def fold(  # noqa: C901, PLR0912 - one case per event
    experiment: Experiment, event: events.Event, time_ms: int
) -> None:
    """Apply the next event of the log to an experiment's state, in place; raise if not allowed.

    Args:
        experiment: the state; it is changed.
        event: the event.
        time_ms: time of its batch, ms since 1970.

    Raises:
        ValueError: the event is a transition that the tables do not allow.
    """
    if time_ms > experiment.logged_at_ms:  # noqa: PLR1730 - `max` costs a call for each event
        experiment.logged_at_ms = time_ms
    if isinstance(event, events.TrialEvent):
        fold_trial(experiment, event, time_ms)
        return
    match event:
        case events.TrialsRequested():
            _trials_requested(experiment, event)
        case events.ParametersGenerated():
            _parameters_generated(experiment, event)
        case events.AlgorithmFailed():
            _algorithm_failed(experiment, event)
        case events.RequestRecorded():
            _recorded(experiment, event)
        case events.ExperimentStateChanged():
            _state_changed(experiment, event, time_ms)
        case events.ExperimentCreated():
            _created(experiment, event, time_ms)
        case events.AlgorithmRequested():
            _algorithm_requested(experiment, event)
        case events.AlgorithmStarted():
            _algorithm_started(experiment, event)
        case events.AlgorithmDiverged():
            _algorithm_diverged(experiment)
        case events.AlgorithmWaits():
            experiment.algorithm.wait_reason = event.reason
        case events.BudgetChanged():
            _budget_changed(experiment, event)
        case events.AgentLimitsChanged():
            _agent_limits_changed(experiment, event)
        case events.SearchSpaceChanged():
            _space_changed(experiment, event)
        case events.DataImported():
            _data_imported(experiment)
        case events.CustomTrialAdded():
            _custom_added(experiment, event)
        case events.ListenerOpened():
            _listener_opened(experiment, event)
        case events.ListenerClosed():
            _listener_closed(experiment)
        case events.ExperimentEnded():
            _ended(experiment)
        case events.ExperimentMoved():
            _moved(experiment, event)
        case events.RemarksChanged():
            _remarks_changed(experiment, event)
        case events.ExperimentTimeCounted():
            _time_counted(experiment, event, time_ms)
        case _:
            assert_never(event)


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
    experiment.created_at_ms = experiment.changed_at_ms = experiment.counted_at_ms = time_ms


def _algorithm_requested(experiment: Experiment, event: events.AlgorithmRequested) -> None:
    # Requests, promises and unused suggestions belong to one generation of the algorithm.
    experiment.algorithm = Algorithm(
        generation=event.generation, request_count=experiment.algorithm.request_count
    )
    if event.tuner is not None:
        experiment.tuner = event.tuner
        experiment.revision += 1


def _algorithm_started(experiment: Experiment, event: events.AlgorithmStarted) -> None:
    experiment.algorithm.started = True
    experiment.algorithm.wait_reason = ""
    experiment.algorithm.lookahead = event.lookahead
    experiment.algorithm.assesses = event.assesses
    experiment.algorithm.provenance = dict(event.provenance)
    experiment.algorithm.learned_metrics = event.learned_metrics


def _trials_requested(experiment: Experiment, event: events.TrialsRequested) -> None:
    experiment.algorithm.request_count += 1
    experiment.algorithm.asked[event.request_id] = set(event.parameter_ids)
    experiment.next_parameter_id = max(experiment.next_parameter_id, max(event.parameter_ids) + 1)


def _parameters_generated(experiment: Experiment, event: events.ParametersGenerated) -> None:
    algorithm = experiment.algorithm
    algorithm.wait_reason = ""
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


def _algorithm_failed(experiment: Experiment, event: events.AlgorithmFailed) -> None:
    experiment.failures.add((event.call, event.position))
    experiment.algorithm.wait_reason = ""
    last_line = event.traceback.strip().rsplit("\n", 1)[-1]
    _add_error(experiment, f"{event.call}: {last_line}")


def _algorithm_diverged(experiment: Experiment) -> None:
    experiment.repeatable = False
    experiment.algorithm.wait_reason = ""


def _budget_changed(experiment: Experiment, event: events.BudgetChanged) -> None:
    old = experiment.budget
    experiment.budget = Budget(
        old.trial_concurrency if event.trial_concurrency is None else event.trial_concurrency,
        old.max_trial_number if event.max_trial_number is None else event.max_trial_number,
        old.max_duration_ms
        if event.max_experiment_duration_ms is None
        else event.max_experiment_duration_ms,
        old.agents,
    )
    experiment.revision += 1


def _agent_limits_changed(experiment: Experiment, event: events.AgentLimitsChanged) -> None:
    budget = experiment.budget
    experiment.budget = replace(budget, agents=budget.agents.changed(event.limits))
    experiment.revision += 1


def _space_changed(experiment: Experiment, event: events.SearchSpaceChanged) -> None:
    experiment.search_space = event.search_space
    experiment.algorithm.exhausted = False
    experiment.revision += 1


def _data_imported(experiment: Experiment) -> None:
    experiment.algorithm.exhausted = False


def _custom_added(experiment: Experiment, event: events.CustomTrialAdded) -> None:
    experiment.next_parameter_id = max(experiment.next_parameter_id, event.parameter_id + 1)
    experiment.custom_queue[event.parameter_id] = event.parameters
    if event.request_id:
        experiment.custom_ids[event.request_id] = event.parameter_id


def _listener_opened(experiment: Experiment, event: events.ListenerOpened) -> None:
    experiment.port = event.port
    experiment.url_prefix = event.url_prefix


def _listener_closed(experiment: Experiment) -> None:
    experiment.port = 0


def _state_changed(
    experiment: Experiment, event: events.ExperimentStateChanged, time_ms: int
) -> None:
    if event.old_state is not None and event.new_state not in TRANSITIONS[experiment.state]:
        change = f"from {experiment.state.name} to {event.new_state.name}"
        raise ValueError(f"experiment {experiment.id} cannot go {change}")
    experiment.state = event.new_state
    experiment.execution_ms = event.execution_time_ms
    experiment.changed_at_ms = experiment.counted_at_ms = time_ms
    if experiment.state is ExperimentState.RUNNING:
        experiment.started_at_ms = experiment.started_at_ms or time_ms
    if experiment.state in {ExperimentState.DONE, ExperimentState.ERROR, ExperimentState.STOPPED}:
        experiment.ended_at_ms = experiment.ended_at_ms or time_ms
    elif experiment.state in {ExperimentState.RUNNING, ExperimentState.INITIALIZED}:
        experiment.ended_at_ms = 0
    error = event.cause.detail
    known = bool(experiment.errors) and experiment.errors[-1].endswith(error)
    if experiment.state is ExperimentState.ERROR and not known:
        _add_error(experiment, error)


def _time_counted(
    experiment: Experiment, event: events.ExperimentTimeCounted, time_ms: int
) -> None:
    experiment.execution_ms = event.execution_time_ms
    experiment.counted_at_ms = time_ms


def _ended(experiment: Experiment) -> None:
    experiment.custom_queue.clear()


def _moved(experiment: Experiment, event: events.ExperimentMoved) -> None:
    experiment.directory = event.directory
    experiment.code_directory = event.trial_code_directory or experiment.code_directory


def _remarks_changed(experiment: Experiment, event: events.RemarksChanged) -> None:
    remarks = Remarks(event.note, event.tags, event.starred)
    if remarks == Remarks():
        experiment.remarks.pop(event.trial_id, None)
    else:
        experiment.remarks[event.trial_id] = remarks


def _recorded(experiment: Experiment, event: events.RequestRecorded) -> None:
    experiment.requests[event.request_id] = request_record(event.method, event.fingerprint)
    if event.method == CREATE_METHOD and not experiment.creator:
        experiment.creator = event.user
