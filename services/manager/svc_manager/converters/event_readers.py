"""Converters from messages of the log to events."""

from collections.abc import Callable
from typing import Any

from nni_proto.experiment.v1 import config_pb2, event_pb2
from svc_manager.converters.reports import (
    algorithm_diverged_from,
    algorithm_failed_from,
    algorithm_started_from,
    checkpoint_from,
    parameters_generated_from,
    report_from,
)
from svc_manager.converters.scalars import budget_of, metric_from, mode_of, settings_of, to_ms
from svc_manager.domain import events
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.trial import TrialState
from svc_manager.domain.values import ParameterSource

_TRIAL_STATES = {int(member): member for member in TrialState}
_SOURCES = {int(member): member for member in ParameterSource}


def created_event(
    experiment_id: str,
    config: config_pb2.ExperimentConfig,
    *,
    environment_sha256: str,
    interpreter: str,
    nni_version: str,
    resolved_mode: int,
) -> events.ExperimentCreated:
    """Return the first event of an experiment with this configuration."""
    return events.ExperimentCreated(
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


def _created(message: event_pb2.ExperimentCreated) -> events.ExperimentCreated:
    return created_event(
        message.experiment_id,
        message.config,
        environment_sha256=message.environment_sha256,
        interpreter=message.interpreter,
        nni_version=message.nni_version,
        resolved_mode=message.optimize_mode,
    )


def _state_changed(message: event_pb2.ExperimentStateChanged) -> events.ExperimentStateChanged:
    return events.ExperimentStateChanged(
        ExperimentState[message.from_state] if message.from_state else None,
        ExperimentState[message.to_state],
        message.reason,
        to_ms(message.execution_time),
    )


def _scheduled(message: event_pb2.TrialScheduled) -> events.TrialScheduled:
    return events.TrialScheduled(
        message.trial_id,
        message.sequence_id,
        message.parameter_id,
        message.parameters.SerializeToString(),
        _SOURCES[message.source],
        message.pool,
    )


def _trial_started(message: event_pb2.TrialStarted) -> events.TrialStarted:
    return events.TrialStarted(
        message.trial_id,
        message.attempt,
        message.claim_id,
        message.runner_id,
        to_ms(message.started_at),
        tuple(message.gpu_indices),
        message.report_sequence,
    )


def _metric_reported(message: event_pb2.MetricReported) -> events.MetricReported:
    return events.MetricReported(
        message.trial_id,
        message.attempt,
        message.parameter_id,
        metric_from(message.metric),
        message.report_sequence,
    )


def _trial_ended(message: event_pb2.TrialEnded) -> events.TrialEnded:
    return events.TrialEnded(
        message.trial_id,
        message.attempt,
        _TRIAL_STATES[message.state],
        message.exit_code if message.HasField("exit_code") else None,
        to_ms(message.ended_at),
        message.reason,
        message.report_sequence,
        checkpoint_from(message.checkpoint) if message.HasField("checkpoint") else None,
    )


def _waits(message: event_pb2.TrialWaits) -> events.TrialWaits:
    return events.TrialWaits(
        message.trial_id,
        message.attempt,
        message.claim_id,
        message.runner_id,
        message.reason,
        message.report_sequence,
    )


def _deferred(message: event_pb2.ReportDeferred) -> events.ReportDeferred | None:
    report = report_from(message.runner_id, message.report)
    return None if report is None else events.ReportDeferred(report)


def _budget(message: event_pb2.BudgetChanged) -> events.BudgetChanged:
    return events.BudgetChanged(
        message.trial_concurrency if message.HasField("trial_concurrency") else None,
        message.max_trial_number if message.HasField("max_trial_number") else None,
        (
            to_ms(message.max_experiment_duration)
            if message.HasField("max_experiment_duration")
            else None
        ),
    )


# `Any`: each function takes the message of its key.
READERS: dict[str, Callable[[Any], events.Event | None]] = {
    "experiment_created": _created,
    "algorithm_requested": lambda m: events.AlgorithmRequested(
        m.generation, m.resumed, m.directory
    ),
    "algorithm_started": algorithm_started_from,
    "trials_requested": lambda m: events.TrialsRequested(m.request_id, tuple(m.parameter_ids)),
    "parameters_generated": parameters_generated_from,
    "trial_scheduled": _scheduled,
    "trial_started": _trial_started,
    "metric_reported": _metric_reported,
    "trial_stop_requested": lambda m: events.TrialStopRequested(
        m.trial_id, _TRIAL_STATES[m.end_state], m.reason
    ),
    "trial_lost": lambda m: events.TrialLost(m.trial_id, m.attempt, m.reason, m.command_failed),
    "trial_ended": _trial_ended,
    "trial_unknown": lambda m: events.TrialUnknown(m.trial_id, m.attempt),
    "trial_waits": _waits,
    "report_deferred": _deferred,
    "report_ignored": lambda m: events.ReportIgnored(
        m.trial_id, m.attempt, m.report_sequence, m.reason
    ),
    "algorithm_failed": algorithm_failed_from,
    "algorithm_diverged": algorithm_diverged_from,
    "budget_changed": _budget,
    "search_space_changed": lambda m: events.SearchSpaceChanged(m.search_space.SerializeToString()),
    "data_imported": lambda m: events.DataImported(m.import_id, m.data.SerializeToString()),
    "custom_trial_added": lambda m: events.CustomTrialAdded(
        m.request_id, m.parameter_id, m.parameters.SerializeToString()
    ),
    "listener_opened": lambda m: events.ListenerOpened(m.port, m.url_prefix),
    "listener_closed": lambda _m: events.ListenerClosed(),
    "experiment_state_changed": _state_changed,
    "experiment_ended": lambda m: events.ExperimentEnded(ExperimentState[m.state], m.reason),
    "experiment_moved": lambda m: events.ExperimentMoved(m.directory, m.trial_code_directory),
    "request_recorded": lambda m: events.RequestRecorded(
        m.request_id, m.user, m.method, m.fingerprint
    ),
}
"""Converters by the field name of the event kind."""
