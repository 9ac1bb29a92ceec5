"""Decisions on agents' reports of trials, and on silent agents.

The first claim of an attempt in the log wins; the other claimants get a drop order. Within a claim,
reports are handled in the order of their sequence, each once; a report beyond a gap is deferred.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from svc_common.experiment_events.causes import (
    EndCause,
    EndReason,
    IgnoreCause,
    LossCause,
    LossReason,
    StopCause,
    StopReason,
)
from svc_manager.domain import events, inputs
from svc_manager.domain.decision_round import Round
from svc_manager.domain.effects import PublishAgain, SendDrop, SendStop
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.failed_starts import holds
from svc_manager.domain.reports import (
    CheckpointSaved,
    ExitCause,
    Exited,
    Lost,
    Report,
    Started,
    Waits,
)
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import Trial, TrialState
from svc_manager.domain.values import Metric, MetricType

GIVEN_AT_ONCE: Final = 1000
"""Maximum tasks that an agent pulls before it claims one."""
_SUCCEEDED: Final = EndReason(EndCause.SUCCEEDED)


def decide_report(round_: Round, report: Report) -> None:
    """Apply an agent's report on a trial in sequence: ignore old, defer early, handle the next."""
    trial = round_.experiment.trials.get(report.trial_id)
    if trial is None or not trial.is_claimed_by(report.attempt, report.claim_id):
        _refuse(round_, report)
        return
    if isinstance(report.body, Lost):
        # This is the last report of the claim, so a gap before it is never filled.
        lose_attempt(round_, trial, report.body.loss)
        return
    if report.sequence <= trial.report_sequence:
        return
    if report.sequence > trial.report_sequence + 1:
        waiting = round_.experiment.deferred.get(report.claim, {})
        if report.sequence not in waiting:
            round_.emit(events.ReportDeferred(report))
        return
    _apply(round_, trial, report)
    _apply_deferred(round_, trial, report)


def _refuse(round_: Round, report: Report) -> None:
    if not isinstance(report.body, Exited | Lost):
        round_.add_effect(
            SendDrop(report.runner_id, report.trial_id, report.attempt, report.claim_id)
        )


def _apply_deferred(round_: Round, trial: Trial, report: Report) -> None:
    while round_.experiment.deferred:
        waiting = round_.experiment.deferred.get(report.claim)
        if not waiting or not trial.is_claimed_by(report.attempt, report.claim_id):
            return
        following = waiting.get(trial.report_sequence + 1)
        if following is None:
            return
        _apply(round_, trial, following)


def _apply(round_: Round, trial: Trial, report: Report) -> None:
    match report.body:
        case Started() as started:
            round_.emit(
                events.TrialStarted(
                    trial.id,
                    trial.attempt,
                    report.claim_id,
                    report.runner_id,
                    started.started_at_ms,
                    started.gpu_indices,
                    report.sequence,
                )
            )
        case Metric() as metric:
            _apply_metric(round_, trial, metric, report.sequence)
        case Exited() as exited:
            _end(round_, trial, exited, report)
        case Waits() as waits:
            round_.emit(
                events.TrialWaits(
                    trial.id,
                    trial.attempt,
                    report.claim_id,
                    report.runner_id,
                    waits.wait,
                    report.sequence,
                )
            )
        case CheckpointSaved(checkpoint):
            round_.emit(
                events.TrialCheckpointed(trial.id, trial.attempt, checkpoint, report.sequence)
            )
        case Lost():  # pragma: no cover - handled before sequences are compared
            raise AssertionError("a loss has no place in the sequence")


def _apply_metric(round_: Round, trial: Trial, metric: Metric, sequence: int) -> None:
    if metric.type is MetricType.FINAL and trial.final is not None:
        round_.emit(
            events.ReportIgnored(trial.id, trial.attempt, sequence, IgnoreCause.FINAL_COUNTED)
        )
        return
    round_.emit(
        events.MetricReported(trial.id, trial.attempt, trial.parameter_id, metric, sequence)
    )


def _end(round_: Round, trial: Trial, exited: Exited, report: Report) -> None:
    state, end = _end_of(trial, exited)
    settings = round_.experiment.settings
    again = trial.asked_end is None and trial.failures < settings.retry_failed_trials
    if state is TrialState.FAILED and again:
        loss = LossReason(LossCause.COMMAND_FAILED, end=end)
        round_.emit(events.TrialLost(trial.id, trial.attempt, loss, command_failed=True))
        return
    if state is TrialState.EARLY_STOPPED and settings.include_intermediate_results:
        _promote_last_intermediate(round_, trial)
    round_.emit(
        events.TrialEnded(
            trial.id,
            trial.attempt,
            state,
            exited.exit_code,
            # The clock of the agent may have been set back since the start.
            max(exited.ended_at_ms, trial.started_at_ms),
            end,
            report.sequence,
            exited.checkpoint if state is TrialState.SUCCEEDED else None,
        )
    )


def _end_of(trial: Trial, exited: Exited) -> tuple[TrialState, EndReason]:
    """Return a trial's final state and end cause from the exit cause that its agent reported."""
    match exited.cause:
        case ExitCause.ENDED | ExitCause.UNSPECIFIED:
            return _end_of_command(exited)
        case ExitCause.STOPPED:
            stop = trial.stop or StopReason(StopCause.AGENT)
            end = EndReason(EndCause.STOPPED, stderr_tail=exited.detail, stop=stop)
            return trial.asked_end or TrialState.SYS_CANCELED, end
        case ExitCause.TIME_LIMIT:
            end = EndReason(EndCause.TIME_LIMIT, stderr_tail=exited.detail)
            return TrialState.EARLY_STOPPED, end
        case ExitCause.NOT_STARTED:
            return TrialState.FAILED, EndReason(EndCause.NOT_STARTED, detail=exited.detail)


def _end_of_command(exited: Exited) -> tuple[TrialState, EndReason]:
    """Return final state and cause of a command's exit: code 0 SUCCEEDED; other, signal FAILED."""
    tail = exited.detail
    if exited.exit_code is None:
        end = EndReason(EndCause.SIGNAL, signal=exited.signal, stderr_tail=tail)
        return TrialState.FAILED, end
    if exited.exit_code == 0:
        return TrialState.SUCCEEDED, _SUCCEEDED
    end = EndReason(EndCause.EXIT_CODE, exit_code=exited.exit_code, stderr_tail=tail)
    return TrialState.FAILED, end


def _promote_last_intermediate(round_: Round, trial: Trial) -> None:
    last = trial.last_intermediate
    if last is None or trial.final is not None:
        return
    final = Metric(MetricType.FINAL, 0, last.value, last.numbers, last.reported_at_ms)
    round_.emit(
        events.MetricReported(
            trial.id, trial.attempt, trial.parameter_id, final, trial.report_sequence
        )
    )


GAP_LIMIT_MS: Final = 30_000
"""Time after which a gap before a report is not filled any more. An agent sends its reports in
order, each until it is stored, so that only damage of the bus makes a gap that stays."""


def lose_incomplete(round_: Round) -> None:
    """Lose attempts whose reports have had a gap for too long; order their agents to drop them."""
    for trial, report, since_ms in list(_gaps(round_.experiment)):
        if round_.now_ms - since_ms >= GAP_LIMIT_MS and trial.attempt == report.attempt:
            lose_attempt(round_, trial, LossReason(LossCause.REPORTS_MISSING))
            round_.add_effect(SendDrop(report.runner_id, trial.id, report.attempt, report.claim_id))


def next_gap_ms(experiment: Experiment) -> int | None:
    """Return the time (ms since 1970) when the first gap counts as lost; None: there is no gap."""
    if not experiment.deferred_since_ms:
        return None
    moments = [since_ms + GAP_LIMIT_MS for _, _, since_ms in _gaps(experiment)]
    return min(moments, default=None)


def _gaps(experiment: Experiment) -> Iterator[tuple[Trial, Report, int]]:
    """Yield (trial, deferred report, time since) for each claim with a gap in its reports."""
    for claim, since_ms in experiment.deferred_since_ms.items():
        trial_id, attempt, claim_id = claim
        trial = experiment.trials[trial_id]
        if trial.is_claimed_by(attempt, claim_id):
            yield trial, next(iter(experiment.deferred[claim].values())), since_ms


FALSE_START_LIMIT: Final = 20
"""Maximum attempts of a trial that are lost before its command has started, or without its fault.
An agent that is killed costs one; a trial that kills every agent that claims it must not be retried
for ever."""


def lose_attempt(round_: Round, trial: Trial, loss: LossReason) -> None:
    """Emit the loss of a trial's current attempt, or the trial's end if no retry is left.

    An attempt that has saved a later step than all attempts before it costs no retry.
    """
    progressed = trial.progressed
    counts = trial.state is not TrialState.WAITING and loss.counts and not progressed
    if trial.asked_end is not None:
        end = EndReason(EndCause.STOPPED, stop=trial.stop)
        _end_lost(round_, trial, trial.asked_end, end)
    elif counts and trial.losses >= round_.experiment.settings.max_trial_retries:
        end = EndReason(EndCause.LOST, lost_count=trial.losses + 1, loss=loss)
        _end_lost(round_, trial, TrialState.FAILED, end, infrastructure=True)
    elif loss.cause is LossCause.NOT_STARTED:
        _fail_start(round_, trial, loss)
    elif not counts and not progressed and trial.never_started >= FALSE_START_LIMIT:
        count = trial.never_started + 1
        end = EndReason(EndCause.NEVER_STARTED, lost_count=count, loss=loss)
        _end_lost(round_, trial, TrialState.FAILED, end, infrastructure=True)
    else:
        round_.emit(events.TrialLost(trial.id, trial.attempt, loss, command_failed=False))


def _fail_start(round_: Round, trial: Trial, loss: LossReason) -> None:
    """End a trial that alone keeps failing to start; else emit its loss, and it backs off.

    A trial that fails while others start ends: the fault is its own.
    """
    if trial.interruptions.own_failed_starts >= FALSE_START_LIMIT and not holds(round_.experiment):
        count = trial.interruptions.failed_starts + 1
        end = EndReason(EndCause.NEVER_STARTED, lost_count=count, loss=loss)
        _end_lost(round_, trial, TrialState.FAILED, end)
    else:
        round_.emit(events.TrialLost(trial.id, trial.attempt, loss, command_failed=False))


def _end_lost(
    round_: Round, trial: Trial, state: TrialState, end: EndReason, *, infrastructure: bool = False
) -> None:
    # The sequence after the last report: no order to the agent follows, since the attempt is gone.
    round_.emit(
        events.TrialEnded(
            trial.id,
            trial.attempt,
            state,
            None,
            max(round_.now_ms, trial.started_at_ms),
            end,
            trial.report_sequence + 1,
            infrastructure=infrastructure,
        )
    )


def decide_agent_seen(round_: Round, seen: inputs.AgentSeen) -> None:
    """Reconcile an agent's held attempts: drop lost ones, resend stops, set UNKNOWN to RUNNING.

    A lost one is over, superseded, or under another claim.
    """
    for held in seen.held:
        trial = round_.experiment.trials.get(held.trial_id)
        if trial is None or not trial.is_claimed_by(held.attempt, held.claim_id):
            round_.add_effect(SendDrop(seen.runner_id, held.trial_id, held.attempt, held.claim_id))
        elif trial.stop is not None:
            round_.add_effect(SendStop(seen.runner_id, trial.id, trial.attempt, trial.stop))
        elif trial.state is TrialState.UNKNOWN:
            round_.emit(
                events.TrialStarted(
                    trial.id,
                    trial.attempt,
                    trial.claim_id,
                    trial.runner_id,
                    trial.started_at_ms,
                    trial.gpu_indices,
                    trial.report_sequence,
                )
            )


def is_affected(experiment: Experiment, seen: inputs.AgentSeen) -> bool:
    """Return whether an agent holds an attempt that it lost, or that is UNKNOWN or to be stopped.

    A cheap test, since it seldom has.
    """
    for held in seen.held:
        trial = experiment.trials.get(held.trial_id)
        if trial is None or not trial.is_claimed_by(held.attempt, held.claim_id):
            return True
        if trial.asked_end is not None or trial.state is TrialState.UNKNOWN:
            return True
    return False


def decide_agent_change(
    round_: Round,
    change: inputs.AgentRestarted
    | inputs.AgentOverdue
    | inputs.AgentSilent
    | inputs.AgentGone
    | inputs.AttemptGone,
) -> None:
    """Emit the events for an agent's restart, silence or departure, by the kind of change."""
    match change:
        case inputs.AgentRestarted():
            _agent_restarted(round_, change)
        case inputs.AgentOverdue():
            _agent_overdue(round_, change)
        case inputs.AgentSilent():
            _agent_silent(round_, change)
        case inputs.AgentGone():
            _agent_gone(round_, change)
        case inputs.AttemptGone():
            _attempt_gone(round_, change)


def _agent_restarted(round_: Round, restarted: inputs.AgentRestarted) -> None:
    """Publish tasks of a restarted agent's pool again: the oldest unclaimed, up to a limit.

    The bus delivers tasks in the order of their publication, so those that the predecessor pulled
    and did not claim are among them; the bus itself would deliver them again only after `ack_wait`.
    """
    waiting = (
        trial
        for trial in round_.experiment.live.values()
        if trial.state is TrialState.WAITING and not trial.claim_id and trial.pool == restarted.pool
        if trial.id not in round_.experiment.backing_off
    )
    for trial in islice(waiting, GIVEN_AT_ONCE):
        round_.add_effect(PublishAgain(trial.id, trial.attempt, restarted.boot_id))


def _agent_overdue(round_: Round, missed: inputs.AgentOverdue) -> None:
    """If the experiment is STOPPING, lose the trials an overdue agent was ordered to stop.

    Their results are not needed any more; should the agent return, it gets drop orders.
    """
    loss = LossReason(LossCause.AGENT_UNRESPONSIVE)
    if round_.experiment.state is ExperimentState.STOPPING:
        for trial in list(round_.experiment.live.values()):
            if trial.runner_id == missed.runner_id and trial.asked_end is not None:
                lose_attempt(round_, trial, loss)


def _agent_silent(round_: Round, silent: inputs.AgentSilent) -> None:
    """Mark the running trials of a silent agent UNKNOWN."""
    for trial in list(round_.experiment.live.values()):
        if trial.runner_id == silent.runner_id and trial.state is TrialState.RUNNING:
            round_.emit(events.TrialUnknown(trial.id, trial.attempt))


def _agent_gone(round_: Round, gone: inputs.AgentGone) -> None:
    """Lose the current attempts of all live trials that a gone agent held."""
    for trial in list(round_.experiment.live.values()):
        if trial.runner_id == gone.runner_id:
            lose_attempt(round_, trial, gone.loss)


def _attempt_gone(round_: Round, gone: inputs.AttemptGone) -> None:
    """Lose an attempt that a restarted agent no longer holds, if it is still the current one."""
    trial = round_.experiment.trials.get(gone.held.trial_id)
    if trial is None or not trial.live:
        return
    if (trial.attempt, trial.claim_id) == (gone.held.attempt, gone.held.claim_id):
        lose_attempt(round_, trial, gone.loss)
