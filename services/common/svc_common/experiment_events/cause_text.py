"""Sentences for the causes of ends, stops, losses and waits, as people read them."""

from typing import Final

from svc_common.experiment_events.causes import (
    EndCause,
    EndReason,
    ExperimentCause,
    ExperimentReason,
    GpuUser,
    IgnoreCause,
    LossCause,
    LossReason,
    StopCause,
    StopReason,
    WaitCause,
    WaitReason,
)

_MS_PER_S: Final = 1000

_SUCCEEDED: Final = EndCause.SUCCEEDED
"""As an attribute of its class it takes longer."""
_END_TEXTS: Final = {
    EndCause.TIME_LIMIT: "it ran longer than maxTrialDuration",
    EndCause.CUT_OFF: "it was live when the experiment was cut off",
}
_LOSS_TEXTS: Final = {
    LossCause.AGENT_RESTARTED: "its agent was restarted",
    LossCause.AGENT_STOPPED: "its agent was stopped",
    LossCause.AGENT_LEFT: "its agent has left",
    LossCause.UNKNOWN_TO_AGENT: "its agent knows nothing of it",
    LossCause.AGENT_UNRESPONSIVE: "its agent does not answer",
    LossCause.REPORTS_MISSING: "the bus has lost reports of it",
}
_EXPERIMENT_TEXTS: Final = {
    ExperimentCause.CREATED: "created",
    ExperimentCause.ALGORITHM_STARTED: "the algorithm has started",
    ExperimentCause.TRIAL_NUMBER: "the trial number is reached",
    ExperimentCause.DURATION: "the longest duration has passed",
    ExperimentCause.NO_MORE_PARAMETERS: "the algorithm has no more parameters",
    ExperimentCause.STOPPED_BY_USER: "stopped by the user",
    ExperimentCause.MANAGER_TERMINATED: "the manager was terminated",
    ExperimentCause.RESUMED: "resumed",
    ExperimentCause.OPENED_FOR_READING: "opened for reading",
    ExperimentCause.LOG_COPIED: "its log was copied",
}


def end_text(end: EndReason) -> str:
    """Return the cause of a trial's end as a phrase, such as `exit code 1: …`; empty: success."""
    if end.cause == _SUCCEEDED:  # most trials
        return ""
    match end.cause:
        case EndCause.EXIT_CODE:
            return _with_detail(f"exit code {end.exit_code}", end.stderr_tail)
        case EndCause.SIGNAL:
            return _with_detail(f"signal {end.signal}", end.stderr_tail)
        case EndCause.NOT_STARTED:
            return end.detail or "its command could not be started"
        case EndCause.STOPPED:
            return stop_text(end.stop or StopReason(StopCause.AGENT))
        case EndCause.LOST:
            return f"lost {end.lost_count} times, last: {_last_loss(end)}"
        case EndCause.NEVER_STARTED:
            return f"could not be started {end.lost_count} times, last: {_last_loss(end)}"
        case _:
            return _END_TEXTS.get(end.cause, end.detail)


def _with_detail(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


def _last_loss(end: EndReason) -> str:
    return "" if end.loss is None else loss_text(end.loss)


def stop_text(stop: StopReason) -> str:
    """Return why a trial was stopped as a phrase, such as `killed by the user`."""
    match stop.cause:
        case StopCause.USER:
            return "killed by the user"
        case StopCause.ASSESSOR:
            return stop.detail or "stopped early"
        case StopCause.EXPERIMENT_STOPPED:
            return "the experiment was stopped"
        case StopCause.AGENT:
            return "its agent stopped it"
        case StopCause.UNSPECIFIED:
            return stop.detail


def loss_text(loss: LossReason) -> str:
    """Return why an attempt was lost as a phrase, such as how long its agent was silent."""
    silence_s = (loss.silence_ms or 0) / _MS_PER_S
    match loss.cause:
        case LossCause.AGENT_SILENT:
            return f"its agent {loss.runner_id} has been silent for {silence_s:.0f} s"
        case LossCause.CLAIM_EXPIRED:
            return f"its task could not be renewed for {silence_s:g} s"
        case LossCause.LEASE_LAPSED:
            return f"its caller {loss.runner_id} did not renew its lease for {silence_s:g} s"
        case LossCause.AGENT_FAILED | LossCause.STARTER_KILLED:
            return loss.detail or "its agent failed"
        case LossCause.NOT_STARTED:
            return _with_detail("it could not be started", loss.detail)
        case LossCause.COMMAND_FAILED:
            return "" if loss.end is None else end_text(loss.end)
        case _:
            return _LOSS_TEXTS.get(loss.cause, loss.detail)


def wait_text(wait: WaitReason) -> str:
    """Return the cause of a delay as text: `waiting for 1 GPU: 0 in use by trial aB3dE`."""
    if wait.cause is WaitCause.UNSPECIFIED:
        return wait.detail
    return f"waiting for {awaited_text(wait)}"


def awaited_text(wait: WaitReason) -> str:
    """Return the awaited object as text: `1 GPU: 0 in use by trial aB3dE`."""
    gpus = f"{wait.gpu_count} GPU{'s' if wait.gpu_count > 1 else ''}"
    match wait.cause:
        case WaitCause.GPU_IN_USE:
            return _with_detail(gpus, ", ".join(map(_user_text, wait.users)))
        case WaitCause.GPU_MISSING:
            choice = " among those allowed by gpuIndices" if wait.gpu_restricted else ""
            return f"{gpus}: this machine has {wait.gpu_available}{choice}"
        case WaitCause.BLOB:
            return _with_detail(wait.object, wait.detail)
        case WaitCause.ENVIRONMENT:
            times = "once" if wait.failure_count == 1 else f"{wait.failure_count} times"
            return _with_detail(f"its environment (start failed {times})", wait.detail)
        case WaitCause.PLATFORM:
            return _with_detail("an agent of its pool", wait.detail)
        case WaitCause.UNSPECIFIED:
            return wait.detail


def _user_text(user: GpuUser) -> str:
    if user.trial_ids:
        return f"{user.index} in use by trial {' and '.join(user.trial_ids)}"
    if user.experiment_id:
        return f"{user.index} in use by experiment {user.experiment_id}"
    return f"{user.index} in use by {user.process}"


def ignore_text(cause: IgnoreCause) -> str:
    """Return why a report has no effect, as text; empty: the cause is unspecified."""
    return "the first final result counts" if cause is IgnoreCause.FINAL_COUNTED else ""


def experiment_text(reason: ExperimentReason) -> str:
    """Return the cause of a change of an experiment's state as text."""
    return _EXPERIMENT_TEXTS.get(reason.cause, reason.detail)
