"""Causes of the texts that older versions wrote."""

import pytest

from nni_proto.experiment.v1 import event_pb2, experiment_pb2
from nni_proto.trial.v1 import trial_pb2
from svc_common.experiment_events.cause_text import end_text, loss_text, stop_text, wait_text
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
from svc_manager.converters.old_texts import (
    old_end,
    old_experiment_reason,
    old_ignore,
    old_loss,
    old_loss_text,
    old_stop,
    old_wait,
    old_wait_text,
)

USERS = "waiting for 2 GPUs: 0 in use by trial a and b, 1 in use by experiment e, 2 in use by p"
STOPPED = LossReason(LossCause.AGENT_STOPPED)


def ended(state: str, reason: str, exit_code: int | None = None) -> EndReason:
    message = event_pb2.TrialEnded(
        state=trial_pb2.TrialState.Value(f"TRIAL_STATE_{state}"), reason=reason
    )
    if exit_code is not None:
        message.exit_code = exit_code
    return old_end(message)


@pytest.mark.parametrize(
    ("text", "exit_code", "end"),
    [
        ("exit code 1", 1, EndReason(EndCause.EXIT_CODE, exit_code=1)),
        (
            "exit code 2: Traceback: 3\nValueError: signal 9",
            2,
            EndReason(EndCause.EXIT_CODE, 2, stderr_tail="Traceback: 3\nValueError: signal 9"),
        ),
        ("signal 9", None, EndReason(EndCause.SIGNAL, signal=9)),
        (
            "signal 11: exit code 1",
            None,
            EndReason(EndCause.SIGNAL, signal=11, stderr_tail="exit code 1"),
        ),
        (
            "lost 3 times, last: its agent was stopped",
            None,
            EndReason(EndCause.LOST, lost_count=3, loss=STOPPED),
        ),
        (
            "could not be started 21 times, last: its agent was stopped",
            None,
            EndReason(EndCause.NEVER_STARTED, lost_count=21, loss=STOPPED),
        ),
        ("it was live when the experiment was cut off", None, EndReason(EndCause.CUT_OFF)),
        ("no such file", None, EndReason(EndCause.NOT_STARTED, detail="no such file")),
        ("exit code 3: git", None, EndReason(EndCause.NOT_STARTED, detail="exit code 3: git")),
        ("", None, EndReason(EndCause.UNSPECIFIED)),
    ],
)
def test_failure(text: str, exit_code: int | None, end: EndReason) -> None:
    assert ended("FAILED", text, exit_code) == end
    assert end_text(end) == text


def test_success_has_no_text() -> None:
    assert ended("SUCCEEDED", "", 0) == EndReason(EndCause.SUCCEEDED)


@pytest.mark.parametrize(
    ("state", "text", "stop"),
    [
        ("USER_CANCELED", "killed by the user", StopReason(StopCause.USER)),
        (
            "SYS_CANCELED",
            "the experiment was stopped",
            StopReason(StopCause.EXPERIMENT_STOPPED),
        ),
        ("SYS_CANCELED", "Terminated", StopReason(StopCause.UNSPECIFIED, "Terminated")),
    ],
)
def test_stopped_trial(state: str, text: str, stop: StopReason) -> None:
    assert ended(state, text) == EndReason(EndCause.STOPPED, stop=stop)
    assert stop_text(stop) == text


def test_stop_without_a_text_was_the_agents() -> None:
    assert ended("SYS_CANCELED", "").stop == StopReason(StopCause.AGENT)


def test_time_limit_without_stderr_is_known() -> None:
    assert ended("EARLY_STOPPED", "its time limit has passed") == EndReason(EndCause.TIME_LIMIT)


def test_other_early_stop_is_left_to_the_state_of_the_trial() -> None:
    end = EndReason(EndCause.UNSPECIFIED, detail="below the median")

    assert ended("EARLY_STOPPED", "below the median") == end


@pytest.mark.parametrize(
    ("state", "text", "stop"),
    [
        ("USER_CANCELED", "killed by the user", StopReason(StopCause.USER)),
        ("EARLY_STOPPED", "stopped early", StopReason(StopCause.ASSESSOR)),
        ("EARLY_STOPPED", "too slow", StopReason(StopCause.ASSESSOR, "too slow")),
        ("SYS_CANCELED", "the experiment was stopped", StopReason(StopCause.EXPERIMENT_STOPPED)),
    ],
)
def test_stop_request(state: str, text: str, stop: StopReason) -> None:
    message = event_pb2.TrialStopRequested(
        end_state=trial_pb2.TrialState.Value(f"TRIAL_STATE_{state}"), reason=text
    )

    assert old_stop(message) == stop
    assert stop_text(stop) == text


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        ("its agent was restarted", LossReason(LossCause.AGENT_RESTARTED)),
        ("its agent was stopped", STOPPED),
        ("its agent has left", LossReason(LossCause.AGENT_LEFT)),
        ("its agent knows nothing of it", LossReason(LossCause.UNKNOWN_TO_AGENT)),
        ("its agent does not answer", LossReason(LossCause.AGENT_UNRESPONSIVE)),
        (
            "its agent box-1 has been silent for 45 s",
            LossReason(LossCause.AGENT_SILENT, silence_ms=45_000, runner_id="box-1"),
        ),
        (
            "its task could not be renewed for 2.5 s",
            LossReason(LossCause.CLAIM_EXPIRED, silence_ms=2_500),
        ),
        ("power cut", LossReason(LossCause.UNSPECIFIED, detail="power cut")),
    ],
)
def test_loss(text: str, loss: LossReason) -> None:
    assert old_loss_text(text) == old_loss(event_pb2.TrialLost(reason=text)) == loss
    assert loss_text(loss) == text


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("exit code 3: boom", EndReason(EndCause.EXIT_CODE, exit_code=3, stderr_tail="boom")),
        ("no such file", EndReason(EndCause.NOT_STARTED, detail="no such file")),
    ],
)
def test_command_that_was_run_again(text: str, end: EndReason) -> None:
    loss = old_loss(event_pb2.TrialLost(reason=text, command_failed=True))

    assert loss == LossReason(LossCause.COMMAND_FAILED, end=end)
    assert loss_text(loss) == text


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("waiting for 1 GPU", WaitReason(WaitCause.GPU_IN_USE, gpu_count=1)),
        (
            USERS,
            WaitReason(
                WaitCause.GPU_IN_USE,
                gpu_count=2,
                users=(
                    GpuUser(0, trial_ids=("a", "b")),
                    GpuUser(1, experiment_id="e"),
                    GpuUser(2, process="p"),
                ),
            ),
        ),
        (
            "waiting for 3 GPUs: this machine has 2",
            WaitReason(WaitCause.GPU_MISSING, gpu_count=3, gpu_available=2),
        ),
        (
            "waiting for 1 GPU: this machine has 0 among those allowed by gpuIndices",
            WaitReason(WaitCause.GPU_MISSING, gpu_count=1, gpu_restricted=True),
        ),
        (
            "waiting for 1 GPU: something else",
            WaitReason(WaitCause.UNSPECIFIED, detail="waiting for 1 GPU: something else"),
        ),
        ("waiting for its code", WaitReason(WaitCause.BLOB, object="its code")),
        (
            "waiting for its code: no room: 1 MB",
            WaitReason(WaitCause.BLOB, object="its code", detail="no room: 1 MB"),
        ),
        ("no GPU is free", WaitReason(WaitCause.UNSPECIFIED, detail="no GPU is free")),
    ],
)
def test_wait(text: str, wait: WaitReason) -> None:
    assert old_wait_text(text) == old_wait(event_pb2.TrialWaits(reason=text)) == wait
    assert wait_text(wait) == text


def test_report_was_ignored_for_one_cause_only() -> None:
    message = event_pb2.ReportIgnored(reason="the first final result counts")

    assert old_ignore(message) is IgnoreCause.FINAL_COUNTED


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("created", ExperimentCause.CREATED),
        ("the algorithm has started", ExperimentCause.ALGORITHM_STARTED),
        ("the trial number is reached", ExperimentCause.TRIAL_NUMBER),
        ("the longest duration has passed", ExperimentCause.DURATION),
        ("the algorithm has no more parameters", ExperimentCause.NO_MORE_PARAMETERS),
        ("stopped by the user", ExperimentCause.STOPPED_BY_USER),
        ("the manager was terminated", ExperimentCause.MANAGER_TERMINATED),
        ("resumed", ExperimentCause.RESUMED),
        ("opened for reading", ExperimentCause.OPENED_FOR_READING),
        ("its log was copied", ExperimentCause.LOG_COPIED),
        ("", ExperimentCause.UNSPECIFIED),
    ],
)
def test_change_of_state(text: str, cause: ExperimentCause) -> None:
    stopped = experiment_pb2.EXPERIMENT_STATE_STOPPED

    changed = old_experiment_reason(event_pb2.ExperimentStateChanged(to_state="X", reason=text))
    ended = old_experiment_reason(event_pb2.ExperimentEnded(final_state=stopped, reason=text))

    assert changed == ended == ExperimentReason(cause)


def test_unknown_text_of_a_change_is_its_detail() -> None:
    changed = event_pb2.ExperimentStateChanged(to_state="STOPPING", reason="by a script")

    assert old_experiment_reason(changed) == ExperimentReason(
        ExperimentCause.UNSPECIFIED, "by a script"
    )


@pytest.mark.parametrize(
    "message",
    [
        event_pb2.ExperimentStateChanged(to_state="ERROR", reason="KeyError: 'x'"),
        event_pb2.ExperimentStateChanged(
            new_state=experiment_pb2.EXPERIMENT_STATE_ERROR, reason="KeyError: 'x'"
        ),
        event_pb2.ExperimentEnded(state="ERROR", reason="KeyError: 'x'"),
        event_pb2.ExperimentEnded(
            final_state=experiment_pb2.EXPERIMENT_STATE_ERROR, reason="KeyError: 'x'"
        ),
    ],
)
def test_error_is_the_algorithms(
    message: event_pb2.ExperimentStateChanged | event_pb2.ExperimentEnded,
) -> None:
    expected = ExperimentReason(ExperimentCause.ALGORITHM_GAVE_UP, "KeyError: 'x'")

    assert old_experiment_reason(message) == expected
