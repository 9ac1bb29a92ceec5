"""Why a trial waits, was stopped or failed, from what the log tells and who is there."""

import signal as signals
from typing import Final

from svc_manager.domain.exit_text import CommandEnd, read_command_end
from svc_manager.domain.explain_waits import explain_next, explain_waiting
from svc_manager.domain.explanation import (
    Around,
    Explanation,
    Reason,
    ReasonKind,
    TrialOutcome,
    ago,
    count,
)
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import LIVE_STATES, Trial, TrialState

__all__ = ["explain_next", "explain_trial"]

_NOT_FOUND: Final = 127
_NOT_EXECUTABLE: Final = 126
_OF_SIGNALS: Final = 128
_EXIT_REMEDIES: Final = {
    _NOT_FOUND: "its shell did not find a program: check trialCommand and PATH",
    _NOT_EXECUTABLE: "its shell may not run the program: check its permissions (chmod +x)",
}
_SIGNAL_REMEDIES: Final[dict[int, str]] = {
    signals.SIGKILL: "often the kernel's out-of-memory killer: give trials less to do at once "
    "(trialConcurrency), or the machine more memory; dmesg tells",
    signals.SIGSEGV: "a native library crashed; faulthandler shows where: "
    "python3 -X faulthandler in trialCommand",
    signals.SIGABRT: "a native library gave up; its last words are in stderr",
    signals.SIGBUS: "often /dev/shm is full: raise shm_size of the container",
    signals.SIGTERM: "somebody outside of NNI ended it",
}
_READ_LOG: Final = "its whole output: nnictl log trial --follow --trial_id {trial}"


def explain_trial(experiment: Experiment, trial: Trial, around: Around) -> Explanation:
    """Say why a trial is as it is.

    Args:
        experiment: whose trial.
        trial: one of its trials.
        around: what is not in the log.
    """
    if trial.state is TrialState.WAITING:
        return explain_waiting(trial, around)
    if trial.state in LIVE_STATES:
        return _explain_live(trial, around)
    if trial.state is TrialState.SUCCEEDED:
        return _explain_success(trial)
    if trial.state is TrialState.FAILED:
        return _explain_failure(experiment, trial)
    return _explain_stop(trial)


def _explain_live(trial: Trial, around: Around) -> Explanation:
    reasons = []
    ran = ago(around.now_ms - trial.started_at_ms)
    summary = f"trial {trial.id} has been running for {ran} on agent {trial.runner_id}"
    if trial.state is TrialState.UNKNOWN:
        silent = next((a for a in around.agents if a.runner_id == trial.runner_id), None)
        since = f" for {ago(silent.silent_s * 1000)}" if silent is not None else ""
        summary = f"nobody knows how trial {trial.id} is: agent {trial.runner_id} is silent"
        reasons.append(
            Reason(
                ReasonKind.AGENT,
                f"its agent {trial.runner_id} has not been heard of{since}",
                "look at that machine and its network; "
                "the trial goes to another agent when that one is given up",
            )
        )
    elif trial.asked_end is not None:
        summary = f"trial {trial.id} is being stopped: {trial.stop_reason}"
        reasons.append(_why_stopped(trial, trial.asked_end, trial.stop_reason))
    reasons += _losses(trial)
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
    )


def _explain_stop(trial: Trial) -> Explanation:
    reason = _why_stopped(trial, trial.state, trial.reason)
    return Explanation(
        trial.id,
        trial.state,
        TrialOutcome.STOPPED,
        f"trial {trial.id} was stopped: {reason.text}",
        (reason, *_losses(trial)),
        trial.lost_attempts,
        exit_code=trial.exit_code,
    )


def _why_stopped(trial: Trial, end: TrialState, why: str) -> Reason:
    if end is TrialState.USER_CANCELED:
        return Reason(
            ReasonKind.USER,
            f"a user asked for it ({why})" if why else "a user asked for it",
            "to run its parameters once more: nnictl trial add",
        )
    if end is TrialState.EARLY_STOPPED and trial.asked_end is None:
        return Reason(
            ReasonKind.TIME_LIMIT,
            f"it ran longer than maxTrialDuration ({why})",
            "raise maxTrialDuration for trials that are to run longer",
        )
    if end is TrialState.EARLY_STOPPED:
        return Reason(
            ReasonKind.ASSESSOR,
            f"the assessor advised it after {count(trial.intermediate_count, 'result')} ({why})",
        )
    if "experiment" in why:
        return Reason(
            ReasonKind.EXPERIMENT, why, "nnictl resume makes new trials; this one is over"
        )
    return Reason(ReasonKind.AGENT, why or "its agent stopped it")


def _explain_failure(experiment: Experiment, trial: Trial) -> Explanation:
    end = read_command_end(trial.reason) if trial.started_at_ms else None
    if end is not None:
        reason = _of_signal(end) if end.exit_code is None else _of_exit_code(end.exit_code, trial)
    else:
        reason = _without_end(experiment, trial)
    return Explanation(
        trial.id,
        trial.state,
        TrialOutcome.FAILED,
        f"trial {trial.id} failed: {reason.text}",
        (reason, *_losses(trial)),
        trial.lost_attempts,
        stderr_tail=end.stderr_tail if end is not None else "",
        exit_code=trial.exit_code,
        signal=end.signal if end is not None else 0,
    )


def _without_end(experiment: Experiment, trial: Trial) -> Reason:
    """Say why a trial failed whose command nobody saw end."""
    if trial.reason.startswith("lost "):
        limit = experiment.settings.max_trial_retries
        return Reason(
            ReasonKind.LOST,
            f"{trial.reason}; maxTrialRetries is {limit}",
            "see the causes of the losses; more patience: a larger maxTrialRetries",
        )
    if not trial.started_at_ms:
        return Reason(
            ReasonKind.NOT_STARTED,
            trial.reason or "its command could not be started",
            "check trialCommand, trialCodeDirectory and the disk of its machine",
        )
    return Reason(
        ReasonKind.EXPERIMENT,
        trial.reason or "its end was not told",
        "to run its parameters once more: nnictl trial add",
    )


def _of_exit_code(code: int, trial: Trial) -> Reason:
    if code > _OF_SIGNALS and _signal_name(code - _OF_SIGNALS):
        name = _signal_name(code - _OF_SIGNALS)
        return Reason(
            ReasonKind.SIGNAL,
            f"its command ended with exit code {code}: its program was killed by {name}",
            _SIGNAL_REMEDIES.get(code - _OF_SIGNALS, _READ_LOG.format(trial=trial.id)),
        )
    remedy = _EXIT_REMEDIES.get(code, _READ_LOG.format(trial=trial.id))
    return Reason(ReasonKind.EXIT_CODE, f"its command ended with exit code {code}", remedy)


def _of_signal(end: CommandEnd) -> Reason:
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


def _losses(trial: Trial) -> tuple[Reason, ...]:
    lost = trial.lost_attempts
    if not lost:
        return ()
    told = "; ".join(f"attempt {one.attempt}: {one.reason.splitlines()[0]}" for one in lost[-3:])
    return (
        Reason(
            ReasonKind.LOST, f"{count(len(lost), 'earlier attempt')} did not come through: {told}"
        ),
    )
