"""What clients follow: the facts of an experiment, and its logs."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Final

from nni_proto.experiment.v1 import event_pb2
from nni_proto.experiment.v1 import experiment_service_pb2 as service_pb2
from svc_common.errors import AbortedError, InvalidArgumentError, NotFoundError
from svc_common.messaging.ports import EventLog
from svc_manager.actor import ExperimentActor
from svc_manager.converters.events import batch_from_bytes
from svc_manager.converters.views import mask_event
from svc_manager.domain.experiment import CLOSED_STATES
from svc_manager.ports import FileWatch, FileWatches

CHUNK_BYTES: Final = 256 * 1024

_FILES: Final = {
    service_pb2.LOG_SOURCE_MANAGER: "log/nnimanager.log",
    service_pb2.LOG_SOURCE_DISPATCHER: "log/dispatcher.log",
}
_TRIAL_FILES: Final = {
    service_pb2.LOG_SOURCE_TRIAL_LOG: "trial.log",
    service_pb2.LOG_SOURCE_TRIAL_STDOUT: "stdout",
    service_pb2.LOG_SOURCE_TRIAL_STDERR: "stderr",
}


async def follow_events(
    events: EventLog,
    experiment_id: str,
    after: event_pb2.EventPosition | None,
    *,
    follow: bool,
) -> AsyncGenerator[service_pb2.FollowEventsResponse, None]:
    """Give the facts behind ``after``, secrets masked; with ``follow`` without an end."""
    start = (after.sequence, after.index) if after is not None else (0, -1)
    before = max(0, start[0] - 1)
    read = events.follow if follow else events.read
    async with aclosing(read(experiment_id, before)) as feed:
        async for message in feed:
            batch = batch_from_bytes(message.payload)
            for index, event in enumerate(batch.events):
                if (message.sequence, index) > start:
                    mask_event(event)
                    yield service_pb2.FollowEventsResponse(
                        position=event_pb2.EventPosition(sequence=message.sequence, index=index),
                        time=batch.time,
                        event=event,
                    )


class LogFeeds:
    """Gives logs of experiments whose folder is on this machine.

    Args:
        watches: tells that a file has grown.
    """

    def __init__(self, watches: FileWatches) -> None:
        self._watches = watches

    def follow(
        self,
        actor: ExperimentActor,
        source: service_pb2.LogSource.ValueType,
        trial_id: str,
        offset: int,
        *,
        follow: bool,
    ) -> AsyncGenerator[service_pb2.FollowLogsResponse, None]:
        """Give a log from ``offset`` on; with ``follow`` until its writer is done.

        Raises:
            InvalidArgumentError: there is no such log.
            NotFoundError: the trial is unknown, or nothing was written (and it is not followed).
        """
        if offset < 0:
            raise InvalidArgumentError("offset", "must be >= 0", offset)
        folder = Path(actor.experiment.directory)
        if source in _FILES:
            path = folder / _FILES[source]
            over: Callable[[ExperimentActor], bool] = _closed
        elif source in _TRIAL_FILES:
            if trial_id not in actor.experiment.trials:
                raise NotFoundError("trial", trial_id)
            path = folder / "trials" / trial_id / _TRIAL_FILES[source]
            over = _ended(trial_id)
        else:
            raise InvalidArgumentError("source", "must name a log", source)
        if follow:
            return self._grow(actor, path, offset, over)
        return _read_once(path, offset)

    async def _grow(
        self,
        actor: ExperimentActor,
        path: Path,
        offset: int,
        over: Callable[[ExperimentActor], bool],
    ) -> AsyncGenerator[service_pb2.FollowLogsResponse, None]:
        async with AsyncExitStack() as stack:
            watch: FileWatch | None = None
            while True:
                change = actor.next_change
                # What a round decides is seen before it is written: its lines are still to come.
                last = over(actor) and not actor.deciding
                if watch is None and await asyncio.to_thread(path.exists):
                    watch = await stack.enter_async_context(self._watches.watch(path))
                while data := await asyncio.to_thread(_read, path, offset):
                    yield service_pb2.FollowLogsResponse(data=data, offset=offset)
                    offset += len(data)
                if last:
                    return
                if not actor.alive:
                    raise AbortedError("the experiment was closed here; follow its log again")
                await _either(change, watch)


def _closed(actor: ExperimentActor) -> bool:
    return actor.experiment.state in CLOSED_STATES


def _ended(trial_id: str) -> Callable[[ExperimentActor], bool]:
    def over(actor: ExperimentActor) -> bool:
        return not actor.experiment.trials[trial_id].live

    return over


async def _either(change: asyncio.Event, watch: FileWatch | None) -> None:
    waits: list[asyncio.Future[bool]] = [asyncio.ensure_future(change.wait())]
    if watch is not None:
        waits.append(asyncio.ensure_future(_changed(watch)))
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


async def _changed(watch: FileWatch) -> bool:
    await watch.changed()
    return True


def _read(path: Path, offset: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(CHUNK_BYTES)
    except FileNotFoundError:
        return b""


async def _read_once(
    path: Path, offset: int
) -> AsyncGenerator[service_pb2.FollowLogsResponse, None]:
    if not await asyncio.to_thread(path.exists):
        raise NotFoundError("log", path.name)
    while data := await asyncio.to_thread(_read, path, offset):
        yield service_pb2.FollowLogsResponse(data=data, offset=offset)
        offset += len(data)
