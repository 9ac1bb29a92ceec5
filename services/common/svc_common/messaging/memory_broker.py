"""What a bus server would hold, in memory: the other half of `svc_common.messaging.memory`."""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

from svc_common.messaging.callback_queue import CallbackQueue
from svc_common.messaging.limits import ACK_WAIT_S
from svc_common.messaging.ports import Signal, Task


class Taker(Protocol):
    """A feed of tasks, as the broker sees it."""

    pool: str

    @property
    def granted(self) -> int:
        """How many more tasks it may be handed."""
        ...

    def receive(self, task: Task) -> None:
        """Take a task."""
        ...


@dataclass(slots=True)
class Record:
    """A message of a stream."""

    subject: str
    payload: bytes
    message_id: str = ""
    epoch: int = 0


@dataclass(slots=True)
class Held:
    """A task on the queue; `feed` is None while nobody holds it."""

    pool: str
    payload: bytes
    feed: Taker | None = None
    deliveries: int = 0
    timer: asyncio.TimerHandle | None = None


class Stream:
    """Messages in order, and those who follow them."""

    def __init__(self) -> None:
        self.records: dict[int, Record] = {}
        self.last = 0
        self.ids: dict[str, int] = {}
        self.grown: list[Callable[[], None]] = []

    def add(self, record: Record) -> int:
        """Store a message, once per message id; give its sequence."""
        if record.message_id and record.message_id in self.ids:
            return self.ids[record.message_id]
        self.last += 1
        self.records[self.last] = record
        if record.message_id:
            self.ids[record.message_id] = self.last
        for tell in tuple(self.grown):
            tell()
        return self.last

    def matching(self, pattern: str, after: int) -> list[tuple[int, Record]]:
        """Give the messages behind `after` whose subject matches."""
        return [
            (sequence, record)
            for sequence, record in self.records.items()
            if sequence > after and matches(pattern, record.subject)
        ]

    def purge(self, pattern: str, before: int = 0) -> None:
        """Forget matching messages; 0 = all, else those with a lower sequence."""
        for sequence, record in tuple(self.records.items()):
            if matches(pattern, record.subject) and (not before or sequence < before):
                del self.records[sequence]


class InMemoryBroker:
    """The server: shared by the buses of a test.

    It can be made unreachable (`stop`, `start`) and be told to deliver every unfinished task
    again (`redeliver`).
    """

    def __init__(self) -> None:
        self.events = Stream()
        self.inbox = Stream()
        self.log_lines = Stream()
        self.task_ids: dict[str, int] = {}
        self.tasks: dict[int, Held] = {}
        self.feeds: list[Taker] = []
        self.listeners: list[tuple[str, CallbackQueue[Signal]]] = []
        self.answers: dict[str, asyncio.Future[bytes]] = {}
        self.numbers = itertools.count(1)
        self.up = asyncio.Event()
        self.up.set()
        self.down = asyncio.Event()

    def stop(self) -> None:
        """Become unreachable: signals are dropped, other calls wait."""
        self.up.clear()
        self.down.set()

    def start(self) -> None:
        """Be reachable again."""
        self.down.clear()
        self.up.set()
        self.offer()
        for stream in (self.events, self.inbox, self.log_lines):
            for tell in tuple(stream.grown):
                tell()

    def redeliver(self) -> None:
        """Deliver every task that is not finished once more, as a restarted server may do."""
        for sequence in tuple(self.tasks):
            self.give_back(sequence)

    def give_back(self, sequence: int) -> None:
        """Let a task be delivered again."""
        held = self.tasks.get(sequence)
        if held is not None:
            stop_timer(held)
            held.feed = None
            self.offer()

    def offer(self) -> None:
        """Hand waiting tasks to feeds with credit, oldest first."""
        if not self.up.is_set():
            return
        for sequence, held in self.tasks.items():
            if held.feed is not None:
                continue
            for feed in self.feeds:
                if feed.pool == held.pool and feed.granted > 0:
                    self._hand_over(sequence, held, feed)
                    break

    def renew(self, sequence: int) -> None:
        """Begin the time of a held task anew."""
        held = self.tasks.get(sequence)
        if held is not None and held.feed is not None:
            stop_timer(held)
            held.timer = asyncio.get_running_loop().call_later(ACK_WAIT_S, self.give_back, sequence)

    def _hand_over(self, sequence: int, held: Held, feed: Taker) -> None:
        # Whoever was offered the task last is offered the next one last.
        self.feeds.remove(feed)
        self.feeds.append(feed)
        held.feed = feed
        held.deliveries += 1
        self.renew(sequence)
        feed.receive(Task(held.pool, sequence, held.payload, f"ack.{sequence}", held.deliveries))


def matches(pattern: str, subject: str) -> bool:
    """Tell whether a subject is one of a pattern."""
    # `*` of the bus is one token and ids hold no dots, so the shell's `*` would match too much.
    return pattern == subject or (
        pattern.count(".") == subject.count(".") and fnmatchcase(subject, pattern)
    )


def stop_timer(held: Held) -> None:
    """Let a held task no longer come back by itself."""
    if held.timer is not None:
        held.timer.cancel()
        held.timer = None
