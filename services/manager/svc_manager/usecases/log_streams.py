"""Streams for clients: the events of an experiment, and its logs."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

from nni_proto.experiment.v1 import config_pb2, event_pb2
from nni_proto.experiment.v1 import experiment_service_pb2 as service_pb2
from nni_proto.trial.v1 import output_pb2
from svc_common.errors import AbortedError, InvalidArgumentError, NotFoundError
from svc_common.experiment_files import ExperimentRoots
from svc_common.messaging.ports import EventLog, LogLines
from svc_common.tasks import wait_first
from svc_manager.actors.experiment_actor import ExperimentActor
from svc_manager.blobs.trial_outputs import TrialOutputs
from svc_manager.converters.events import batch_from_bytes
from svc_manager.converters.shared_storage import storage_of
from svc_manager.converters.views import mask_event
from svc_manager.domain.experiment import CLOSED_STATES
from svc_manager.domain.trial import TrialState
from svc_manager.ports import FileWatch, FileWatches, FolderOpener
from svc_manager.usecases.output_feed import IsHere, OutputFeed

CHUNK_BYTES: Final = 256 * 1024

_Condition: TypeAlias = Callable[[ExperimentActor], bool]

_FILES: Final = {
    service_pb2.LOG_SOURCE_MANAGER: "log/nnimanager.log",
    service_pb2.LOG_SOURCE_DISPATCHER: "log/dispatcher.log",
}
_TRIAL_FILES: Final = {
    service_pb2.LOG_SOURCE_TRIAL_LOG: "trial.log",
    service_pb2.LOG_SOURCE_TRIAL_STDOUT: "stdout",
    service_pb2.LOG_SOURCE_TRIAL_STDERR: "stderr",
    service_pb2.LOG_SOURCE_TRIAL_RESOURCES: ".nni/resources.jsonl",
}


_TRIAL_STREAMS: Final = {
    service_pb2.LOG_SOURCE_TRIAL_LOG: output_pb2.OUTPUT_STREAM_STDOUT,
    service_pb2.LOG_SOURCE_TRIAL_STDOUT: output_pb2.OUTPUT_STREAM_STDOUT,
    service_pb2.LOG_SOURCE_TRIAL_STDERR: output_pb2.OUTPUT_STREAM_STDERR,
    service_pb2.LOG_SOURCE_TRIAL_RESOURCES: output_pb2.OUTPUT_STREAM_RESOURCES,
}


async def follow_events(
    events: EventLog,
    experiment_id: str,
    after: event_pb2.EventPosition | None,
    *,
    follow: bool,
) -> AsyncGenerator[service_pb2.FollowEventsResponse, None]:
    """Yield an experiment's events after a position, masked; `follow`: also new ones."""
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


class LogStreams:
    """Reader of experiments' logs and trials' output, from files on this machine or over the bus.

    The files of a trial on this machine are followed as they grow. Files on other machines are
    missing here, or a shared file system would not signal their growth: their agents send the
    output. The files of an ended trial are read, if they exist.

    Args:
        watches: signals the growth of files.
        lines: output that agents send.
        is_here: returns whether an agent runs on this machine.
        outputs: stored outputs of other machines; None: there are none.
        folders: opens the experiments' folders.
    """

    def __init__(
        self,
        watches: FileWatches,
        lines: LogLines,
        is_here: IsHere,
        outputs: TrialOutputs | None = None,
        folders: FolderOpener | None = None,
    ) -> None:
        self._folders = folders or ExperimentRoots()
        self._watches = watches
        self._lines = lines
        self._is_here = is_here
        self._outputs = outputs

    async def fetch(self, actor: ExperimentActor, trial_id: str) -> None:
        """Download an ended trial's stored output into its folder if missing; live: do nothing.

        Raises:
            ServiceError: the byte store is away, or the archive cannot be unpacked.
        """
        trial = actor.experiment.trials.get(trial_id)
        if self._outputs is not None and trial is not None and not trial.live:
            directory = Path(actor.experiment.directory)
            config = config_pb2.ExperimentConfig.FromString(actor.experiment.config)
            storage = storage_of(config)
            await self._outputs.fetch(directory, actor.id, trial_id, trial.attempt, storage)

    def follow(
        self,
        actor: ExperimentActor,
        source: service_pb2.LogSource.ValueType,
        trial_id: str,
        offset: int,
        *,
        attempt: int = 0,
        follow: bool,
    ) -> AsyncGenerator[service_pb2.FollowLogsResponse, None]:
        """Yield the chosen log from byte ``offset`` on; with ``follow`` until it is complete.

        Each attempt of a trial has a log of its own, which follows that of the attempt before.

        Args:
            actor: actor of the experiment.
            source: which log.
            trial_id: the trial; empty: the log is of none.
            offset: first byte wanted.
            attempt: attempt whose log has the offset; that of another one is read from its begin.
                0: the present one.
            follow: also yield what is written later.

        Raises:
            InvalidArgumentError: there is no such log.
            NotFoundError: the trial is unknown, or nothing was written (without ``follow``).
        """
        if offset < 0:
            raise InvalidArgumentError("offset", "must be >= 0", offset)
        if source in _FILES:
            name = _FILES[source]
        elif source in _TRIAL_FILES:
            if trial_id not in actor.experiment.trials:
                raise NotFoundError("trial", trial_id)
            place = _Place(attempt, offset)
            return self._follow_trial(actor, source, trial_id, place, follow=follow)
        else:
            raise InvalidArgumentError("source", "must name a log", source)
        if follow:
            return self._follow_file(actor, name, offset, _closed, _never)
        return self._read_once(actor, name, offset)

    async def size(
        self, actor: ExperimentActor, source: service_pb2.LogSource.ValueType, trial_id: str
    ) -> int:
        """Fetch a log if needed; return its length in bytes; for one on the bus, its end offset.

        Raises:
            InvalidArgumentError: there is no such log.
            NotFoundError: the trial is unknown, or nothing was written.
        """
        if source in _TRIAL_FILES and trial_id in actor.experiment.trials:
            await self.fetch(actor, trial_id)
        name = _FILES.get(source) or f"trials/{trial_id}/{_TRIAL_FILES.get(source, '')}"
        known = source in _FILES or trial_id in actor.experiment.trials
        found = await asyncio.to_thread(self._size, actor, name) if known else None
        if found is not None:
            return found
        end = 0
        pieces = self.follow(actor, source, trial_id, 0, follow=False)
        async with aclosing(pieces):
            async for piece in pieces:
                end = piece.offset + len(piece.data)
        return end

    def _size(self, actor: ExperimentActor, name: str) -> int | None:
        try:
            with self._open(actor, name) as file:
                return os.fstat(file.fileno()).st_size
        except OSError:
            return None

    async def _follow_trial(
        self,
        actor: ExperimentActor,
        source: service_pb2.LogSource.ValueType,
        trial_id: str,
        place: "_Place",
        *,
        follow: bool,
    ) -> AsyncGenerator[service_pb2.FollowLogsResponse, None]:
        """Yield the log of a trial's last attempt from a place on, then those of later attempts."""
        while True:
            if follow:
                await _wait_started(actor, trial_id)
            place = place.in_attempt(_logged_attempt(actor, trial_id))
            pieces = await self._follow_attempt(actor, source, trial_id, place, follow=follow)
            async with aclosing(pieces):
                async for piece in pieces:
                    piece.attempt = piece.attempt or place.attempt
                    place = _Place(piece.attempt, piece.offset + len(piece.data))
                    yield piece
            if not follow:
                return
            await _wait_started(actor, trial_id)
            if _logged_attempt(actor, trial_id) <= place.attempt:
                return

    async def _follow_attempt(
        self,
        actor: ExperimentActor,
        source: service_pb2.LogSource.ValueType,
        trial_id: str,
        place: "_Place",
        *,
        follow: bool,
    ) -> AsyncGenerator[service_pb2.FollowLogsResponse, None]:
        """Return the pieces of an attempt's log, from its file on this machine or from the bus."""
        name = f"trials/{trial_id}/{_TRIAL_FILES[source]}"
        trial = actor.experiment.trials[trial_id]
        await self.fetch(actor, trial_id)
        exists = await asyncio.to_thread(self._exists, actor, name)
        if exists and (not follow or not trial.live or self._is_here(trial.runner_id)):
            if not follow:
                return self._read_once(actor, name, place.offset)
            over = _ended(trial_id, place.attempt)
            replaced = _replaced(trial_id, place.attempt)
            return self._follow_file(actor, name, place.offset, over, replaced)
        feed = OutputFeed(self._lines, actor, trial_id, _TRIAL_STREAMS[source], place.offset)
        return feed.follow() if follow else feed.read()

    async def _follow_file(
        self,
        actor: ExperimentActor,
        name: str,
        offset: int,
        over: _Condition,
        replaced: _Condition,
    ) -> AsyncGenerator[service_pb2.FollowLogsResponse, None]:
        """Yield a file's data from an offset until `over`; stop early if it is replaced.

        Args:
            actor: actor of the experiment.
            name: of the file in the experiment's folder.
            offset: first byte wanted.
            over: returns whether nothing follows what is in the file now.
            replaced: returns whether the file may have been written anew, by another attempt.
        """
        async with AsyncExitStack() as stack:
            watch: FileWatch | None = None
            while True:
                change = actor.next_change
                # Decisions of a round are visible before its lines are written.
                last = over(actor) and not actor.deciding
                if watch is None:
                    watch = await self._watch(stack, actor, name)
                while data := await asyncio.to_thread(self._read, actor, name, offset):
                    if replaced(actor):
                        return
                    yield service_pb2.FollowLogsResponse(data=data, offset=offset)
                    offset += len(data)
                if last:
                    return
                if not actor.alive:
                    raise AbortedError("the experiment was closed here; follow its log again")
                await _either(change, watch)

    def _open(self, actor: ExperimentActor, name: str) -> BinaryIO:
        with self._folders.open(Path(actor.experiment.directory)) as folder:
            return folder.read_file(name)

    def _exists(self, actor: ExperimentActor, name: str) -> bool:
        try:
            self._open(actor, name).close()
        except OSError:
            return False
        return True

    async def _watch(
        self, stack: AsyncExitStack, actor: ExperimentActor, name: str
    ) -> FileWatch | None:
        """Return an inotify watch of a log file, entered in ``stack``; None: it is missing."""
        try:
            file = await asyncio.to_thread(self._open, actor, name)
        except OSError:
            return None
        with file:
            # The opened file, whatever its name leads to by now.
            opened = Path(f"/proc/self/fd/{file.fileno()}")
            return await stack.enter_async_context(self._watches.watch(opened))

    def _read(self, actor: ExperimentActor, name: str, offset: int) -> bytes:
        try:
            with self._open(actor, name) as file:
                # File systems refuse offsets far behind the end, each from another limit on.
                if offset >= os.fstat(file.fileno()).st_size:
                    return b""
                file.seek(offset)
                return file.read(CHUNK_BYTES)
        except FileNotFoundError:
            return b""

    async def _read_once(
        self, actor: ExperimentActor, name: str, offset: int
    ) -> AsyncGenerator[service_pb2.FollowLogsResponse, None]:
        if not await asyncio.to_thread(self._exists, actor, name):
            raise NotFoundError("log", name.rpartition("/")[2])
        while data := await asyncio.to_thread(self._read, actor, name, offset):
            yield service_pb2.FollowLogsResponse(data=data, offset=offset)
            offset += len(data)


async def _wait_started(actor: ExperimentActor, trial_id: str) -> None:
    """Wait until a trial is no longer WAITING; raise if this manager closes the experiment."""
    while True:
        change = actor.next_change
        if actor.experiment.trials[trial_id].state is not TrialState.WAITING:
            return
        if not actor.alive:
            raise AbortedError("the experiment was closed here; follow its log again")
        await change.wait()


@dataclass(frozen=True, slots=True)
class _Place:
    """Place in the log of a trial: attempt, and offset in its log."""

    attempt: int
    """0: the present one."""
    offset: int

    def in_attempt(self, attempt: int) -> "_Place":
        """Return this place if it is in the log of an attempt, else the begin of that log."""
        return _Place(attempt, self.offset if self.attempt in {0, attempt} else 0)


def _logged_attempt(actor: ExperimentActor, trial_id: str) -> int:
    """Return the attempt that has written a trial's log: the last one that has started."""
    trial = actor.experiment.trials[trial_id]
    return trial.attempt if trial.claim_id else max(1, trial.attempt - 1)


def _never(actor: ExperimentActor) -> bool:
    del actor
    return False


def _closed(actor: ExperimentActor) -> bool:
    return actor.experiment.state in CLOSED_STATES


def _ended(trial_id: str, attempt: int) -> _Condition:
    """Return a condition: true once the trial has ended, or another attempt is its current one."""

    def over(actor: ExperimentActor) -> bool:
        trial = actor.experiment.trials[trial_id]
        return not trial.live or trial.attempt != attempt

    return over


def _replaced(trial_id: str, attempt: int) -> _Condition:
    """Return a condition: true once a later attempt of the trial has started and may write."""

    def later(actor: ExperimentActor) -> bool:
        return _logged_attempt(actor, trial_id) > attempt

    return later


async def _either(change: asyncio.Event, watch: FileWatch | None) -> None:
    if watch is None:
        await change.wait()
    else:
        await wait_first(change.wait(), watch.changed())
