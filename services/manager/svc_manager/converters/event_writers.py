"""Converters from events to messages of the log."""

from collections.abc import Callable
from typing import Any

from nni_proto.experiment.v1 import event_pb2
from svc_manager.converters.reports import write_checkpoint, write_report
from svc_manager.converters.scalars import set_ms, write_metric
from svc_manager.domain import events


def _write_created(message: event_pb2.Event, event: events.ExperimentCreated) -> None:
    created = message.experiment_created
    created.experiment_id = event.experiment_id
    created.config.MergeFromString(event.config)
    created.environment_sha256 = event.environment_sha256
    created.interpreter = event.interpreter
    created.nni_version = event.nni_version
    created.optimize_mode = event.optimize_mode or 0  # type: ignore[assignment] # the contract's numbers


def _write_requested(message: event_pb2.Event, event: events.AlgorithmRequested) -> None:
    message.algorithm_requested.generation = event.generation
    message.algorithm_requested.resumed = event.resumed
    message.algorithm_requested.directory = event.directory


def _write_algorithm_started(message: event_pb2.Event, event: events.AlgorithmStarted) -> None:
    started = message.algorithm_started
    started.generation = event.generation
    started.lookahead = event.lookahead
    started.assesses = event.assesses
    for key, value in event.provenance.items():
        started.provenance[key] = value


def _write_state_changed(message: event_pb2.Event, event: events.ExperimentStateChanged) -> None:
    changed = message.experiment_state_changed
    changed.from_state = event.from_state.name if event.from_state else ""
    changed.to_state = event.to_state.name
    changed.reason = event.reason
    set_ms(changed.execution_time, event.execution_time_ms)


def _write_ended(message: event_pb2.Event, event: events.ExperimentEnded) -> None:
    message.experiment_ended.state = event.state.name
    message.experiment_ended.reason = event.reason


def _write_moved(message: event_pb2.Event, event: events.ExperimentMoved) -> None:
    message.experiment_moved.directory = event.directory
    message.experiment_moved.trial_code_directory = event.code_directory


def _write_listener_opened(message: event_pb2.Event, event: events.ListenerOpened) -> None:
    message.listener_opened.port = event.port
    message.listener_opened.url_prefix = event.url_prefix


def _write_listener_closed(message: event_pb2.Event, _event: events.ListenerClosed) -> None:
    message.listener_closed.SetInParent()


def _write_trials_requested(message: event_pb2.Event, event: events.TrialsRequested) -> None:
    message.trials_requested.request_id = event.request_id
    message.trials_requested.parameter_ids.extend(event.parameter_ids)


def _write_generated(message: event_pb2.Event, event: events.ParametersGenerated) -> None:
    generated = message.parameters_generated
    generated.request_id = event.request_id
    generated.exhausted = event.exhausted
    generated.deferred = event.deferred
    generated.based_on.sequence, generated.based_on.index = event.based_on
    generated.released_checkpoints.extend(event.released_checkpoints)
    for item in event.parameters:
        added = generated.parameters.add()
        added.parameter_id = item.parameter_id
        added.parameters.MergeFromString(item.parameters)
        added.provenance.MergeFromString(item.provenance)


def _write_scheduled(message: event_pb2.Event, event: events.TrialScheduled) -> None:
    scheduled = message.trial_scheduled
    scheduled.trial_id = event.trial_id
    scheduled.sequence_id = event.sequence_id
    scheduled.parameter_id = event.parameter_id
    scheduled.parameters.MergeFromString(event.parameters)
    scheduled.source = event.source.value  # type: ignore[assignment] # the contract's numbers
    scheduled.pool = event.pool


def _write_trial_started(message: event_pb2.Event, event: events.TrialStarted) -> None:
    started = message.trial_started
    started.trial_id = event.trial_id
    started.attempt = event.attempt
    started.claim_id = event.claim_id
    started.runner_id = event.runner_id
    set_ms(started.started_at, event.started_at_ms)
    started.gpu_indices.extend(event.gpu_indices)
    started.report_sequence = event.report_sequence


def _write_metric_reported(message: event_pb2.Event, event: events.MetricReported) -> None:
    reported = message.metric_reported
    reported.trial_id = event.trial_id
    reported.attempt = event.attempt
    reported.parameter_id = event.parameter_id
    write_metric(reported.metric, event.metric)
    reported.report_sequence = event.report_sequence


def _write_stop_requested(message: event_pb2.Event, event: events.TrialStopRequested) -> None:
    requested = message.trial_stop_requested
    requested.trial_id = event.trial_id
    requested.end_state = event.end_state.value  # type: ignore[assignment] # the contract's numbers
    requested.reason = event.reason


def _write_lost(message: event_pb2.Event, event: events.TrialLost) -> None:
    lost = message.trial_lost
    lost.trial_id = event.trial_id
    lost.attempt = event.attempt
    lost.reason = event.reason
    lost.command_failed = event.command_failed


def _write_trial_ended(message: event_pb2.Event, event: events.TrialEnded) -> None:
    ended = message.trial_ended
    ended.trial_id = event.trial_id
    ended.attempt = event.attempt
    ended.state = event.state.value  # type: ignore[assignment] # the contract's numbers
    if event.exit_code is not None:
        ended.exit_code = event.exit_code
    set_ms(ended.ended_at, event.ended_at_ms)
    ended.reason = event.reason
    ended.report_sequence = event.report_sequence
    if event.checkpoint is not None:
        write_checkpoint(ended.checkpoint, event.checkpoint)


def _write_unknown(message: event_pb2.Event, event: events.TrialUnknown) -> None:
    message.trial_unknown.trial_id = event.trial_id
    message.trial_unknown.attempt = event.attempt


def _write_waits(message: event_pb2.Event, event: events.TrialWaits) -> None:
    waits = message.trial_waits
    waits.trial_id = event.trial_id
    waits.attempt = event.attempt
    waits.claim_id = event.claim_id
    waits.runner_id = event.runner_id
    waits.reason = event.reason
    waits.report_sequence = event.report_sequence


def _write_deferred(message: event_pb2.Event, event: events.ReportDeferred) -> None:
    message.report_deferred.runner_id = event.report.runner_id
    write_report(message.report_deferred.report, event.report)


def _write_ignored(message: event_pb2.Event, event: events.ReportIgnored) -> None:
    ignored = message.report_ignored
    ignored.trial_id = event.trial_id
    ignored.attempt = event.attempt
    ignored.report_sequence = event.report_sequence
    ignored.reason = event.reason


def _write_algorithm_failed(message: event_pb2.Event, event: events.AlgorithmFailed) -> None:
    failed = message.algorithm_failed
    failed.call = event.call
    failed.traceback = event.traceback
    failed.position.sequence, failed.position.index = event.position
    failed.skipped = event.skipped


def _write_diverged(message: event_pb2.Event, event: events.AlgorithmDiverged) -> None:
    message.algorithm_diverged.parameter_id = event.parameter_id
    message.algorithm_diverged.recorded.MergeFromString(event.recorded)
    message.algorithm_diverged.replayed.MergeFromString(event.replayed)


def _write_budget(message: event_pb2.Event, event: events.BudgetChanged) -> None:
    changed = message.budget_changed
    changed.SetInParent()
    if event.trial_concurrency is not None:
        changed.trial_concurrency = event.trial_concurrency
    if event.max_trial_number is not None:
        changed.max_trial_number = event.max_trial_number
    if event.max_duration_ms is not None:
        set_ms(changed.max_experiment_duration, event.max_duration_ms)


def _write_space(message: event_pb2.Event, event: events.SearchSpaceChanged) -> None:
    message.search_space_changed.search_space.MergeFromString(event.search_space)
    message.search_space_changed.SetInParent()


def _write_imported(message: event_pb2.Event, event: events.DataImported) -> None:
    message.data_imported.data.MergeFromString(event.data)
    message.data_imported.import_id = event.import_id


def _write_custom(message: event_pb2.Event, event: events.CustomTrialAdded) -> None:
    added = message.custom_trial_added
    added.request_id = event.request_id
    added.parameter_id = event.parameter_id
    added.parameters.MergeFromString(event.parameters)


def _write_recorded(message: event_pb2.Event, event: events.RequestRecorded) -> None:
    recorded = message.request_recorded
    recorded.request_id = event.request_id
    recorded.user = event.user
    recorded.method = event.method
    recorded.fingerprint = event.fingerprint


# `Any`: each function takes the type of its key.
WRITERS: dict[type, Callable[[event_pb2.Event, Any], None]] = {
    events.ExperimentCreated: _write_created,
    events.AlgorithmRequested: _write_requested,
    events.AlgorithmStarted: _write_algorithm_started,
    events.TrialsRequested: _write_trials_requested,
    events.ParametersGenerated: _write_generated,
    events.TrialScheduled: _write_scheduled,
    events.TrialStarted: _write_trial_started,
    events.MetricReported: _write_metric_reported,
    events.TrialStopRequested: _write_stop_requested,
    events.TrialLost: _write_lost,
    events.TrialEnded: _write_trial_ended,
    events.TrialUnknown: _write_unknown,
    events.TrialWaits: _write_waits,
    events.ReportDeferred: _write_deferred,
    events.ReportIgnored: _write_ignored,
    events.AlgorithmFailed: _write_algorithm_failed,
    events.AlgorithmDiverged: _write_diverged,
    events.BudgetChanged: _write_budget,
    events.SearchSpaceChanged: _write_space,
    events.DataImported: _write_imported,
    events.CustomTrialAdded: _write_custom,
    events.ListenerOpened: _write_listener_opened,
    events.ListenerClosed: _write_listener_closed,
    events.ExperimentStateChanged: _write_state_changed,
    events.ExperimentEnded: _write_ended,
    events.ExperimentMoved: _write_moved,
    events.RequestRecorded: _write_recorded,
}
"""Converters by the type of the event."""
