"""Converters of the causes of ends, stops, losses, waits and changes of state.

A cause that only a newer version knows is read as UNSPECIFIED.
"""

from enum import IntEnum
from typing import Final, TypeVar

from nni_proto.experiment.v1 import experiment_pb2
from nni_proto.trial.v1 import cause_pb2
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
from svc_manager.converters.scalars import set_ms, to_ms

TEXT_LIMIT: Final = 64 * 1024
"""Maximum length of foreign texts in the log; of stderr and tracebacks the end is kept."""
_USERS_LIMIT: Final = 256
"""Maximum number of GPU users that the log holds for one delay, and of trials for one GPU."""

Member = TypeVar("Member", bound=IntEnum)


def _by_number(members: type[Member]) -> dict[int, Member]:
    return {int(member): member for member in members}


_ENDS: Final = _by_number(EndCause)
_STOPS: Final = _by_number(StopCause)
_LOSSES: Final = _by_number(LossCause)
_WAITS: Final = _by_number(WaitCause)
_IGNORED: Final = _by_number(IgnoreCause)
_CHANGES: Final = _by_number(ExperimentCause)
_SUCCEEDED: Final = EndReason(EndCause.SUCCEEDED)
_UNKNOWN_END: Final = EndCause.UNSPECIFIED


def end_from(message: cause_pb2.EndReason) -> EndReason:
    """Convert the proto message of a trial's end cause to the domain value, with texts cut."""
    cause = _ENDS.get(message.cause, _UNKNOWN_END)
    if cause is _SUCCEEDED.cause:
        return _SUCCEEDED
    return EndReason(
        cause,
        message.exit_code,
        message.signal,
        message.stderr_tail[-TEXT_LIMIT:],
        message.detail[-TEXT_LIMIT:],
        stop_from(message.stop) if message.HasField("stop") else None,
        message.lost_count,
        loss_from(message.loss) if message.HasField("loss") else None,
    )


def write_end(message: cause_pb2.EndReason, end: EndReason) -> None:
    """Write a domain cause of a trial's end into an empty proto message."""
    message.cause = end.cause  # type: ignore[assignment] # the contract's numbers
    if end.cause is _SUCCEEDED.cause:
        return
    message.exit_code = end.exit_code
    message.signal = end.signal
    message.stderr_tail = end.stderr_tail
    message.detail = end.detail
    message.lost_count = end.lost_count
    if end.stop is not None:
        write_stop(message.stop, end.stop)
    if end.loss is not None:
        write_loss(message.loss, end.loss)


def stop_from(message: cause_pb2.StopReason) -> StopReason:
    """Convert the proto cause of a stop to the domain value; text cut, unknown: UNSPECIFIED."""
    return StopReason(_STOPS.get(message.cause, StopCause.UNSPECIFIED), message.detail[:TEXT_LIMIT])


def write_stop(message: cause_pb2.StopReason, stop: StopReason) -> None:
    """Write the cause of a stop into an empty message."""
    message.cause = stop.cause.value  # type: ignore[assignment] # the contract's numbers
    message.detail = stop.detail


def loss_from(message: cause_pb2.LossReason) -> LossReason:
    """Convert the proto cause of a lost attempt to the domain value, with texts cut."""
    return LossReason(
        _LOSSES.get(message.cause, LossCause.UNSPECIFIED),
        to_ms(message.silence) if message.HasField("silence") else None,
        message.detail[:TEXT_LIMIT],
        end_from(message.end) if message.HasField("end") else None,
        message.runner_id,
    )


def write_loss(message: cause_pb2.LossReason, loss: LossReason) -> None:
    """Write a domain cause of a lost attempt into an empty proto message."""
    message.cause = loss.cause.value  # type: ignore[assignment] # the contract's numbers
    if loss.silence_ms is not None:
        set_ms(message.silence, loss.silence_ms)
    message.detail = loss.detail
    if loss.end is not None:
        write_end(message.end, loss.end)
    message.runner_id = loss.runner_id


def wait_from(message: cause_pb2.WaitReason) -> WaitReason:
    """Convert the proto cause of a trial's wait to the domain value, with texts cut."""
    return WaitReason(
        _WAITS.get(message.cause, WaitCause.UNSPECIFIED),
        message.gpu_count,
        message.gpu_available,
        message.gpu_restricted,
        tuple(map(_user_from, message.users[:_USERS_LIMIT])),
        message.object[:TEXT_LIMIT],
        message.detail[:TEXT_LIMIT],
        message.failure_count,
        message.remedy[:TEXT_LIMIT],
    )


def _user_from(message: cause_pb2.GpuUser) -> GpuUser:
    return GpuUser(
        message.index,
        tuple(message.trial_ids[:_USERS_LIMIT]),
        message.experiment_id,
        message.process[:TEXT_LIMIT],
    )


def write_wait(message: cause_pb2.WaitReason, wait: WaitReason) -> None:
    """Write why a trial waits (GPUs and their users, blob) into an empty proto message."""
    message.cause = wait.cause.value  # type: ignore[assignment] # the contract's numbers
    message.gpu_count = wait.gpu_count
    message.gpu_available = wait.gpu_available
    message.gpu_restricted = wait.gpu_restricted
    for user in wait.users:
        message.users.add(
            index=user.index,
            trial_ids=user.trial_ids,
            experiment_id=user.experiment_id,
            process=user.process,
        )
    message.object = wait.object
    message.detail = wait.detail
    message.failure_count = wait.failure_count
    message.remedy = wait.remedy


def ignore_cause_from(number: int) -> IgnoreCause:
    """Return the `IgnoreCause` with a contract's number; UNSPECIFIED if it is unknown."""
    return _IGNORED.get(number, IgnoreCause.UNSPECIFIED)


def experiment_reason_from(message: experiment_pb2.ExperimentReason) -> ExperimentReason:
    """Convert the proto cause of an experiment's change of state to the domain value."""
    return ExperimentReason(
        _CHANGES.get(message.cause, ExperimentCause.UNSPECIFIED), message.detail
    )


def write_experiment_reason(
    message: experiment_pb2.ExperimentReason, reason: ExperimentReason
) -> None:
    """Write the cause of an experiment's change of state into an empty proto message."""
    message.cause = reason.cause.value  # type: ignore[assignment] # the contract's numbers
    message.detail = reason.detail
