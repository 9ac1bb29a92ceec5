"""What facts about trials do to the state of an experiment; a part of `fold`."""

from collections.abc import Callable
from typing import Any

from svc_manager.domain import events as e
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import LostAttempt, Trial, TrialState
from svc_manager.domain.values import MetricType, OptimizeMode


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
    trial.lost_attempts += (
        LostAttempt(event.attempt, trial.runner_id, event.reason, event.command_failed),
    )
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
    if event.checkpoint is not None:
        x.checkpoints[event.checkpoint.directory] = event.checkpoint
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


# `Any`: each function takes the type of event that it stands beside.
TRIAL_FOLDS: dict[type, Callable[[Experiment, Any, int], None]] = {
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
}
"""By the type of the fact."""
