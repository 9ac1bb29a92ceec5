"""Session of one trial on the socket: returns its parameters and accepts its metrics."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from nni_wire.limits import INLINE_VALUE_LIMIT_BYTES
from svc_common.clock import Clock
from svc_common.errors import ServiceError
from svc_trial_runner.attempts.trial_checkpoints import AttemptCheckpoints
from svc_trial_runner.domain.channel import (
    REPLY_OK,
    ChannelError,
    CheckpointRequest,
    Report,
    refusal,
    reply,
)
from svc_trial_runner.domain.reports import MetricReported
from svc_trial_runner.domain.tasks import TrialWork
from svc_trial_runner.ports import LargeValues, LaunchError, WaitingProcess


class FlowControl(Protocol):
    """Interface of the limit on unsent metrics, which makes trials wait."""

    @property
    def has_room(self) -> bool:
        """True if one more metric may be sent."""
        ...

    async def wait_room(self) -> None:
        """Wait until one more metric may be sent."""
        ...


class AttemptSession:
    """Handler of one trial's socket requests: hello, parameters, metrics, checkpoints, next.

    Args:
        work: task of the attempt.
        parameters: of the trial, a JSON value.
        values: stores metrics that are too large for a message.
        clock: source of the metrics' time.
        room: limit under which metrics wait.
        report_metric: sends a metric to the manager; returns False if the attempt is over.
        keep_process: ends the attempt and keeps its process for another one, see
            `TrialSession.wait_for_next`; None: the process is for this attempt alone.
        checkpoints: copies and stores the checkpoints of the trial; None: it may save none.
    """

    def __init__(
        self,
        work: TrialWork,
        parameters: Any,  # noqa: ANN401 - any JSON value
        values: LargeValues,
        clock: Clock,
        room: FlowControl,
        report_metric: Callable[[MetricReported], bool],
        keep_process: Callable[[WaitingProcess], bool] | None = None,
        checkpoints: AttemptCheckpoints | None = None,
    ) -> None:
        self._work = work
        self._parameters = parameters
        self._values = values
        self._clock = clock
        self._room = room
        self._report_metric = report_metric
        self._keep_process = keep_process
        self._checkpoints = checkpoints
        self._next = {False: 0, True: 0}
        """Number of the next metric, by whether it is final."""

    def greet(self) -> bytes:
        """Return the JSON reply to the trial's hello: ids, and whether `next` may be requested."""
        key = self._work.key
        return reply(
            experiment=key.experiment_id,
            trial=key.trial_id,
            sequence=self._work.sequence_id,
            next=self._keep_process is not None,
        )

    def parameters(self) -> bytes:
        """Return the JSON reply with the trial's parameters and their id."""
        return reply(
            parameter_id=self._work.parameter_id, parameters=self._parameters, parameter_index=0
        )

    def report(self, report: Report, pid: int) -> bytes | asyncio.Future[bytes]:
        """Send a metric, ignore a repeat, raise on a gap; return the reply, or a future of it.

        A large metric gives a future, and one that must wait for room.

        Raises:
            ChannelError: the sequence has a gap, the value cannot be kept, or the trial is over; a
                future has a refusal as its reply instead.
        """
        expected = self._next[report.final]
        if report.sequence is not None and report.sequence != expected:
            if report.sequence < expected:
                return REPLY_OK  # repeated: already accepted
            raise ChannelError(f"sequence must be {expected}, got {report.sequence} (pid {pid})")
        if report.size_bytes > INLINE_VALUE_LIMIT_BYTES or not self._room.has_room:
            return asyncio.ensure_future(self._take_slowly(report))
        self._take(report, report.value)
        return REPLY_OK

    def save_checkpoint(self, request: CheckpointRequest) -> bytes | asyncio.Future[bytes]:
        """Start a copy of the trial's checkpoint folder; return a future of the reply at its end.

        A copy that fails, as on a full disk, is no error of the trial: the reply has a warning.

        Raises:
            ChannelError: this agent stores no checkpoints.
        """
        if self._checkpoints is None:
            raise ChannelError("this agent stores no checkpoints")
        return asyncio.ensure_future(self._save_checkpoint(self._checkpoints, request))

    async def _save_checkpoint(
        self, checkpoints: AttemptCheckpoints, request: CheckpointRequest
    ) -> bytes:
        try:
            step = await checkpoints.save(request.step)
        except (OSError, ServiceError) as error:
            return reply(warning=f"the checkpoint is not saved: {error}")
        return reply(step=step)

    def wait_for_next(self, process: WaitingProcess) -> bool:
        """End the attempt with success and keep its process; False: nothing is changed."""
        return self._keep_process is not None and self._keep_process(process)

    def _take(self, report: Report, value: Any) -> None:  # noqa: ANN401 - any JSON value
        number = self._next[report.final]
        try:
            accepted = self._report_metric(
                MetricReported(report.final, number, value, self._clock.now())
            )
        except (TypeError, ValueError) as error:
            raise ChannelError(f"value cannot be kept: {error}") from error
        if not accepted:
            raise ChannelError("this trial is over")
        self._next[report.final] = number + 1

    async def _take_slowly(self, report: Report) -> bytes:
        """Store a large metric, wait for room, send it; return the reply or refusal."""
        try:
            value = report.value
            if report.size_bytes > INLINE_VALUE_LIMIT_BYTES:
                value = await self._values.store(self._work.key, value)
            await self._room.wait_room()
            if report.sequence is not None and report.sequence < self._next[report.final]:
                return REPLY_OK  # repeated on another connection, and accepted meanwhile
            self._take(report, value)
        except (LaunchError, ChannelError) as error:
            return refusal(str(error))
        return REPLY_OK
