"""Explanations of trials: why one waits, was stopped or failed, from the log and the agents."""

import signal as signals
from typing import Final

from svc_common.experiment_events.cause_text import end_text, loss_text, stop_text
from svc_common.experiment_events.causes import EndCause, EndReason, StopCause, StopReason
from svc_manager.domain.explain_waits import explain_next, explain_waiting
from svc_manager.domain.explanation import (
    Explanation,
    ExplanationContext,
    Reason,
    ReasonKind,
    TrialOutcome,
    ago,
    count,
)
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import LIVE_STATES, LostAttempt, Trial, TrialState

__all__ = ["explain_next", "explain_trial"]

_UNKNOWN_END: Final = EndReason(EndCause.UNSPECIFIED)
_NOT_FOUND: Final = 127
_NOT_EXECUTABLE: Final = 126
_SIGNAL_BASE: Final = 128
_EXIT_REMEDIES: Final = {
    _NOT_FOUND: "its shell did not find a program: check trialCommand and PATH",
    _NOT_EXECUTABLE: "its shell may not run the program: check its permissions (chmod +x)",
}
_SIGNAL_REMEDIES: Final[dict[int, str]] = {
    signals.SIGKILL: "often the kernel's out-of-memory killer: give trials less to do at once "
    "(trialConcurrency), or the machine more memory; dmesg tells",
    signals.SIGSEGV: "a native library crashed; faulthandler shows where: "
    "python3 -X faulthandler in trialCommand",
    signals.SIGABRT: "a native library aborted; its last message is in stderr",
    signals.SIGBUS: "often /dev/shm is full: raise shm_size of the container",
    signals.SIGTERM: "a process outside of NNI ended it",
}
_READ_LOG: Final = "its whole output: nnictl log trial --follow --trial_id {trial}"


def explain_trial(experiment: Experiment, trial: Trial, context: ExplanationContext) -> Explanation:
    """Return why a trial waits, runs, succeeded, failed or was stopped: summary and reasons.

    Args:
        experiment: the experiment.
        trial: one of its trials.
        context: facts that are not in the log.
    """
    if trial.state is TrialState.WAITING:
        has_callers = experiment.settings.has_callers
        return explain_waiting(trial, context, has_callers=has_callers)
    if trial.state in LIVE_STATES:
        return _explain_live(experiment, trial, context)
    if trial.state is TrialState.SUCCEEDED:
        return _explain_success(trial)
    if trial.state is TrialState.FAILED:
        return _explain_failure(experiment, trial)
    return _explain_stop(experiment, trial)


def _explain_live(experiment: Experiment, trial: Trial, context: ExplanationContext) -> Explanation:
    reasons = []
    ran = ago(context.now_ms - trial.started_at_ms)
    owner = "caller" if experiment.settings.has_callers else "agent"
    summary = f"trial {trial.id} has been running for {ran} on {owner} {trial.runner_id}"
    if trial.state is TrialState.UNKNOWN:
        silent = next((a for a in context.agents if a.runner_id == trial.runner_id), None)
        since = f" for {ago(silent.silent_s * 1000)}" if silent is not None else ""
        summary = f"the state of trial {trial.id} is unknown: agent {trial.runner_id} is silent"
        reasons.append(
            Reason(
                ReasonKind.AGENT,
                f"its agent {trial.runner_id} has been silent{since}",
                "look at that machine and its network; "
                "the trial goes to another agent when that one is given up",
            )
        )
    elif trial.stop is not None:
        summary = f"trial {trial.id} is being stopped: {stop_text(trial.stop)}"
        reasons.append(_stop_reason(trial, trial.stop))
    reasons += _losses(trial)
    if trial.checkpoint is not None:
        summary += f"; its last checkpoint is of step {trial.checkpoint.step}"
    return Explanation(
        trial.id, trial.state, TrialOutcome.RUNS, summary, tuple(reasons), trial.lost_attempts
    )


def _explain_success(trial: Trial) -> Explanation:
    ran = ago(trial.ended_at_ms - trial.started_at_ms)
    summary = f"trial {trial.id} succeeded after {ran}"
    if trial.final is None:
        summary += ", but reported no final result"
    return Explanation(
        trial.id,
        trial.state,
        TrialOutcome.SUCCEEDED,
        summary,
        _losses(trial),
        trial.lost_attempts,
        exit_code=trial.exit_code,
        end=trial.end,
    )


def _explain_stop(experiment: Experiment, trial: Trial) -> Explanation:
    end = trial.end or _UNKNOWN_END
    if experiment.settings.has_callers and end.cause is EndCause.UNSPECIFIED:
        reason = Reason(ReasonKind.USER, end_text(end))
    else:
        reason = _end_of_stop(trial, end)
    return Explanation(
        trial.id,
        trial.state,
        TrialOutcome.STOPPED,
        f"trial {trial.id} was stopped: {reason.text}",
        (reason, *_losses(trial)),
        trial.lost_attempts,
        stderr_tail=end.stderr_tail,
        exit_code=trial.exit_code,
        end=trial.end,
    )


def _end_of_stop(trial: Trial, end: EndReason) -> Reason:
    """Return the reason of a stopped trial: the origin of the stop, or the time limit."""
    match end:
        case EndReason(cause=EndCause.STOPPED, stop=StopReason() as stop):
            return _stop_reason(trial, stop)
        case EndReason(cause=EndCause.UNSPECIFIED) if trial.stop is not None:
            return _stop_reason(trial, trial.stop)
        case EndReason(cause=EndCause.TIME_LIMIT | EndCause.UNSPECIFIED):
            return Reason(
                ReasonKind.TIME_LIMIT,
                "it ran longer than maxTrialDuration",
                "raise maxTrialDuration for trials that are to run longer",
            )
        case _:
            return _stop_reason(trial, StopReason(StopCause.AGENT))


def _stop_reason(trial: Trial, stop: StopReason) -> Reason:
    text = stop_text(stop)
    match stop.cause:
        case StopCause.USER:
            return Reason(
                ReasonKind.USER,
                f"a user asked for it ({text})",
                "to run its parameters once more: nnictl trial add",
            )
        case StopCause.ASSESSOR:
            return Reason(
                ReasonKind.ASSESSOR,
                f"the assessor advised it after {count(trial.intermediate_count, 'result')} "
                f"({text})",
            )
        case StopCause.EXPERIMENT_STOPPED:
            return Reason(
                ReasonKind.EXPERIMENT, text, "nnictl resume makes new trials; this one is over"
            )
        case StopCause.AGENT | StopCause.UNSPECIFIED:
            return Reason(ReasonKind.AGENT, text)


def _explain_failure(experiment: Experiment, trial: Trial) -> Explanation:
    end = trial.end or _UNKNOWN_END
    reason = _failure_reason(experiment, trial, end)
    return Explanation(
        trial.id,
        trial.state,
        TrialOutcome.FAILED,
        f"trial {trial.id} failed: {reason.text}",
        (reason, *_losses(trial)),
        trial.lost_attempts,
        stderr_tail=end.stderr_tail,
        exit_code=trial.exit_code,
        signal=end.signal,
        end=trial.end,
    )


def _failure_reason(experiment: Experiment, trial: Trial, end: EndReason) -> Reason:
    match end.cause:
        case EndCause.EXIT_CODE:
            return _exit_code_reason(end.exit_code, trial)
        case EndCause.SIGNAL:
            return _signal_reason(end)
        case EndCause.LOST if experiment.settings.has_callers:
            return Reason(
                ReasonKind.LOST,
                end_text(end),
                "see that its caller runs and reaches the manager; retry_lost=True of "
                "SharedStudy has the parameters asked again",
            )
        case EndCause.LOST:
            limit = experiment.settings.max_trial_retries
            return Reason(
                ReasonKind.LOST,
                f"{end_text(end)}; maxTrialRetries is {limit}",
                "see the causes of the losses; more patience: a larger maxTrialRetries",
            )
        case EndCause.NOT_STARTED | EndCause.NEVER_STARTED:
            return Reason(
                ReasonKind.NOT_STARTED,
                end_text(end),
                "check trialCommand, trialCodeDirectory and the disk of its machine",
            )
        case _:
            return Reason(
                ReasonKind.EXPERIMENT,
                end_text(end) or "its end was not reported",
                "to run its parameters once more: nnictl trial add",
            )


def _exit_code_reason(code: int, trial: Trial) -> Reason:
    if code > _SIGNAL_BASE and _signal_name(code - _SIGNAL_BASE):
        name = _signal_name(code - _SIGNAL_BASE)
        return Reason(
            ReasonKind.SIGNAL,
            f"its command ended with exit code {code}: its program was killed by {name}",
            _SIGNAL_REMEDIES.get(code - _SIGNAL_BASE, _READ_LOG.format(trial=trial.id)),
        )
    remedy = _EXIT_REMEDIES.get(code, _READ_LOG.format(trial=trial.id))
    return Reason(ReasonKind.EXIT_CODE, f"its command ended with exit code {code}", remedy)


def _signal_reason(end: EndReason) -> Reason:
    name = _signal_name(end.signal) or "a signal"
    return Reason(
        ReasonKind.SIGNAL,
        f"its command was killed by {name} (signal {end.signal})",
        _SIGNAL_REMEDIES.get(end.signal, ""),
    )


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return ""


def _first_line(lost: LostAttempt) -> str:
    return loss_text(lost.loss).partition("\n")[0]


def _losses(trial: Trial) -> tuple[Reason, ...]:
    lost = trial.lost_attempts
    if not lost:
        return ()
    causes = "; ".join(f"attempt {one.attempt}: {_first_line(one)}" for one in lost[-3:])
    return (
        Reason(
            ReasonKind.LOST, f"{count(len(lost), 'earlier attempt')} did not come through: {causes}"
        ),
    )
