"""In-memory server of the bus; its clients are in `svc_common.messaging.memory`."""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

from svc_common.messaging.callback_queue import CallbackQueue
from svc_common.messaging.limits import ACK_WAIT_S
from svc_common.messaging.ports import Signal, Task


class TaskReceiver(Protocol):
    """Interface of a task feed towards the in-memory broker: its pool, its credit, delivery."""

    pool: str

    @property
    def granted(self) -> int:
        """Return how many more tasks may be delivered."""
        ...

    def receive(self, task: Task) -> None:
        """Accept a task, which uses up one grant."""
        ...


@dataclass(slots=True)
class Record:
    """Stored message of an in-memory stream: subject, payload, message id, epoch."""

    subject: str
    payload: bytes
    message_id: str = ""
    epoch: int = 0


@dataclass(slots=True)
class QueuedTask:
    """Task in the in-memory broker's queue; `feed` is None while it waits for delivery."""

    pool: str
    payload: bytes
    ahead: bool = False
    feed: TaskReceiver | None = None
    deliveries: int = 0
    timer: asyncio.TimerHandle | None = None


class Stream:
    """In-memory stream of messages in order, deduplicated by id, that notifies of new ones."""

    def __init__(self) -> None:
        self.records: dict[int, Record] = {}
        self.last = 0
        self.ids: dict[str, int] = {}
        self.grown: list[Callable[[], None]] = []

    def add(self, record: Record) -> int:
        """Store a message unless its message id is known; notify followers; return the sequence."""
        if record.message_id and record.message_id in self.ids:
            return self.ids[record.message_id]
        self.last += 1
        self.records[self.last] = record
        if record.message_id:
            self.ids[record.message_id] = self.last
        for notify in tuple(self.grown):
            notify()
        return self.last

    def matching(self, pattern: str, after: int) -> list[tuple[int, Record]]:
        """Return (sequence, message) of messages after `after` whose subjects match the pattern."""
        return [
            (sequence, record)
            for sequence, record in self.records.items()
            if sequence > after and matches(pattern, record.subject)
        ]

    def purge(self, pattern: str, before: int = 0) -> None:
        """Delete messages that match a pattern, below sequence `before`; 0: all of them."""
        for sequence, record in tuple(self.records.items()):
            if matches(pattern, record.subject) and (not before or sequence < before):
                del self.records[sequence]


class InMemoryBroker:
    """In-memory server of streams, tasks and signals that tests can stop and restart.

    A test can make it unreachable (`stop`, `start`) and have it deliver every unfinished task
    again (`redeliver`).
    """

    def __init__(self) -> None:
        self.events = Stream()
        self.inbox = Stream()
        self.log_lines = Stream()
        self.pools = Stream()
        self.lost_streams: set[str] = set()
        """Names of streams that the bus shall report as missing."""
        self.task_ids: dict[str, int] = {}
        self.tasks: dict[int, QueuedTask] = {}
        self.feeds: list[TaskReceiver] = []
        self.subscribers: list[tuple[str, CallbackQueue[Signal]]] = []
        self.answers: dict[str, asyncio.Future[bytes]] = {}
        self.numbers = itertools.count(1)
        self.up = asyncio.Event()
        self.up.set()
        self.down = asyncio.Event()

    def stop(self) -> None:
        """Become unreachable: drop signals, let other calls wait."""
        self.up.clear()
        self.down.set()

    def start(self) -> None:
        """Make the broker reachable again; deliver waiting tasks and wake followers."""
        self.down.clear()
        self.up.set()
        self.offer()
        for stream in (self.events, self.inbox, self.log_lines, self.pools):
            for notify in tuple(stream.grown):
                notify()

    def redeliver(self) -> None:
        """Deliver every unfinished task once more, as a restarted server may."""
        for sequence in tuple(self.tasks):
            self.give_back(sequence)

    def give_back(self, sequence: int) -> None:
        """Return a delivered task to the queue and offer it to feeds with credit."""
        queued = self.tasks.get(sequence)
        if queued is not None:
            stop_timer(queued)
            queued.feed = None
            self.offer()

    def offer(self) -> None:
        """Deliver waiting tasks to feeds with credit: those ahead, then others, oldest first."""
        if not self.up.is_set():
            return
        waiting = [item for item in self.tasks.items() if item[1].feed is None]
        for sequence, queued in sorted(waiting, key=lambda item: not item[1].ahead):
            for feed in self.feeds:
                if feed.pool == queued.pool and feed.granted > 0:
                    self._deliver(sequence, queued, feed)
                    break

    def renew(self, sequence: int) -> None:
        """Restart the time-out after which a delivered task is delivered again."""
        queued = self.tasks.get(sequence)
        if queued is not None and queued.feed is not None:
            stop_timer(queued)
            queued.timer = asyncio.get_running_loop().call_later(
                ACK_WAIT_S, self.give_back, sequence
            )

    def _deliver(self, sequence: int, queued: QueuedTask, feed: TaskReceiver) -> None:
        # Round robin: the feed that has just received a task comes last for the next one.
        self.feeds.remove(feed)
        self.feeds.append(feed)
        queued.feed = feed
        queued.deliveries += 1
        self.renew(sequence)
        feed.receive(
            Task(queued.pool, sequence, queued.payload, f"ack.{sequence}", queued.deliveries)
        )


def matches(pattern: str, subject: str) -> bool:
    """Return whether a subject matches a NATS pattern in which `*` is one token."""
    # `*` of the bus is one token and ids hold no dots, so the shell's `*` would match too much.
    return pattern == subject or (
        pattern.count(".") == subject.count(".") and fnmatchcase(subject, pattern)
    )


def stop_timer(queued: QueuedTask) -> None:
    """Cancel the timer that would redeliver a delivered task."""
    if queued.timer is not None:
        queued.timer.cancel()
        queued.timer = None
