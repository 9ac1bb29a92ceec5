"""Causes from messages: limits, and numbers of newer versions; round trips are in `test_events`."""

from nni_proto.experiment.v1 import experiment_pb2
from nni_proto.trial.v1 import cause_pb2
from svc_common.experiment_events.causes import (
    EndCause,
    ExperimentCause,
    ExperimentReason,
    IgnoreCause,
    LossCause,
    StopCause,
    WaitCause,
)
from svc_manager.converters.reasons import (
    TEXT_LIMIT,
    end_from,
    experiment_reason_from,
    ignore_cause_from,
    loss_from,
    stop_from,
    wait_from,
)

NEWER = 999


def test_causes_of_a_newer_version_are_unspecified() -> None:
    end = cause_pb2.EndReason(cause=NEWER, stderr_tail="tail")  # type: ignore[arg-type] # a newer number
    loss = cause_pb2.LossReason(cause=NEWER)  # type: ignore[arg-type] # a newer number
    stop = cause_pb2.StopReason(cause=NEWER)  # type: ignore[arg-type] # a newer number
    wait = cause_pb2.WaitReason(cause=NEWER)  # type: ignore[arg-type] # a newer number
    change = experiment_pb2.ExperimentReason(cause=NEWER)  # type: ignore[arg-type] # a newer number

    assert end_from(end).cause is EndCause.UNSPECIFIED
    assert end_from(end).stderr_tail == "tail"
    assert loss_from(loss).cause is LossCause.UNSPECIFIED
    assert stop_from(stop).cause is StopCause.UNSPECIFIED
    assert wait_from(wait).cause is WaitCause.UNSPECIFIED
    assert experiment_reason_from(change) == ExperimentReason(ExperimentCause.UNSPECIFIED)
    assert ignore_cause_from(NEWER) is IgnoreCause.UNSPECIFIED


def test_texts_of_agents_are_limited() -> None:
    long = "x" * TEXT_LIMIT + "end"
    wait = cause_pb2.WaitReason(object=long, detail=long)
    wait.users.add(process=long, trial_ids=["t"] * 10_000)
    wait.users.extend([cause_pb2.GpuUser()] * 10_000)

    read = wait_from(wait)

    assert len(loss_from(cause_pb2.LossReason(detail=long)).detail) == TEXT_LIMIT
    assert (len(read.object), len(read.detail)) == (TEXT_LIMIT, TEXT_LIMIT)
    assert len(read.users[0].process) == TEXT_LIMIT
    assert len(read.users[0].trial_ids) == len(read.users) == 256


def test_end_of_stderr_is_kept() -> None:
    end = end_from(cause_pb2.EndReason(stderr_tail="x" * TEXT_LIMIT + "KeyError"))

    assert len(end.stderr_tail) == TEXT_LIMIT
    assert end.stderr_tail.endswith("KeyError")
