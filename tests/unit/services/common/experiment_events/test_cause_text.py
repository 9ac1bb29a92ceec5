"""Sentences of causes: one per cause, with its facts."""

import pytest

from svc_common.experiment_events.cause_text import (
    awaited_text,
    end_text,
    experiment_text,
    ignore_text,
    loss_text,
    stop_text,
    wait_text,
)
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

STOPPED = LossReason(LossCause.AGENT_STOPPED)


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (EndReason(EndCause.SUCCEEDED), ""),
        (EndReason(EndCause.EXIT_CODE, exit_code=3), "exit code 3"),
        (EndReason(EndCause.EXIT_CODE, exit_code=3, stderr_tail="boom"), "exit code 3: boom"),
        (EndReason(EndCause.SIGNAL, signal=9), "signal 9"),
        (EndReason(EndCause.SIGNAL, signal=9, stderr_tail="last"), "signal 9: last"),
        (EndReason(EndCause.NOT_STARTED, detail="no such file"), "no such file"),
        (EndReason(EndCause.NOT_STARTED), "its command could not be started"),
        (
            EndReason(EndCause.TIME_LIMIT, stderr_tail="warming up"),
            "it ran longer than maxTrialDuration",
        ),
        (EndReason(EndCause.STOPPED, stop=StopReason(StopCause.USER)), "killed by the user"),
        (EndReason(EndCause.STOPPED, stderr_tail="Terminated"), "its agent stopped it"),
        (
            EndReason(EndCause.LOST, lost_count=3, loss=STOPPED),
            "lost 3 times, last: its agent was stopped",
        ),
        (
            EndReason(EndCause.NEVER_STARTED, lost_count=21, loss=STOPPED),
            "could not be started 21 times, last: its agent was stopped",
        ),
        (EndReason(EndCause.CUT_OFF), "it was live when the experiment was cut off"),
        (EndReason(EndCause.UNSPECIFIED, detail="text of an old log"), "text of an old log"),
    ],
)
def test_end(end: EndReason, text: str) -> None:
    assert end_text(end) == text


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        (StopReason(StopCause.USER), "killed by the user"),
        (StopReason(StopCause.ASSESSOR), "stopped early"),
        (StopReason(StopCause.ASSESSOR, "below the median"), "below the median"),
        (StopReason(StopCause.EXPERIMENT_STOPPED), "the experiment was stopped"),
        (StopReason(StopCause.AGENT), "its agent stopped it"),
        (StopReason(StopCause.UNSPECIFIED, "text of an old log"), "text of an old log"),
    ],
)
def test_stop(stop: StopReason, text: str) -> None:
    assert stop_text(stop) == text


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (LossReason(LossCause.AGENT_RESTARTED), "its agent was restarted"),
        (STOPPED, "its agent was stopped"),
        (LossReason(LossCause.AGENT_LEFT), "its agent has left"),
        (
            LossReason(LossCause.AGENT_SILENT, silence_ms=45_400, runner_id="box-1"),
            "its agent box-1 has been silent for 45 s",
        ),
        (
            LossReason(LossCause.CLAIM_EXPIRED, silence_ms=60_000),
            "its task could not be renewed for 60 s",
        ),
        (LossReason(LossCause.CLAIM_EXPIRED), "its task could not be renewed for 0 s"),
        (LossReason(LossCause.UNKNOWN_TO_AGENT), "its agent knows nothing of it"),
        (LossReason(LossCause.AGENT_UNRESPONSIVE), "its agent does not answer"),
        (LossReason(LossCause.AGENT_FAILED, detail="disk full"), "disk full"),
        (LossReason(LossCause.AGENT_FAILED), "its agent failed"),
        (
            LossReason(
                LossCause.COMMAND_FAILED, end=EndReason(EndCause.EXIT_CODE, 3, stderr_tail="oh no")
            ),
            "exit code 3: oh no",
        ),
        (LossReason(LossCause.UNSPECIFIED, detail="power cut"), "power cut"),
        (LossReason(LossCause.NOT_STARTED, detail="full"), "it could not be started: full"),
    ],
)
def test_loss(loss: LossReason, text: str) -> None:
    assert loss_text(loss) == text


@pytest.mark.parametrize(
    ("wait", "text"),
    [
        (
            WaitReason(
                WaitCause.GPU_IN_USE,
                gpu_count=1,
                users=(
                    GpuUser(0, trial_ids=("one", "two")),
                    GpuUser(1, experiment_id="o"),
                    GpuUser(2, process="process 7"),
                ),
            ),
            "1 GPU: 0 in use by trial one and two, 1 in use by experiment o, 2 in use by process 7",
        ),
        (WaitReason(WaitCause.GPU_IN_USE, gpu_count=2), "2 GPUs"),
        (
            WaitReason(WaitCause.GPU_MISSING, gpu_count=3, gpu_available=2),
            "3 GPUs: this machine has 2",
        ),
        (
            WaitReason(WaitCause.GPU_MISSING, gpu_count=1, gpu_restricted=True),
            "1 GPU: this machine has 0 among those allowed by gpuIndices",
        ),
        (WaitReason(WaitCause.BLOB, object="its code"), "its code"),
        (
            WaitReason(WaitCause.ENVIRONMENT, detail="disk full", failure_count=1),
            "its environment (start failed once): disk full",
        ),
        (
            WaitReason(WaitCause.ENVIRONMENT, detail="disk full", failure_count=7),
            "its environment (start failed 7 times): disk full",
        ),
        (WaitReason(WaitCause.BLOB, object="its code", detail="no room"), "its code: no room"),
        (
            WaitReason(WaitCause.PLATFORM, detail="login refused", remedy="give a password"),
            "an agent of its pool: login refused",
        ),
    ],
)
def test_wait(wait: WaitReason, text: str) -> None:
    assert awaited_text(wait) == text
    assert wait_text(wait) == f"waiting for {text}"


def test_wait_of_an_older_version_is_its_text() -> None:
    wait = WaitReason(WaitCause.UNSPECIFIED, detail="no GPU is free")

    assert wait_text(wait) == awaited_text(wait) == "no GPU is free"


def test_ignored_report() -> None:
    assert ignore_text(IgnoreCause.FINAL_COUNTED) == "the first final result counts"


@pytest.mark.parametrize("cause", set(ExperimentCause) - {ExperimentCause.ALGORITHM_GAVE_UP})
def test_every_cause_of_an_experiment_has_a_text(cause: ExperimentCause) -> None:
    assert bool(experiment_text(ExperimentReason(cause))) is bool(cause)


def test_cause_of_an_error_is_the_message_of_the_algorithm() -> None:
    reason = ExperimentReason(ExperimentCause.ALGORITHM_GAVE_UP, "KeyError: 'x'")

    assert experiment_text(reason) == "KeyError: 'x'"
