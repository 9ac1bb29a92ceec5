"""Fold of the events about trials; a part of `fold`."""

import math
from dataclasses import replace
from sys import intern
from typing import assert_never

from svc_common.experiment_events.causes import LossCause, LossReason, WaitCause, WaitReason
from svc_manager.domain import events
from svc_manager.domain.checkpoints import TrialCheckpoint
from svc_manager.domain.failed_starts import start_failed, start_succeeded
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import LostAttempt, Trial, TrialState
from svc_manager.domain.values import Metric, MetricType, OptimizeMode, ParameterSource


def fold_trial(  # noqa: C901, PLR0912 - one case per event
    experiment: Experiment, event: events.TrialEvent, time_ms: int
) -> None:
    """Apply an event about a trial to its experiment's state in place; raise if not allowed.

    Args:
        experiment: the state; it is changed.
        event: the event.
        time_ms: time of its batch, ms since 1970.

    Raises:
        ValueError: the event is a transition that the tables do not allow.
    """
    match event:
        case events.MetricReported():
            _metric_reported(experiment, event)
        case events.TrialStarted():
            _trial_started(experiment, event)
        case events.TrialEnded():
            _trial_ended(experiment, event)
        case events.TrialScheduled():
            _trial_scheduled(experiment, event, time_ms)
        case events.TrialLost():
            _trial_lost(experiment, event, time_ms)
        case events.TrialRequeued():
            experiment.backing_off.pop(event.trial_id, None)
        case events.TrialWaits():
            _trial_waits(experiment, event)
        case events.TrialStopRequested():
            _stop_requested(experiment, event)
        case events.TrialCheckpointed():
            _trial_checkpointed(experiment, event)
        case events.ReportIgnored():
            _report_ignored(experiment, event)
        case events.ReportDeferred():
            _report_deferred(experiment, event, time_ms)
        case events.TrialUnknown():
            _trial_unknown(experiment, event)
        case _:
            assert_never(event)


def _trial_scheduled(experiment: Experiment, event: events.TrialScheduled, time_ms: int) -> None:
    suggested = experiment.algorithm.queue.pop(event.parameter_id, None)
    experiment.custom_queue.pop(event.parameter_id, None)
    trial = Trial(
        id=event.trial_id,
        sequence_id=event.sequence_id,
        parameter_id=event.parameter_id,
        parameters=event.parameters,
        provenance=suggested.provenance if suggested else b"",
        source=event.source,
        pool=intern(event.pool),
        created_at_ms=time_ms,
    )
    experiment.trials[trial.id] = trial
    experiment.live[trial.id] = trial
    experiment.counts[trial.state] += 1


def _change_trial(experiment: Experiment, trial: Trial, state: TrialState) -> None:
    if trial.state is not state or state is TrialState.WAITING:
        experiment.counts[trial.state] -= 1
        trial.change(state)
        experiment.counts[state] += 1
    if not trial.live:
        experiment.live.pop(trial.id, None)


def _count_report(experiment: Experiment, trial: Trial, sequence: int) -> None:
    trial.report_sequence = sequence
    if experiment.deferred:
        key = (trial.id, trial.attempt, trial.claim_id)
        waiting = experiment.deferred.get(key)
        if waiting is not None:
            waiting.pop(sequence, None)
            if not waiting:
                del experiment.deferred[key]
                experiment.deferred_since_ms.pop(key, None)


def _forget_deferred(experiment: Experiment, trial: Trial) -> None:
    if experiment.deferred:
        for key in [key for key in experiment.deferred if key[0] == trial.id]:
            del experiment.deferred[key]
            experiment.deferred_since_ms.pop(key, None)


def _trial_started(experiment: Experiment, event: events.TrialStarted) -> None:
    trial = experiment.trials[event.trial_id]
    trial.claim_id = event.claim_id
    trial.runner_id = intern(event.runner_id)  # one string for all trials of an agent
    trial.started_at_ms = event.started_at_ms
    trial.gpu_indices = event.gpu_indices
    trial.wait = None
    start_succeeded(experiment)
    _change_trial(experiment, trial, TrialState.RUNNING)
    _count_report(experiment, trial, event.report_sequence)


def _metric_reported(experiment: Experiment, event: events.MetricReported) -> None:
    trial = experiment.trials[event.trial_id]
    if event.metric.type is MetricType.FINAL:
        trial.final = event.metric
        _update_best(experiment, trial)
        _count_unlearned(experiment, trial)
    else:
        trial.intermediate_count += 1
        trial.last_intermediate = event.metric
    if trial.state is TrialState.UNKNOWN:
        _change_trial(experiment, trial, TrialState.RUNNING)
    _count_report(experiment, trial, event.report_sequence)


def _update_best(experiment: Experiment, trial: Trial) -> None:
    assert trial.final is not None
    value = trial.final.number(experiment.settings.objective)
    if value is None or not math.isfinite(value) or not _is_feasible(experiment, trial.final):
        return
    best = experiment.best_value
    if best is None or (
        value > best if experiment.settings.optimize_mode is OptimizeMode.MAXIMIZE else value < best
    ):
        experiment.best_value = value
        experiment.best_trial_id = trial.id


def _is_feasible(experiment: Experiment, result: Metric) -> bool:
    """Return whether a result keeps every limit; without a finite number it keeps none."""
    for metric, limit in experiment.settings.limits:
        number = result.number(metric)
        if number is None or not math.isfinite(number) or number > limit:
            return False
    return True


def _count_unlearned(experiment: Experiment, trial: Trial) -> None:
    """Count a trial whose final result lacks a number for a metric that the algorithm learns."""
    assert trial.final is not None
    learned = experiment.algorithm.learned_metrics
    if not learned or trial.source is not ParameterSource.ALGORITHM or trial.final.large:
        return
    numbers = map(trial.final.number, learned)
    if any(number is None or math.isnan(number) for number in numbers):
        experiment.unlearned_count += 1
        experiment.unlearned_trial_id = experiment.unlearned_trial_id or trial.id


def _stop_requested(experiment: Experiment, event: events.TrialStopRequested) -> None:
    trial = experiment.trials[event.trial_id]
    trial.asked_end = event.end_state
    trial.stop = event.stop


def _trial_lost(experiment: Experiment, event: events.TrialLost, time_ms: int) -> None:
    trial = experiment.trials[event.trial_id]
    not_started = event.loss.cause is LossCause.NOT_STARTED
    lost = LostAttempt(event.attempt, trial.runner_id, event.loss)
    if event.command_failed:
        trial.failures += 1
    elif not_started:
        start_failed(experiment, trial.id, event.loss.detail, time_ms)
    elif trial.progressed:
        earlier_losses = trial.interruptions.resumed_losses
        trial.rare = replace(trial.interruptions, resumed_losses=earlier_losses + 1)
    elif trial.state is not TrialState.WAITING and event.loss.counts:
        trial.losses += 1
    earlier = trial.lost_attempts
    if not_started and earlier and earlier[-1].loss.cause is LossCause.NOT_STARTED:
        earlier = earlier[:-1]  # of a row of failed starts the last one says enough
    trial.lost_attempts = (*earlier, lost)
    _forget_deferred(experiment, trial)
    _change_trial(experiment, trial, TrialState.WAITING)
    trial.attempt = event.attempt + 1
    if trial.rare is not None:
        trial.rare = replace(trial.rare, resumed_step=trial.rare.reached_step)
    trial.claim_id = ""
    trial.runner_id = ""
    trial.report_sequence = -1
    trial.gpu_indices = ()
    trial.wait = _wait_after(trial, event.loss) if not_started else None
    trial.intermediate_count = 0
    trial.last_intermediate = None


def _wait_after(trial: Trial, loss: LossReason) -> WaitReason:
    """Return a failed start's wait, ENVIRONMENT, with its detail and the trial's failure count."""
    failures = trial.interruptions.failed_starts
    return WaitReason(WaitCause.ENVIRONMENT, detail=loss.detail, failure_count=failures)


def _trial_ended(experiment: Experiment, event: events.TrialEnded) -> None:
    trial = experiment.trials[event.trial_id]
    _count_report(experiment, trial, event.report_sequence)
    _forget_deferred(experiment, trial)
    trial.exit_code = event.exit_code
    trial.ended_at_ms = event.ended_at_ms
    trial.end = event.end
    experiment.backing_off.pop(trial.id, None)
    if event.checkpoint is not None:
        experiment.checkpoints[event.checkpoint.directory] = event.checkpoint
    if trial.checkpoint is not None:
        _supersede(experiment, trial.checkpoint)
    _change_trial(experiment, trial, event.state)


def _trial_checkpointed(experiment: Experiment, event: events.TrialCheckpointed) -> None:
    trial = experiment.trials[event.trial_id]
    if trial.checkpoint is not None:
        _supersede(experiment, trial.checkpoint)
    trial.checkpoint = event.checkpoint
    step, reached = event.checkpoint.step, trial.interruptions.reached_step
    reached = step if reached is None else max(step, reached)
    trial.rare = replace(trial.interruptions, reached_step=reached)
    experiment.superseded_checkpoints.discard(event.checkpoint.sha256)  # the same content again
    _count_report(experiment, trial, event.report_sequence)


def _supersede(experiment: Experiment, checkpoint: TrialCheckpoint) -> None:
    """Add a checkpoint's hash, if it has one, to those whose archives may be deleted."""
    if checkpoint.sha256:
        experiment.superseded_checkpoints.add(checkpoint.sha256)


def _trial_unknown(experiment: Experiment, event: events.TrialUnknown) -> None:
    _change_trial(experiment, experiment.trials[event.trial_id], TrialState.UNKNOWN)


def _trial_waits(experiment: Experiment, event: events.TrialWaits) -> None:
    trial = experiment.trials[event.trial_id]
    trial.claim_id = event.claim_id
    trial.runner_id = intern(event.runner_id)
    trial.wait = event.wait
    _count_report(experiment, trial, event.report_sequence)


def _report_deferred(experiment: Experiment, event: events.ReportDeferred, time_ms: int) -> None:
    claim = event.report.claim
    experiment.deferred.setdefault(claim, {})[event.report.sequence] = event.report
    experiment.deferred_since_ms.setdefault(claim, time_ms)


def _report_ignored(experiment: Experiment, event: events.ReportIgnored) -> None:
    _count_report(experiment, experiment.trials[event.trial_id], event.report_sequence)
