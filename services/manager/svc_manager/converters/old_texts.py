"""Parser of the texts that older versions wrote instead of causes.

The only place where a text becomes a cause. A text that it does not know is the `detail` of an
UNSPECIFIED cause, so that people read what the older version wrote.
"""

import re
from collections.abc import Mapping
from typing import Final

from nni_proto.experiment.v1 import event_pb2, experiment_pb2
from nni_proto.trial.v1 import trial_pb2
from svc_common.experiment_events.cause_text import experiment_text, loss_text
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

_EXIT_CODE: Final = re.compile(r"exit code (\d+)(?:: (.*))?\Z", re.DOTALL)
_SIGNAL: Final = re.compile(r"signal (\d+)(?:: (.*))?\Z", re.DOTALL)
_LOST: Final = re.compile(r"lost (\d+) times, last: (.*)\Z", re.DOTALL)
_NEVER_STARTED: Final = re.compile(r"could not be started (\d+) times, last: (.*)\Z", re.DOTALL)
_SILENT: Final = re.compile(r"its agent (\S+) has been silent for (\d+) s\Z")
_EXPIRED: Final = re.compile(r"its task could not be renewed for ([\d.]+) s\Z")
_GPUS: Final = re.compile(r"(\d+) GPUs?(?:: (.*))?\Z", re.DOTALL)
_MISSING: Final = re.compile(r"this machine has (\d+)( among those allowed by gpuIndices)?\Z")
_USER: Final = re.compile(r"(\d+) in use by (?:trial (?P<trials>.+)|experiment (\S+)|(.+))\Z")

_WAITING: Final = "waiting for "
_TIME_LIMIT: Final = "its time limit has passed"
_CUT_OFF: Final = "it was live when the experiment was cut off"
_STOPPED_EARLY: Final = "stopped early"
_EXPERIMENT_STOPPED: Final = "the experiment was stopped"
_MS_PER_S: Final = 1000

_LOSSES: Final[Mapping[str, LossReason]] = {
    loss_text(LossReason(cause)): LossReason(cause)
    for cause in (
        LossCause.AGENT_RESTARTED,
        LossCause.AGENT_STOPPED,
        LossCause.AGENT_LEFT,
        LossCause.UNKNOWN_TO_AGENT,
        LossCause.AGENT_UNRESPONSIVE,
    )
}
_CHANGES: Final[Mapping[str, ExperimentReason]] = {
    experiment_text(ExperimentReason(cause)): ExperimentReason(cause)
    for cause in ExperimentCause
    if cause not in {ExperimentCause.UNSPECIFIED, ExperimentCause.ALGORITHM_GAVE_UP}
}
_STOPPED_STATES: Final = {
    trial_pb2.TRIAL_STATE_USER_CANCELED,
    trial_pb2.TRIAL_STATE_SYS_CANCELED,
}


def old_end(message: event_pb2.TrialEnded) -> EndReason:
    """Derive the typed cause of a trial's end from an old event's state, exit code and text.

    A trial that is EARLY_STOPPED was stopped by the assessor, whose words are the text, or by its
    time limit, with stderr as the text. Only the state of the trial tells which; the cause is
    UNSPECIFIED then.
    """
    text = message.reason
    if message.state == trial_pb2.TRIAL_STATE_SUCCEEDED:
        return EndReason(EndCause.SUCCEEDED)
    if message.state in _STOPPED_STATES:
        return EndReason(EndCause.STOPPED, stop=_old_stop(message.state, text))
    if message.state == trial_pb2.TRIAL_STATE_EARLY_STOPPED:
        if text == _TIME_LIMIT:
            return EndReason(EndCause.TIME_LIMIT)
        return EndReason(EndCause.UNSPECIFIED, detail=text)
    return _old_failure(text, has_exit_code=message.HasField("exit_code"))


def _old_failure(text: str, *, has_exit_code: bool) -> EndReason:
    end = _command_end(text)
    if end is not None and (end.cause is EndCause.EXIT_CODE) is has_exit_code:
        return end
    if (match := _LOST.match(text)) is not None:
        return EndReason(EndCause.LOST, lost_count=int(match[1]), loss=old_loss_text(match[2]))
    if (match := _NEVER_STARTED.match(text)) is not None:
        loss = old_loss_text(match[2])
        return EndReason(EndCause.NEVER_STARTED, lost_count=int(match[1]), loss=loss)
    if text == _CUT_OFF:
        return EndReason(EndCause.CUT_OFF)
    return EndReason(EndCause.NOT_STARTED if text else EndCause.UNSPECIFIED, detail=text)


def _command_end(text: str) -> EndReason | None:
    if (match := _EXIT_CODE.match(text)) is not None:
        return EndReason(EndCause.EXIT_CODE, exit_code=int(match[1]), stderr_tail=match[2] or "")
    if (match := _SIGNAL.match(text)) is not None:
        return EndReason(EndCause.SIGNAL, signal=int(match[1]), stderr_tail=match[2] or "")
    return None


def old_stop(message: event_pb2.TrialStopRequested) -> StopReason:
    """Derive the typed cause of a stop from an old event's end state and text."""
    return _old_stop(message.end_state, message.reason)


def _old_stop(end_state: trial_pb2.TrialState.ValueType, text: str) -> StopReason:
    if end_state == trial_pb2.TRIAL_STATE_USER_CANCELED:
        return StopReason(StopCause.USER)
    if end_state == trial_pb2.TRIAL_STATE_EARLY_STOPPED:
        return StopReason(StopCause.ASSESSOR, "" if text == _STOPPED_EARLY else text)
    if text == _EXPERIMENT_STOPPED:
        return StopReason(StopCause.EXPERIMENT_STOPPED)
    return StopReason(StopCause.UNSPECIFIED, text) if text else StopReason(StopCause.AGENT)


def old_loss(message: event_pb2.TrialLost) -> LossReason:
    """Derive the typed cause of a lost attempt from an old event's text and flag."""
    if not message.command_failed:
        return old_loss_text(message.reason)
    end = _command_end(message.reason) or EndReason(EndCause.NOT_STARTED, detail=message.reason)
    return LossReason(LossCause.COMMAND_FAILED, end=end)


def old_loss_text(text: str) -> LossReason:
    """Parse an old event's text to the typed cause of a lost attempt; unknown text: UNSPECIFIED."""
    if text in _LOSSES:
        return _LOSSES[text]
    if (match := _SILENT.match(text)) is not None:
        return LossReason(
            LossCause.AGENT_SILENT, silence_ms=int(match[2]) * _MS_PER_S, runner_id=match[1]
        )
    if (match := _EXPIRED.match(text)) is not None:
        silence_ms = round(float(match[1]) * _MS_PER_S)
        return LossReason(LossCause.CLAIM_EXPIRED, silence_ms=silence_ms)
    return LossReason(LossCause.UNSPECIFIED, detail=text)


def old_wait(message: event_pb2.TrialWaits) -> WaitReason:
    """Parse an old event's text to the typed cause of a trial's wait; unknown: UNSPECIFIED."""
    return old_wait_text(message.reason)


def old_wait_text(text: str) -> WaitReason:
    """Parse an old text on waiting for GPUs or a blob to a typed cause; else UNSPECIFIED."""
    awaited = text.removeprefix(_WAITING)
    if awaited == text:
        return WaitReason(WaitCause.UNSPECIFIED, detail=text)
    gpus = _GPUS.match(awaited)
    if gpus is None:
        name, _, detail = awaited.partition(": ")
        return WaitReason(WaitCause.BLOB, object=name, detail=detail)
    count, rest = int(gpus[1]), gpus[2] or ""
    if (missing := _MISSING.match(rest)) is not None:
        return WaitReason(
            WaitCause.GPU_MISSING,
            gpu_count=count,
            gpu_available=int(missing[1]),
            gpu_restricted=missing[2] is not None,
        )
    users = [_old_user(part) for part in rest.split(", ")] if rest else []
    known = tuple(user for user in users if user is not None)
    if len(known) < len(users):
        return WaitReason(WaitCause.UNSPECIFIED, detail=text)
    return WaitReason(WaitCause.GPU_IN_USE, gpu_count=count, users=known)


def _old_user(text: str) -> GpuUser | None:
    match = _USER.match(text)
    if match is None:
        return None
    index = int(match[1])
    if match["trials"]:
        return GpuUser(index, trial_ids=tuple(match["trials"].split(" and ")))
    return GpuUser(index, experiment_id=match[3] or "", process=match[4] or "")


def old_ignore(_message: event_pb2.ReportIgnored) -> IgnoreCause:
    """Return the only cause for which older versions ignored a report."""
    return IgnoreCause.FINAL_COUNTED


def old_experiment_reason(
    message: event_pb2.ExperimentStateChanged | event_pb2.ExperimentEnded,
) -> ExperimentReason:
    """Derive the typed cause of an experiment's change of state from an old event's text."""
    if isinstance(message, event_pb2.ExperimentEnded):
        state, name = message.final_state, message.state
    else:
        state, name = message.new_state, message.to_state
    text = message.reason
    if state == experiment_pb2.EXPERIMENT_STATE_ERROR or name == "ERROR":
        return ExperimentReason(ExperimentCause.ALGORITHM_GAVE_UP, text)
    return _CHANGES.get(text) or ExperimentReason(ExperimentCause.UNSPECIFIED, text)
