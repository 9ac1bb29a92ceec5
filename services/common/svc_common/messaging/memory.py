"""In-memory implementation of the bus for tests.

One `InMemoryBroker` is the server; each `InMemoryBus` is a client of it.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from types import TracebackType
from typing import Self

from nni_wire.limits import MESSAGE_LIMIT_BYTES
from svc_common import subjects
from svc_common.errors import (
    AbortedError,
    LostOwnershipError,
    ResourceExhaustedError,
    UnavailableError,
)
from svc_common.messaging.callback_queue import CallbackQueue
from svc_common.messaging.limits import LOG_LINES_PER_TRIAL
from svc_common.messaging.memory_broker import (
    InMemoryBroker,
    QueuedTask,
    Record,
    Stream,
    matches,
    stop_timer,
)
from svc_common.messaging.ports import (
    InboxMessage,
    LastValue,
    LogChunk,
    LogMessage,
    Signal,
    StreamFacts,
    Task,
)
from svc_common.tasks import wait_first


class InMemoryEventLog:
    """`EventLog` in memory, over the streams of an `InMemoryBroker`, for tests."""

    def __init__(self, bus: "InMemoryBus") -> None:
        self._bus = bus
        self._stream = bus.broker.events

    async def append(
        self,
        experiment_id: str,
        payload: bytes,
        *,
        expected_sequence: int,
        epoch: int,
        append_id: str,
    ) -> int:
        """Append at `expected_sequence`; return the sequence, also if last already; else raise."""
        subject = subjects.event_subject(experiment_id)
        await self._bus.ready(payload)
        last = await self.last(experiment_id)
        found = 0 if last is None else last.sequence
        if found == expected_sequence:
            return self._stream.add(
                Record(subject, payload, f"{subject}/{epoch}/{append_id}", epoch)
            )
        if last is not None and (last.epoch, last.append_id) == (epoch, append_id):
            return found
        raise LostOwnershipError(
            experiment_id,
            expected_sequence=expected_sequence,
            found_sequence=found,
            found_epoch=0 if last is None else last.epoch,
        )

    async def last(self, experiment_id: str) -> LogMessage | None:
        """Return the last message of an experiment's log; None if the log is empty."""
        subject = subjects.event_subject(experiment_id)
        await self._bus.ready()
        found = self._stream.matching(subject, 0)
        return _log_message(*found[-1]) if found else None

    async def read(
        self, experiment_id: str, after_sequence: int = 0
    ) -> AsyncGenerator[LogMessage, None]:
        """Yield an experiment's log after `after_sequence` up to its end at the call."""
        subject = subjects.event_subject(experiment_id)
        await self._bus.ready()
        for sequence, record in self._stream.matching(subject, after_sequence):
            yield _log_message(sequence, record)

    async def follow(
        self, experiment_id: str, after_sequence: int = 0
    ) -> AsyncGenerator[LogMessage, None]:
        """Yield an experiment's log after `after_sequence`, then each new message, for ever."""
        subject = subjects.event_subject(experiment_id)
        async for batch in self._bus.follow(self._stream, subject, after_sequence):
            for sequence, record in batch:
                yield _log_message(sequence, record)

    async def follow_all(self, after_sequence: int = 0) -> AsyncGenerator[LogMessage, None]:
        """Yield all logs' messages after `after_sequence`, in order, then new ones, for ever."""
        async for batch in self._bus.follow(self._stream, subjects.ALL_EVENTS, after_sequence):
            for sequence, record in batch:
                yield _log_message(sequence, record)

    async def count(self, experiment_id: str) -> int:
        """Return the number of messages in an experiment's log."""
        await self._bus.ready()
        return len(self._stream.matching(subjects.event_subject(experiment_id), 0))

    async def experiments(self) -> list[str]:
        """Return the sorted ids of all experiments that have a log."""
        await self._bus.ready()
        records = self._stream.records.values()
        return sorted({subjects.experiment_of_event(record.subject) for record in records})

    async def delete(self, experiment_id: str) -> None:
        """Delete an experiment's log; do nothing if there is none."""
        subject = subjects.event_subject(experiment_id)
        await self._bus.ready()
        self._stream.purge(subject)


class InMemoryInbox:
    """`Inbox` in memory, over a stream of an `InMemoryBroker`, for tests."""

    def __init__(self, bus: "InMemoryBus") -> None:
        self._bus = bus
        self._stream = bus.broker.inbox

    async def publish(
        self, experiment_id: str, source: str, payload: bytes, *, message_id: str
    ) -> int:
        """Store a message to the experiment's manager, once per message id; return its sequence."""
        subject = subjects.inbox_subject(experiment_id, source)
        await self._bus.ready(payload)
        return self._stream.add(Record(subject, payload, message_id))

    async def follow(
        self, experiment_id: str, after_sequence: int = 0
    ) -> AsyncGenerator[list[InboxMessage], None]:
        """Yield lists of messages to an experiment's manager after `after_sequence`, for ever."""
        pattern = subjects.inbox_filter(experiment_id)
        async for batch in self._bus.follow(self._stream, pattern, after_sequence):
            yield [
                InboxMessage(
                    experiment_id, subjects.parse_inbox(one.subject)[1], sequence, one.payload
                )
                for sequence, one in batch
            ]

    async def last_sequence(self, experiment_id: str) -> int:
        """Return the sequence of the last stored message to an experiment; 0 if there is none."""
        await self._bus.ready()
        found = self._stream.matching(subjects.inbox_filter(experiment_id), 0)
        return found[-1][0] if found else 0

    async def lift(self, cursor: int) -> int | None:
        """If the stream ends below `cursor`, number its messages anew above it; count or None."""
        await self._bus.ready()
        if self._stream.last >= cursor:
            return None
        records = list(self._stream.records.values())
        self._stream.records.clear()
        self._stream.last = cursor
        for record in records:
            self._stream.add(replace(record, message_id=""))
        return len(records)

    async def trim(self, experiment_id: str, through_sequence: int) -> None:
        """Delete the messages to an experiment up to and including `through_sequence`."""
        await self._bus.ready()
        self._stream.purge(subjects.inbox_filter(experiment_id), through_sequence + 1)

    async def delete(self, experiment_id: str) -> None:
        """Delete all messages to an experiment."""
        await self._bus.ready()
        self._stream.purge(subjects.inbox_filter(experiment_id))


class InMemoryTaskFeed:
    """Iterator over a pool's tasks that an in-memory broker delivers as credit is granted."""

    def __init__(self, broker: InMemoryBroker, pool: str) -> None:
        self.pool = pool
        self._broker = broker
        self._box: CallbackQueue[Task] = CallbackQueue()
        self._credit = 0
        broker.feeds.append(self)

    def grant(self, count: int) -> None:
        """Allow delivery of `count` more tasks; grants add up, each task uses up one."""
        self._credit += count
        self._broker.offer()

    @property
    def granted(self) -> int:
        """Return how many more tasks may be delivered."""
        return self._credit

    def receive(self, task: Task) -> None:
        """Accept a task, which uses up one grant; keep it until it is read."""
        self._credit -= 1
        self._box.put(task)

    def __aiter__(self) -> Self:
        """Return itself."""
        return self

    async def __anext__(self) -> Task:
        """Wait for the next task; StopAsyncIteration: the feed is closed."""
        return await self._box.get()

    async def aclose(self) -> None:
        """Stop delivery; return delivered but unread tasks to the broker's queue."""
        self._credit = 0
        if self in self._broker.feeds:
            self._broker.feeds.remove(self)
        for task in self._box.take_all():
            self._broker.give_back(task.sequence)
        self._box.close()


class InMemoryTaskQueue:
    """`TaskQueue` in memory, over an `InMemoryBroker`, for tests."""

    def __init__(self, bus: "InMemoryBus") -> None:
        self._bus = bus

    async def publish(
        self, pool: str, payload: bytes, *, message_id: str, ahead: bool = False
    ) -> int:
        """Queue a task, once per message id, first if `ahead`; return its sequence."""
        subjects.task_subject(pool)
        await self._bus.ready(payload)
        broker = self._bus.broker
        known = broker.task_ids.get(message_id)
        if known is not None:
            return known
        sequence = broker.task_ids[message_id] = next(broker.numbers)
        broker.tasks[sequence] = QueuedTask(pool, payload, ahead)
        broker.offer()
        return sequence

    async def open_pool(self, pool: str) -> None:
        """Make a pool, so that agents can pull before the first task; may be repeated."""
        subjects.check_id("pool", pool)
        await self._bus.ready()

    async def close_pool(self, pool: str) -> None:
        """Remove the tasks of a pool; do nothing if there are none."""
        subjects.check_id("pool", pool)
        await self._bus.ready()
        for sequence in [key for key, task in self._bus.broker.tasks.items() if task.pool == pool]:
            del self._bus.broker.tasks[sequence]

    async def delete(self, sequence: int) -> None:
        """Remove a task from the queue; do nothing if it is gone already."""
        await self._finish(f"ack.{sequence}")

    async def pull(self, pool: str) -> InMemoryTaskFeed:
        """Return a feed that receives tasks of a pool as credit is granted."""
        subjects.pool_consumer(pool)
        await self._bus.ready()
        feed = InMemoryTaskFeed(self._bus.broker, pool)
        self._bus.feeds.append(feed)
        return feed

    async def ack(self, ack_subject: str) -> None:
        """Acknowledge a finished task; return when the bus has recorded it."""
        await self._finish(ack_subject)

    async def nak(self, ack_subject: str, delay_s: float = 0.0) -> None:
        """Return a delivered task to the queue, at once or after `delay_s`."""
        await self._bus.ready()
        sequence = _sequence(ack_subject)
        if delay_s <= 0:
            self._bus.broker.give_back(sequence)
            return
        queued = self._bus.broker.tasks.get(sequence)
        if queued is not None:
            stop_timer(queued)
            loop = asyncio.get_running_loop()
            queued.timer = loop.call_later(delay_s, self._bus.broker.give_back, sequence)

    async def in_progress(self, ack_subject: str) -> None:
        """Renew the lease of a task for `ACK_WAIT_S`; return when the bus has recorded it."""
        await self._bus.ready()
        self._bus.broker.renew(_sequence(ack_subject))

    async def term(self, ack_subject: str) -> None:
        """Exclude an unfinished task from further deliveries."""
        await self._finish(ack_subject)

    async def _finish(self, ack_subject: str) -> None:
        await self._bus.ready()
        queued = self._bus.broker.tasks.pop(_sequence(ack_subject), None)
        if queued is not None:
            stop_timer(queued)


class InMemorySignals:
    """`Signals` in memory: unstored publish, request and subscribe, for tests."""

    def __init__(self, bus: "InMemoryBus") -> None:
        self._bus = bus

    def publish(self, subject: str, payload: bytes) -> bool:
        """Send to the current subscribers; return False if the bus is away: the signal is lost."""
        return self._send(Signal(subject, payload, ""))[0]

    async def request(self, subject: str, payload: bytes, timeout_s: float) -> bytes:
        """Publish a request and return the first answer; raise UnavailableError if none comes."""
        broker = self._bus.broker
        reply_subject = f"answer.{next(broker.numbers)}"
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        broker.answers[reply_subject] = answer
        try:
            sent, subscribers = self._send(Signal(subject, payload, reply_subject))
            if not sent or not subscribers:
                raise UnavailableError("the subject has no subscriber")
            async with asyncio.timeout(timeout_s):
                return await answer
        except TimeoutError as error:
            raise UnavailableError("no answer in time") from error
        finally:
            del broker.answers[reply_subject]

    def reply(self, signal: Signal, payload: bytes) -> bool:
        """Send an answer to the requester of a signal; return False if it was dropped."""
        answer = self._bus.broker.answers.get(signal.reply_subject)
        if answer is None or answer.done() or not self._bus.connected:
            return False
        answer.set_result(payload)
        return True

    async def subscribe(self, subject: str) -> AsyncGenerator[Signal, None]:
        """Return a generator of the signals published to a subject or pattern from now on."""
        box: CallbackQueue[Signal] = CallbackQueue()
        subscriber = (subject, box)
        self._bus.broker.subscribers.append(subscriber)
        self._bus.boxes.append(box)

        async def signals() -> AsyncGenerator[Signal, None]:
            try:
                while True:
                    yield await box.get()
            except StopAsyncIteration:
                return
            finally:
                self._bus.broker.subscribers.remove(subscriber)

        return signals()

    def _send(self, signal: Signal) -> tuple[bool, int]:
        """Pass a signal to all matching subscribers; return whether connected, and their number."""
        if not self._bus.connected:
            return False, 0
        boxes = [
            box for pattern, box in self._bus.broker.subscribers if matches(pattern, signal.subject)
        ]
        for box in boxes:
            box.put(replace(signal))
        return True, len(boxes)


class InMemoryLogLines:
    """`LogLines` in memory: trials' output on a stream of limited length, for tests."""

    def __init__(self, bus: "InMemoryBus") -> None:
        self._bus = bus
        self._stream = bus.broker.log_lines

    def publish(self, experiment_id: str, trial_id: str, payload: bytes) -> bool:
        """Store trial output, dropping the trial's oldest over a limit; False if disconnected."""
        subject = subjects.log_subject(experiment_id, trial_id)
        if not self._bus.connected:
            return False
        self._stream.add(Record(subject, payload))
        for sequence, _ in self._stream.matching(subject, 0)[:-LOG_LINES_PER_TRIAL]:
            del self._stream.records[sequence]
        return True

    async def follow(
        self, experiment_id: str, trial_id: str, after_sequence: int = 0
    ) -> AsyncGenerator[LogChunk, None]:
        """Yield a trial's stored output after `after_sequence`, then new output, for ever."""
        subject = subjects.log_subject(experiment_id, trial_id)
        async for batch in self._bus.follow(self._stream, subject, after_sequence):
            for sequence, record in batch:
                yield LogChunk(trial_id, sequence, record.payload)

    async def last_sequence(self, experiment_id: str, trial_id: str) -> int:
        """Return the sequence of a trial's last stored output; 0 if there is none."""
        await self._bus.ready()
        found = self._stream.matching(subjects.log_subject(experiment_id, trial_id), 0)
        return found[-1][0] if found else 0

    async def delete(self, experiment_id: str) -> None:
        """Delete the output of all trials of an experiment."""
        await self._bus.ready()
        self._stream.purge(subjects.log_filter(experiment_id))


class InMemoryLastValues:
    """`LastValues` in memory, over a stream of an `InMemoryBroker`, for tests."""

    def __init__(self, bus: "InMemoryBus") -> None:
        self._bus = bus
        self._stream = bus.broker.pools

    async def publish(
        self, subject: str, payload: bytes, *, expected_sequence: int | None = None
    ) -> None:
        """Replace a value, notify followers; raise AbortedError if not at `expected_sequence`."""
        subjects.pool_of_subject(subject)
        await self._bus.ready(payload)
        found = self._stream.matching(subject, 0)
        if expected_sequence not in {None, found[-1][0] if found else 0}:
            raise AbortedError(f"{subject} was changed by another process", {"subject": subject})
        self._stream.purge(subject)
        self._stream.add(Record(subject, payload))

    async def read(self, pattern: str) -> list[LastValue]:
        """Return the last value of each subject of a pattern, oldest first."""
        subjects.pool_copies(pattern)
        await self._bus.ready()
        found = self._stream.matching(pattern, 0)
        return [LastValue(one.subject, one.payload, sequence) for sequence, one in found]

    async def follow(self, pattern: str) -> AsyncGenerator[LastValue, None]:
        """Yield the last value of each subject of a pattern, then each new one, for ever."""
        subjects.pool_copies(pattern)
        async for batch in self._bus.follow(self._stream, pattern, 0):
            for sequence, record in batch:
                yield LastValue(record.subject, record.payload, sequence)

    async def delete(self, subject: str, *, through_sequence: int = 0) -> None:
        """Delete a subject's value, or only one up to `through_sequence`; do nothing if none."""
        subjects.pool_of_subject(subject)
        await self._bus.ready()
        self._stream.purge(subject, through_sequence + 1 if through_sequence else 0)


class InMemoryBus:
    """In-memory `Bus`: one client's logs, inbox, tasks and signals at a shared broker."""

    def __init__(self, broker: InMemoryBroker | None = None) -> None:
        self.broker = broker or InMemoryBroker()
        self.boxes: list[CallbackQueue[Signal]] = []
        self.feeds: list[InMemoryTaskFeed] = []
        self._closed = asyncio.Event()
        self._followers: list[asyncio.Event] = []
        self.events = InMemoryEventLog(self)
        self.inbox = InMemoryInbox(self)
        self.tasks = InMemoryTaskQueue(self)
        self.signals = InMemorySignals(self)
        self.log_lines = InMemoryLogLines(self)
        self.last_values = InMemoryLastValues(self)

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close this bus at the end of its `async with` block."""
        await self.aclose()

    @property
    def connected(self) -> bool:
        """Return whether the bus can be reached now."""
        return self.broker.up.is_set() and not self._closed.is_set()

    @property
    def disk_trouble(self) -> str:
        """Return an empty text: it has no disk."""
        return ""

    async def wait_connected(self, connected: bool = True) -> None:  # noqa: FBT001, FBT002 - the awaited state reads as a word
        """Wait until the broker is reachable (raise if closed), or with False until it is not."""
        if not connected:
            await self.broker.down.wait()
            return
        if not self.connected and not self._closed.is_set():
            await wait_first(self.broker.up.wait(), self._closed.wait())
        if self._closed.is_set():
            raise UnavailableError("the connection to the bus is closed")

    async def missing_streams(self) -> list[str]:
        """Return the names of the streams that the broker has lost."""
        await self.ready()
        return sorted(self.broker.lost_streams)

    async def streams(self) -> list[StreamFacts]:
        """Return number and size of messages of each stream, as the diagnosis shows them."""
        await self.ready()
        broker = self.broker
        tasks = [queued.payload for queued in broker.tasks.values()]
        streams = {
            subjects.STREAM_EXPERIMENTS: [r.payload for r in broker.events.records.values()],
            subjects.STREAM_INBOX: [r.payload for r in broker.inbox.records.values()],
            subjects.STREAM_TASKS: tasks,
            subjects.STREAM_LOGS: [r.payload for r in broker.log_lines.records.values()],
            subjects.STREAM_POOLS: [r.payload for r in broker.pools.records.values()],
        }
        return [
            StreamFacts(name, len(payloads), sum(map(len, payloads)), 1, 0, 0)
            for name, payloads in streams.items()
        ]

    async def aclose(self) -> None:
        """Close this bus: waiting calls raise `UnavailableError`, iterators end; may repeat."""
        self._closed.set()
        for changed in self._followers:
            changed.set()
        for box in self.boxes:
            box.close()
        for feed in self.feeds:
            await feed.aclose()

    async def ready(self, payload: bytes = b"") -> None:
        """Raise if `payload` exceeds the bus's limit; wait until the broker is reachable.

        Raises:
            ResourceExhaustedError: `payload` is larger than a bus allows.
            UnavailableError: this bus is closed.
        """
        if len(payload) > MESSAGE_LIMIT_BYTES:
            raise ResourceExhaustedError(
                f"a message of {len(payload)} bytes is larger than the bus allows "
                f"({MESSAGE_LIMIT_BYTES})"
            )
        await self.wait_connected()

    async def follow(
        self, stream: Stream, pattern: str, after: int
    ) -> AsyncGenerator[list[tuple[int, Record]], None]:
        """Yield batches of a stream's messages after `after` that match a pattern, until closed."""
        changed = asyncio.Event()
        stream.grown.append(changed.set)
        self._followers.append(changed)
        try:
            while not self._closed.is_set():
                changed.clear()
                found = stream.matching(pattern, after) if self.broker.up.is_set() else []
                if found:
                    after = found[-1][0]
                    yield found
                else:
                    await changed.wait()
        finally:
            stream.grown.remove(changed.set)
            self._followers.remove(changed)


def _log_message(sequence: int, record: Record) -> LogMessage:
    return LogMessage(
        experiment_id=subjects.experiment_of_event(record.subject),
        sequence=sequence,
        payload=record.payload,
        epoch=record.epoch,
        append_id=record.message_id.rpartition("/")[2],
        time_ns=0,
    )


def _sequence(ack_subject: str) -> int:
    return int(ack_subject.rpartition(".")[2])
