"""Facts to messages of the log and back.

An event that a newer version wrote and this one does not know is passed over, so that old programs
can open new logs for reading.
"""

from collections.abc import Callable, Iterable
from typing import Any

from nni_proto.experiment.v1 import config_pb2, event_pb2
from svc_manager.converters.reports import (
    algorithm_diverged_from,
    algorithm_failed_from,
    algorithm_started_from,
    parameters_generated_from,
    report_from,
    write_report,
)
from svc_manager.converters.scalars import (
    budget_of,
    metric_from,
    mode_of,
    set_ms,
    settings_of,
    to_ms,
    write_metric,
)
from svc_manager.domain import events as e
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.trial import TrialState
from svc_manager.domain.values import ParameterSource

_TRIAL_STATES = {int(member): member for member in TrialState}
_SOURCES = {int(member): member for member in ParameterSource}


def batch_to_bytes(
    events: Iterable[e.Event],
    *,
    epoch: int,
    append_id: str,
    inbox_sequence: int,
    time_ms: int,
) -> bytes:
    """Return one append of the log."""
    batch = event_pb2.EventBatch(epoch=epoch, append_id=append_id, inbox_sequence=inbox_sequence)
    set_ms(batch.time, time_ms)
    for event in events:
        write_event(batch.events.add(), event)
    return batch.SerializeToString()


def batch_from_bytes(payload: bytes) -> event_pb2.EventBatch:
    """Parse one append of the log.

    Raises:
        google.protobuf.message.DecodeError: it is no batch.
    """
    batch = event_pb2.EventBatch()
    batch.ParseFromString(payload)
    return batch


def write_event(message: event_pb2.Event, event: e.Event) -> None:
    """Write a fact into an empty message."""
    _WRITERS[type(event)](message, event)


def event_from(message: event_pb2.Event) -> e.Event | None:
    """Return the fact of a message; None if this version does not know it."""
    kind = message.WhichOneof("kind")
    if kind is None:
        return None
    return _READERS[kind](getattr(message, kind))


# --- creation and state ---------------------------------------------------------------------


def _write_created(message: event_pb2.Event, event: e.ExperimentCreated) -> None:
    created = message.experiment_created
    created.experiment_id = event.experiment_id
    created.config.MergeFromString(event.config)
    created.environment_sha256 = event.environment_sha256
    created.interpreter = event.interpreter
    created.nni_version = event.nni_version
    created.optimize_mode = event.optimize_mode or 0  # type: ignore[assignment] # the contract's numbers


def created_event(
    experiment_id: str,
    config: config_pb2.ExperimentConfig,
    *,
    environment_sha256: str,
    interpreter: str,
    nni_version: str,
    resolved_mode: int,
) -> e.ExperimentCreated:
    """Return the first fact of an experiment with this configuration."""
    return e.ExperimentCreated(
        experiment_id,
        config.SerializeToString(),
        settings_of(config, resolved_mode),
        budget_of(config),
        f"{config.experiment_working_directory.rstrip('/')}/{experiment_id}",
        environment_sha256,
        interpreter,
        nni_version,
        mode_of(config, resolved_mode),
    )


def _created(message: event_pb2.ExperimentCreated) -> e.ExperimentCreated:
    return created_event(
        message.experiment_id,
        message.config,
        environment_sha256=message.environment_sha256,
        interpreter=message.interpreter,
        nni_version=message.nni_version,
        resolved_mode=message.optimize_mode,
    )


def _write_requested(message: event_pb2.Event, event: e.AlgorithmRequested) -> None:
    message.algorithm_requested.generation = event.generation
    message.algorithm_requested.resumed = event.resumed
    message.algorithm_requested.directory = event.directory


def _write_algorithm_started(message: event_pb2.Event, event: e.AlgorithmStarted) -> None:
    started = message.algorithm_started
    started.generation = event.generation
    started.lookahead = event.lookahead
    started.assesses = event.assesses
    for key, value in event.provenance.items():
        started.provenance[key] = value


def _write_state_changed(message: event_pb2.Event, event: e.ExperimentStateChanged) -> None:
    changed = message.experiment_state_changed
    changed.from_state = event.from_state.name if event.from_state else ""
    changed.to_state = event.to_state.name
    changed.reason = event.reason
    set_ms(changed.execution_time, event.execution_time_ms)


def _state_changed(message: event_pb2.ExperimentStateChanged) -> e.ExperimentStateChanged:
    return e.ExperimentStateChanged(
        ExperimentState[message.from_state] if message.from_state else None,
        ExperimentState[message.to_state],
        message.reason,
        to_ms(message.execution_time),
    )


def _write_ended(message: event_pb2.Event, event: e.ExperimentEnded) -> None:
    message.experiment_ended.state = event.state.name
    message.experiment_ended.reason = event.reason


def _write_moved(message: event_pb2.Event, event: e.ExperimentMoved) -> None:
    message.experiment_moved.directory = event.directory


def _write_listener_opened(message: event_pb2.Event, event: e.ListenerOpened) -> None:
    message.listener_opened.port = event.port
    message.listener_opened.url_prefix = event.url_prefix


def _write_listener_closed(message: event_pb2.Event, _event: e.ListenerClosed) -> None:
    message.listener_closed.SetInParent()


# --- parameters and trials ------------------------------------------------------------------


def _write_trials_requested(message: event_pb2.Event, event: e.TrialsRequested) -> None:
    message.trials_requested.request_id = event.request_id
    message.trials_requested.parameter_ids.extend(event.parameter_ids)


def _write_generated(message: event_pb2.Event, event: e.ParametersGenerated) -> None:
    generated = message.parameters_generated
    generated.request_id = event.request_id
    generated.exhausted = event.exhausted
    generated.deferred = event.deferred
    generated.based_on.sequence, generated.based_on.index = event.based_on
    for item in event.parameters:
        added = generated.parameters.add()
        added.parameter_id = item.parameter_id
        added.parameters.MergeFromString(item.parameters)
        added.provenance.MergeFromString(item.provenance)


def _write_scheduled(message: event_pb2.Event, event: e.TrialScheduled) -> None:
    scheduled = message.trial_scheduled
    scheduled.trial_id = event.trial_id
    scheduled.sequence_id = event.sequence_id
    scheduled.parameter_id = event.parameter_id
    scheduled.parameters.MergeFromString(event.parameters)
    scheduled.source = event.source.value  # type: ignore[assignment] # the contract's numbers
    scheduled.pool = event.pool


def _scheduled(message: event_pb2.TrialScheduled) -> e.TrialScheduled:
    return e.TrialScheduled(
        message.trial_id,
        message.sequence_id,
        message.parameter_id,
        message.parameters.SerializeToString(),
        _SOURCES[message.source],
        message.pool,
    )


def _write_trial_started(message: event_pb2.Event, event: e.TrialStarted) -> None:
    started = message.trial_started
    started.trial_id = event.trial_id
    started.attempt = event.attempt
    started.claim_id = event.claim_id
    started.runner_id = event.runner_id
    set_ms(started.started_at, event.started_at_ms)
    started.gpu_indices.extend(event.gpu_indices)
    started.report_sequence = event.report_sequence


def _trial_started(message: event_pb2.TrialStarted) -> e.TrialStarted:
    return e.TrialStarted(
        message.trial_id,
        message.attempt,
        message.claim_id,
        message.runner_id,
        to_ms(message.started_at),
        tuple(message.gpu_indices),
        message.report_sequence,
    )


def _write_metric_reported(message: event_pb2.Event, event: e.MetricReported) -> None:
    reported = message.metric_reported
    reported.trial_id = event.trial_id
    reported.attempt = event.attempt
    reported.parameter_id = event.parameter_id
    write_metric(reported.metric, event.metric)
    reported.report_sequence = event.report_sequence


def _metric_reported(message: event_pb2.MetricReported) -> e.MetricReported:
    return e.MetricReported(
        message.trial_id,
        message.attempt,
        message.parameter_id,
        metric_from(message.metric),
        message.report_sequence,
    )


def _write_stop_requested(message: event_pb2.Event, event: e.TrialStopRequested) -> None:
    requested = message.trial_stop_requested
    requested.trial_id = event.trial_id
    requested.end_state = event.end_state.value  # type: ignore[assignment] # the contract's numbers
    requested.reason = event.reason


def _write_lost(message: event_pb2.Event, event: e.TrialLost) -> None:
    lost = message.trial_lost
    lost.trial_id = event.trial_id
    lost.attempt = event.attempt
    lost.reason = event.reason
    lost.command_failed = event.command_failed


def _write_trial_ended(message: event_pb2.Event, event: e.TrialEnded) -> None:
    ended = message.trial_ended
    ended.trial_id = event.trial_id
    ended.attempt = event.attempt
    ended.state = event.state.value  # type: ignore[assignment] # the contract's numbers
    if event.exit_code is not None:
        ended.exit_code = event.exit_code
    set_ms(ended.ended_at, event.ended_at_ms)
    ended.reason = event.reason
    ended.report_sequence = event.report_sequence


def _trial_ended(message: event_pb2.TrialEnded) -> e.TrialEnded:
    return e.TrialEnded(
        message.trial_id,
        message.attempt,
        _TRIAL_STATES[message.state],
        message.exit_code if message.HasField("exit_code") else None,
        to_ms(message.ended_at),
        message.reason,
        message.report_sequence,
    )


def _write_unknown(message: event_pb2.Event, event: e.TrialUnknown) -> None:
    message.trial_unknown.trial_id = event.trial_id
    message.trial_unknown.attempt = event.attempt


def _write_waits(message: event_pb2.Event, event: e.TrialWaits) -> None:
    waits = message.trial_waits
    waits.trial_id = event.trial_id
    waits.attempt = event.attempt
    waits.claim_id = event.claim_id
    waits.runner_id = event.runner_id
    waits.reason = event.reason
    waits.report_sequence = event.report_sequence


def _waits(message: event_pb2.TrialWaits) -> e.TrialWaits:
    return e.TrialWaits(
        message.trial_id,
        message.attempt,
        message.claim_id,
        message.runner_id,
        message.reason,
        message.report_sequence,
    )


def _write_deferred(message: event_pb2.Event, event: e.ReportDeferred) -> None:
    message.report_deferred.runner_id = event.report.runner_id
    write_report(message.report_deferred.report, event.report)


def _deferred(message: event_pb2.ReportDeferred) -> e.ReportDeferred | None:
    report = report_from(message.runner_id, message.report)
    return None if report is None else e.ReportDeferred(report)


def _write_ignored(message: event_pb2.Event, event: e.ReportIgnored) -> None:
    ignored = message.report_ignored
    ignored.trial_id = event.trial_id
    ignored.attempt = event.attempt
    ignored.report_sequence = event.report_sequence
    ignored.reason = event.reason


# --- algorithm, updates, requests -----------------------------------------------------------


def _write_algorithm_failed(message: event_pb2.Event, event: e.AlgorithmFailed) -> None:
    failed = message.algorithm_failed
    failed.call = event.call
    failed.traceback = event.traceback
    failed.position.sequence, failed.position.index = event.position
    failed.skipped = event.skipped


def _write_diverged(message: event_pb2.Event, event: e.AlgorithmDiverged) -> None:
    message.algorithm_diverged.parameter_id = event.parameter_id
    message.algorithm_diverged.recorded.MergeFromString(event.recorded)
    message.algorithm_diverged.replayed.MergeFromString(event.replayed)


def _write_budget(message: event_pb2.Event, event: e.BudgetChanged) -> None:
    changed = message.budget_changed
    changed.SetInParent()
    if event.trial_concurrency is not None:
        changed.trial_concurrency = event.trial_concurrency
    if event.max_trial_number is not None:
        changed.max_trial_number = event.max_trial_number
    if event.max_duration_ms is not None:
        set_ms(changed.max_experiment_duration, event.max_duration_ms)


def _budget(message: event_pb2.BudgetChanged) -> e.BudgetChanged:
    return e.BudgetChanged(
        message.trial_concurrency if message.HasField("trial_concurrency") else None,
        message.max_trial_number if message.HasField("max_trial_number") else None,
        (
            to_ms(message.max_experiment_duration)
            if message.HasField("max_experiment_duration")
            else None
        ),
    )


def _write_space(message: event_pb2.Event, event: e.SearchSpaceChanged) -> None:
    message.search_space_changed.search_space.MergeFromString(event.search_space)
    message.search_space_changed.SetInParent()


def _write_imported(message: event_pb2.Event, event: e.DataImported) -> None:
    message.data_imported.data.MergeFromString(event.data)
    message.data_imported.import_id = event.import_id


def _write_custom(message: event_pb2.Event, event: e.CustomTrialAdded) -> None:
    added = message.custom_trial_added
    added.request_id = event.request_id
    added.parameter_id = event.parameter_id
    added.parameters.MergeFromString(event.parameters)


def _write_recorded(message: event_pb2.Event, event: e.RequestRecorded) -> None:
    recorded = message.request_recorded
    recorded.request_id = event.request_id
    recorded.user = event.user
    recorded.method = event.method


# `Any`: each function takes the type that stands beside it.
_WRITERS: dict[type, Callable[[event_pb2.Event, Any], None]] = {
    e.ExperimentCreated: _write_created,
    e.AlgorithmRequested: _write_requested,
    e.AlgorithmStarted: _write_algorithm_started,
    e.TrialsRequested: _write_trials_requested,
    e.ParametersGenerated: _write_generated,
    e.TrialScheduled: _write_scheduled,
    e.TrialStarted: _write_trial_started,
    e.MetricReported: _write_metric_reported,
    e.TrialStopRequested: _write_stop_requested,
    e.TrialLost: _write_lost,
    e.TrialEnded: _write_trial_ended,
    e.TrialUnknown: _write_unknown,
    e.TrialWaits: _write_waits,
    e.ReportDeferred: _write_deferred,
    e.ReportIgnored: _write_ignored,
    e.AlgorithmFailed: _write_algorithm_failed,
    e.AlgorithmDiverged: _write_diverged,
    e.BudgetChanged: _write_budget,
    e.SearchSpaceChanged: _write_space,
    e.DataImported: _write_imported,
    e.CustomTrialAdded: _write_custom,
    e.ListenerOpened: _write_listener_opened,
    e.ListenerClosed: _write_listener_closed,
    e.ExperimentStateChanged: _write_state_changed,
    e.ExperimentEnded: _write_ended,
    e.ExperimentMoved: _write_moved,
    e.RequestRecorded: _write_recorded,
}

_READERS: dict[str, Callable[[Any], e.Event | None]] = {
    "experiment_created": _created,
    "algorithm_requested": lambda m: e.AlgorithmRequested(m.generation, m.resumed, m.directory),
    "algorithm_started": algorithm_started_from,
    "trials_requested": lambda m: e.TrialsRequested(m.request_id, tuple(m.parameter_ids)),
    "parameters_generated": parameters_generated_from,
    "trial_scheduled": _scheduled,
    "trial_started": _trial_started,
    "metric_reported": _metric_reported,
    "trial_stop_requested": lambda m: e.TrialStopRequested(
        m.trial_id, _TRIAL_STATES[m.end_state], m.reason
    ),
    "trial_lost": lambda m: e.TrialLost(m.trial_id, m.attempt, m.reason, m.command_failed),
    "trial_ended": _trial_ended,
    "trial_unknown": lambda m: e.TrialUnknown(m.trial_id, m.attempt),
    "trial_waits": _waits,
    "report_deferred": _deferred,
    "report_ignored": lambda m: e.ReportIgnored(m.trial_id, m.attempt, m.report_sequence, m.reason),
    "algorithm_failed": algorithm_failed_from,
    "algorithm_diverged": algorithm_diverged_from,
    "budget_changed": _budget,
    "search_space_changed": lambda m: e.SearchSpaceChanged(m.search_space.SerializeToString()),
    "data_imported": lambda m: e.DataImported(m.import_id, m.data.SerializeToString()),
    "custom_trial_added": lambda m: e.CustomTrialAdded(
        m.request_id, m.parameter_id, m.parameters.SerializeToString()
    ),
    "listener_opened": lambda m: e.ListenerOpened(m.port, m.url_prefix),
    "listener_closed": lambda _m: e.ListenerClosed(),
    "experiment_state_changed": _state_changed,
    "experiment_ended": lambda m: e.ExperimentEnded(ExperimentState[m.state], m.reason),
    "experiment_moved": lambda m: e.ExperimentMoved(m.directory),
    "request_recorded": lambda m: e.RequestRecorded(m.request_id, m.user, m.method),
}
