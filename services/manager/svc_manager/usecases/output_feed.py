"""Feed of a trial's output as its agent sends it, for trials on other machines."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Final

from google.protobuf.message import DecodeError

from nni_proto.experiment.v1 import experiment_service_pb2 as service_pb2
from nni_proto.trial.v1 import output_pb2
from svc_common.errors import AbortedError, NotFoundError
from svc_common.messaging.decoding import decode_counted
from svc_common.messaging.ports import LogChunk, LogLines
from svc_manager.actors.experiment_actor import ExperimentActor

OUTPUT_GRACE_S: Final = 3.0
"""Time to wait for the end of an ended trial's output, which its agent sends last, and never if
dead."""
_PARTS_LIMIT: Final = 1_000
"""Most parts of a piece of output, which has six fields: so many are counted in a millisecond."""


class OutputFeed:
    """Reader of a trial's stdout, stderr or samples from the bus, as its agent publishes them.

    Args:
        lines: output on the bus.
        actor: actor of the experiment.
        trial_id: the trial.
        stream: the stream.
        offset: first byte wanted of the current attempt.
        grace_s: time to wait for the end of an ended trial's output.
    """

    def __init__(
        self,
        lines: LogLines,
        actor: ExperimentActor,
        trial_id: str,
        stream: output_pb2.OutputStream.ValueType,
        offset: int,
        grace_s: float = OUTPUT_GRACE_S,
    ) -> None:
        self._lines = lines
        self._actor = actor
        self._trial_id = trial_id
        self._stream = stream
        self._offset = offset
        self._attempt = actor.experiment.trials[trial_id].attempt
        self._grace_s = grace_s
        self._ended = False

    async def read(self) -> AsyncGenerator[service_pb2.FollowLogsResponse, None]:
        """Yield the trial's output that the bus holds now, then end; raise if there is none.

        Raises:
            NotFoundError: it holds none.
        """
        last = await self._lines.last_sequence(self._actor.id, self._trial_id)
        if last == 0:
            raise NotFoundError("output of trial", self._trial_id)
        feed = self._lines.follow(self._actor.id, self._trial_id)
        try:
            async for chunk in feed:
                answer = self._take(chunk)
                if answer is not None:
                    yield answer
                if chunk.sequence >= last:
                    return
        finally:
            await feed.aclose()

    async def follow(self) -> AsyncGenerator[service_pb2.FollowLogsResponse, None]:
        """Yield a trial's output from the bus to its end, at most `grace_s` beyond the trial's end.

        Raises:
            AbortedError: the experiment was closed here; the client follows again.
        """
        feed = self._lines.follow(self._actor.id, self._trial_id)
        step: asyncio.Future[LogChunk] | None = None
        deadline: asyncio.Future[None] | None = None
        try:
            while True:
                change = self._actor.next_change
                over = self._over()
                if over and self._ended:
                    return
                if over and not self._actor.experiment.trials[self._trial_id].started_at_ms:
                    return  # it never ran, so no output follows
                if over and deadline is None:
                    deadline = asyncio.ensure_future(asyncio.sleep(self._grace_s))
                if not self._actor.alive:
                    raise AbortedError("the experiment was closed here; follow its log again")
                step = step or asyncio.ensure_future(anext(feed))
                await _first_of(step, deadline, None if over else change)
                if step.done():
                    answer = self._take(step.result())
                    step = None
                    if answer is not None:
                        yield answer
                elif deadline is not None and deadline.done():
                    return
        finally:
            await _cancel(step, deadline)
            await feed.aclose()

    def _over(self) -> bool:
        return not self._actor.experiment.trials[self._trial_id].live and not self._actor.deciding

    def _take(self, chunk: LogChunk) -> service_pb2.FollowLogsResponse | None:
        try:
            piece = decode_counted(output_pb2.TrialOutput, chunk.payload, _PARTS_LIMIT)
        except DecodeError:
            return None
        of_all = piece.at_end and piece.stream == output_pb2.OUTPUT_STREAM_UNSPECIFIED
        if (piece.stream != self._stream and not of_all) or piece.attempt < self._attempt:
            return None
        if piece.attempt > self._attempt:  # its agent was lost, and another attempt started
            self._attempt, self._offset, self._ended = piece.attempt, 0, False
        if piece.at_end:
            self._ended = True
            return None
        known = max(0, self._offset - piece.offset)
        data = piece.data[known:]
        if not data:
            return None
        self._offset = piece.offset + len(piece.data)
        return service_pb2.FollowLogsResponse(
            data=data, offset=piece.offset + known, attempt=piece.attempt
        )


async def _first_of(
    step: "asyncio.Future[LogChunk]",
    deadline: "asyncio.Future[None] | None",
    change: asyncio.Event | None,
) -> None:
    waits: set[asyncio.Future[object]] = {step}  # type: ignore[arg-type] # only waited for
    if deadline is not None:
        waits.add(deadline)  # type: ignore[arg-type] # as above
    changed = None if change is None else asyncio.ensure_future(change.wait())
    if changed is not None:
        waits.add(changed)  # type: ignore[arg-type] # as above
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if changed is not None:
            changed.cancel()


async def _cancel(*futures: "asyncio.Future[LogChunk] | asyncio.Future[None] | None") -> None:
    pending = [future for future in futures if future is not None]
    for future in pending:
        future.cancel()
    # A generator cannot be closed while a step of it is still being cancelled.
    await asyncio.gather(*pending, return_exceptions=True)


IsHere = Callable[[str], bool]
"""Returns whether the agent with this id runs on the manager's machine."""
