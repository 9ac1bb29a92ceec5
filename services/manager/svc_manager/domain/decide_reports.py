"""Decisions on what agents say about trials, and on agents that say nothing.

Whoever claims an attempt first in the log has it; others are told to drop it. Within a claim,
reports count in the order of their sequence, each once; one beyond a gap waits for it.
"""

from itertools import islice
from typing import Final

from svc_manager.domain import events, inputs
from svc_manager.domain.decision_round import Round
from svc_manager.domain.effects import PublishAgain, SendDrop, SendStop
from svc_manager.domain.exit_text import CommandEnd, command_end_text
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.reports import ExitCause, Exited, Lost, Report, Started, Waits
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import Trial, TrialState
from svc_manager.domain.values import Metric, MetricType

GIVEN_AT_ONCE: Final = 1000
"""Most tasks that an agent is given before it claims one."""


def decide_report(round_: Round, report: Report) -> None:
    """State what follows from one report, and from those that waited for it."""
    trial = round_.experiment.trials.get(report.trial_id)
    if trial is None or not _holds(trial, report):
        _refuse(round_, report)
        return
    if isinstance(report.saying, Lost):
        # Nothing more of this claim will come, so there is no gap to wait for.
        lose(round_, trial, report.saying.reason)
        return
    if report.sequence <= trial.report_sequence:
        return
    if report.sequence > trial.report_sequence + 1:
        waiting = round_.experiment.deferred.get(report.claim, {})
        if report.sequence not in waiting:
            round_.emit(events.ReportDeferred(report))
        return
    _count(round_, trial, report)
    _count_deferred(round_, trial, report)


def _holds(trial: Trial, report: Report) -> bool:
    """Tell whether the report speaks of the present attempt, by its rightful claim."""
    return (
        trial.live and report.attempt == trial.attempt and trial.claim_id in {"", report.claim_id}
    )


def _refuse(round_: Round, report: Report) -> None:
    if not isinstance(report.saying, Exited | Lost):
        round_.add_effect(
            SendDrop(report.runner_id, report.trial_id, report.attempt, report.claim_id)
        )


def _count_deferred(round_: Round, trial: Trial, report: Report) -> None:
    while True:
        waiting = round_.experiment.deferred.get(report.claim)
        if not waiting or not _holds(trial, report):
            return
        following = waiting.get(trial.report_sequence + 1)
        if following is None:
            return
        _count(round_, trial, following)


def _count(round_: Round, trial: Trial, report: Report) -> None:
    match report.saying:
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
            _count_metric(round_, trial, metric, report.sequence)
        case Exited() as exited:
            _end(round_, trial, exited, report)
        case Waits() as waits:
            round_.emit(
                events.TrialWaits(
                    trial.id,
                    trial.attempt,
                    report.claim_id,
                    report.runner_id,
                    waits.reason,
                    report.sequence,
                )
            )
        case Lost():  # pragma: no cover - taken out before sequences are looked at
            raise AssertionError("a loss has no place in the sequence")


def _count_metric(round_: Round, trial: Trial, metric: Metric, sequence: int) -> None:
    if metric.type is MetricType.FINAL and trial.final is not None:
        round_.emit(
            events.ReportIgnored(trial.id, trial.attempt, sequence, "the first final result counts")
        )
        return
    round_.emit(
        events.MetricReported(trial.id, trial.attempt, trial.parameter_id, metric, sequence)
    )


def _end(round_: Round, trial: Trial, exited: Exited, report: Report) -> None:
    state, reason = _end_state(trial, exited)
    settings = round_.experiment.settings
    again = trial.asked_end is None and trial.failures < settings.retry_failed_trials
    if state is TrialState.FAILED and again:
        round_.emit(events.TrialLost(trial.id, trial.attempt, reason, True))  # noqa: FBT003 - a field of a fact
        return
    if state is TrialState.EARLY_STOPPED and settings.include_intermediate_results:
        _promote_last_intermediate(round_, trial)
    round_.emit(
        events.TrialEnded(
            trial.id,
            trial.attempt,
            state,
            exited.exit_code,
            exited.ended_at_ms,
            reason,
            report.sequence,
            exited.checkpoint if state is TrialState.SUCCEEDED else None,
        )
    )


def _end_state(trial: Trial, exited: Exited) -> tuple[TrialState, str]:
    match exited.cause:
        case ExitCause.STOPPED:
            state = trial.asked_end or TrialState.SYS_CANCELED
            return state, trial.stop_reason or exited.detail or "its agent stopped it"
        case ExitCause.TIME_LIMIT:
            return TrialState.EARLY_STOPPED, exited.detail or "its time limit has passed"
        case ExitCause.NOT_STARTED:
            return TrialState.FAILED, exited.detail or "its command could not be started"
        case _:
            pass
    if exited.exit_code == 0:
        return TrialState.SUCCEEDED, ""
    end = CommandEnd(exited.exit_code, exited.signal, exited.detail)
    return TrialState.FAILED, command_end_text(end)


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


MOST_FALSE_STARTS: Final = 20
"""Attempts of a trial that may be lost before its command has started. An agent that is killed
costs one; a trial that kills every agent that takes it must not go on for ever."""


def lose(round_: Round, trial: Trial, reason: str) -> None:
    """State that the present attempt is gone: another one follows, or the trial is over."""
    ran = trial.state is not TrialState.WAITING
    if trial.asked_end is not None:
        _end_lost(round_, trial, trial.asked_end, trial.stop_reason)
    elif ran and trial.losses >= round_.experiment.settings.max_trial_retries:
        _end_lost(
            round_, trial, TrialState.FAILED, f"lost {trial.losses + 1} times, last: {reason}"
        )
    elif not ran and trial.never_started >= MOST_FALSE_STARTS:
        _end_lost(
            round_,
            trial,
            TrialState.FAILED,
            f"could not be started {trial.never_started + 1} times, last: {reason}",
        )
    else:
        round_.emit(events.TrialLost(trial.id, trial.attempt, reason, False))  # noqa: FBT003 - a field of a fact


def _end_lost(round_: Round, trial: Trial, state: TrialState, reason: str) -> None:
    # The sequence after the last one: nobody needs to be told, for nothing of it is left.
    round_.emit(
        events.TrialEnded(
            trial.id,
            trial.attempt,
            state,
            None,
            round_.now_ms,
            reason,
            trial.report_sequence + 1,
        )
    )


def decide_agent_seen(round_: Round, seen: inputs.AgentSeen) -> None:
    """Repeat what an agent may have missed; what it holds rightly is known again."""
    for held in seen.held:
        trial = round_.experiment.trials.get(held.trial_id)
        rightful = (
            trial is not None
            and trial.live
            and trial.attempt == held.attempt
            and trial.claim_id in {"", held.claim_id}
        )
        if trial is None or not rightful:
            round_.add_effect(SendDrop(seen.runner_id, held.trial_id, held.attempt, held.claim_id))
        elif trial.asked_end is not None:
            round_.add_effect(SendStop(seen.runner_id, trial.id, trial.attempt, trial.stop_reason))
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


def concerns(experiment: Experiment, seen: inputs.AgentSeen) -> bool:
    """Tell whether `decide_runner_seen` would have anything to say; cheap, for it is seldom."""
    for held in seen.held:
        trial = experiment.trials.get(held.trial_id)
        if trial is None or not trial.live or trial.attempt != held.attempt:
            return True
        if trial.claim_id not in {"", held.claim_id}:
            return True
        if trial.asked_end is not None or trial.state is TrialState.UNKNOWN:
            return True
    return False


def decide_agent_restarted(round_: Round, restarted: inputs.AgentRestarted) -> None:
    """Have the oldest tasks of its pool that nobody has claimed published again.

    The bus gives tasks out in the order of their publication, so those that an agent was given and
    did not come to claim are among them; the bus itself would give them out again only after
    `ack_wait`.
    """
    waiting = (
        trial
        for trial in round_.experiment.live.values()
        if trial.state is TrialState.WAITING and not trial.claim_id and trial.pool == restarted.pool
    )
    for trial in islice(waiting, GIVEN_AT_ONCE):
        round_.add_effect(PublishAgain(trial.id, trial.attempt, restarted.boot_id))


def decide_agent_overdue(round_: Round, missed: inputs.AgentOverdue) -> None:
    """End the trials of an agent that may have vanished, if the experiment is being stopped.

    Nobody waits for their results any more; should the agent come back, it is told to drop them.
    """
    if round_.experiment.state is ExperimentState.STOPPING:
        for trial in list(round_.experiment.live.values()):
            if trial.runner_id == missed.runner_id and trial.asked_end is not None:
                lose(round_, trial, "its agent does not answer")


def decide_agent_silent(round_: Round, silent: inputs.AgentSilent) -> None:
    """State that nothing is known of the running trials of an agent."""
    for trial in list(round_.experiment.live.values()):
        if trial.runner_id == silent.runner_id and trial.state is TrialState.RUNNING:
            round_.emit(events.TrialUnknown(trial.id, trial.attempt))


def decide_agent_gone(round_: Round, gone: inputs.AgentGone) -> None:
    """State that the attempts of an agent are lost."""
    for trial in list(round_.experiment.live.values()):
        if trial.runner_id == gone.runner_id:
            lose(round_, trial, gone.reason)


def decide_attempt_gone(round_: Round, gone: inputs.AttemptGone) -> None:
    """State that one attempt is lost, if it still is the present one."""
    trial = round_.experiment.trials.get(gone.held.trial_id)
    if trial is None or not trial.live:
        return
    if (trial.attempt, trial.claim_id) == (gone.held.attempt, gone.held.claim_id):
        lose(round_, trial, gone.reason)
