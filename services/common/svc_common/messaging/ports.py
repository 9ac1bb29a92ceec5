"""Ports of the bus; `Bus` bundles them.

Common to all ports:

* They belong to the event loop that opened the bus and are used from that loop only.
* Calls wait while the bus is away and continue when it is back; limit them with `asyncio.timeout`
  or cancel them. A cancelled call may or may not have had effect.
* `AbortedError` and `InvalidArgumentError` are the only errors about the message itself;
  `UnavailableError` means that this bus was closed. A payload above the limit of the bus
  (8 MB) raises `ResourceExhaustedError`.
* Iterators end only when closed or when the bus is closed. Close them
  (`contextlib.aclosing`), since a feed holds a subscription on the server.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Protocol, Self

LOADING: Final = "loading-"
"""Prefix of the ids of all appends but the last that copy a log from another installation."""


@dataclass(frozen=True, slots=True)
class LogMessage:
    """Message appended to an experiment's log: payload, sequence, epoch and append id."""

    experiment_id: str
    sequence: int
    """Position in the stream; grows within a log but is not contiguous there."""
    payload: bytes
    epoch: int
    """Epoch of the manager that appended it."""
    append_id: str
    """Id that the manager gave this append."""
    time_ns: int
    """When the bus stored it, in nanoseconds since 1970 (UTC); 0: unknown."""

    @property
    def is_loading(self) -> bool:
        """True if the log is being loaded: no process may act on it while this message is last."""
        return self.append_id.startswith(LOADING)


@dataclass(frozen=True, slots=True)
class InboxMessage:
    """Message to an experiment's manager from an agent, host or client."""

    experiment_id: str
    source: str
    """Sender: a runner id, a host, a client."""
    sequence: int
    """Position in the stream: the cursor. Grows within an inbox but is not contiguous there."""
    payload: bytes


@dataclass(frozen=True, slots=True)
class Task:
    """Trial's task delivered to an agent, which must renew it within `ACK_WAIT_S`."""

    pool: str
    sequence: int
    """Position in the stream; what `TaskQueue.delete` takes."""
    payload: bytes
    ack_subject: str
    """Address for `ack`, `nak`, `in_progress` and `term`; valid after a restart as well."""
    deliveries: int
    """Number of deliveries that the bus has counted, this one included. Unreliable: after a kill of
    the bus it may begin at 1 again."""


@dataclass(frozen=True, slots=True)
class Signal:
    """Unstored message on the bus: subject, payload and address for an answer."""

    subject: str
    payload: bytes
    reply_subject: str
    """Address for an answer; empty: none is awaited."""


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Piece of a trial's output on the bus, with its sequence."""

    trial_id: str
    sequence: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class LastValue:
    """Last message of one subject, as the bus keeps it: subject, payload and sequence."""

    subject: str
    payload: bytes
    sequence: int = field(default=0, compare=False)
    """Position in the stream; what `LastValues.publish` and `delete` expect."""


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """Messages, bytes and replicas of one stream of the bus, for the diagnosis."""

    name: str
    messages: int
    size_bytes: int
    replicas: int
    """Copies that the bus shall keep."""
    replicas_missing: int
    """Copies that are away or behind; 0 for a single copy."""
    consumers: int


class EventLog(Protocol):
    """Interface of experiments' ordered, durable logs; only the manager appends."""

    async def append(
        self,
        experiment_id: str,
        payload: bytes,
        *,
        expected_sequence: int,
        epoch: int,
        append_id: str,
    ) -> int:
        """Append once if the log ends at `expected_sequence`, else raise; return the sequence.

        Returns once the bus has it on disk. An append whose acknowledgement was lost is
        recognised by (`epoch`, `append_id`) in the last message of the log, so it is stored
        exactly once, however often it is sent.

        Args:
            experiment_id: experiment of the log.
            payload: the batch of events, at most 8 MB.
            expected_sequence: sequence of the last message of this log; 0 for the first append.
            epoch: number of this ownership of the experiment; larger for later owners.
            append_id: differs between all appends of one epoch.

        Raises:
            LostOwnershipError: the log ends with a message of another writer.
        """
        ...

    async def last(self, experiment_id: str) -> LogMessage | None:
        """Return the last message of a log; None if the log is empty."""
        ...

    def read(self, experiment_id: str, after_sequence: int = 0) -> AsyncGenerator[LogMessage, None]:
        """Yield the messages after `after_sequence` up to the end of the log at the call."""
        ...

    def follow(
        self, experiment_id: str, after_sequence: int = 0
    ) -> AsyncGenerator[LogMessage, None]:
        """Yield an experiment's log after `after_sequence`, then each new message, for ever.

        In order, each exactly once, also across reconnections.
        """
        ...

    def follow_all(self, after_sequence: int = 0) -> AsyncGenerator[LogMessage, None]:
        """Yield like `follow`, from the logs of all experiments in the order of the appends."""
        ...

    async def count(self, experiment_id: str) -> int:
        """Return the number of messages in a log; 0 if it is empty."""
        ...

    async def experiments(self) -> list[str]:
        """Return the sorted ids of all experiments that have a log."""
        ...

    async def delete(self, experiment_id: str) -> None:
        """Delete a log; do nothing if there is none."""
        ...


class Inbox(Protocol):
    """Interface of stored messages to experiments' managers, until they have been handled."""

    async def publish(
        self, experiment_id: str, source: str, payload: bytes, *, message_id: str
    ) -> int:
        """Store a message to an experiment's manager; return its sequence once it is on disk.

        Calls may overlap (they are pipelined); without a reconnection their order is kept.
        After a lost acknowledgement the message is sent again, so it may be stored twice:
        readers drop duplicates by the ids in the payload.

        Args:
            experiment_id: experiment of the manager.
            source: sender, one token.
            payload: at most 8 MB.
            message_id: unique per message; lets the bus drop most of the duplicates.
        """
        ...

    def follow(
        self, experiment_id: str, after_sequence: int = 0
    ) -> AsyncGenerator[list[InboxMessage], None]:
        """Yield lists of messages to an experiment's manager after a sequence, for ever.

        Each item is the non-empty list of the messages that have arrived since the last one, in
        order, each message exactly once, also across reconnections. A slow reader gets longer
        lists (at most 1,000 messages).
        """
        ...

    async def last_sequence(self, experiment_id: str) -> int:
        """Return the sequence of the last stored message to an experiment; 0 if there is none."""
        ...

    async def lift(self, cursor: int) -> int | None:
        """If the INBOX ends below `cursor`, number its messages anew above it; count or None.

        A bus whose data were replaced by older ones, or are damaged, gives numbers a second time,
        and a reader whose cursor is beyond them would miss these messages. What the bus still
        holds gets new numbers in the same order, since it may have come after the damage: readers
        see it once more, and drop duplicates by the ids in the payload.

        Args:
            cursor: largest sequence that any reader has consumed.

        Returns:
            Number of messages that got new numbers; None: later messages are above `cursor`
            already, and nothing was changed.
        """
        ...

    async def trim(self, experiment_id: str, through_sequence: int) -> None:
        """Delete the messages to an experiment up to and including `through_sequence`."""
        ...

    async def delete(self, experiment_id: str) -> None:
        """Delete all messages to an experiment."""
        ...


class TaskFeed(Protocol):
    """Async iterator over a pool's tasks; each delivery needs a grant.

    No task is delivered before `grant`. One reader at a time.
    """

    def grant(self, count: int) -> None:
        """Allow delivery of `count` more tasks; grants add up, each task uses up one."""
        ...

    @property
    def granted(self) -> int:
        """Return how many more tasks may be delivered."""
        ...

    def __aiter__(self) -> "TaskFeed":
        """Return itself."""
        ...

    async def __anext__(self) -> Task:
        """Wait for the next task that the bus delivers; StopAsyncIteration: the feed is closed.

        Raises:
            StopAsyncIteration: the feed was closed.
        """
        ...

    async def aclose(self) -> None:
        """Stop delivery; give back at once the tasks that have not been read."""
        ...


class TaskQueue(Protocol):
    """Interface of the queue of trials' tasks, each delivered to one of a pool's agents."""

    async def publish(
        self, pool: str, payload: bytes, *, message_id: str, ahead: bool = False
    ) -> int:
        """Queue a task of a pool, first if `ahead`; return its sequence once it is on disk.

        Calls may overlap. A task whose acknowledgement was lost may be queued twice.

        Args:
            pool: agents that may take it.
            payload: at most 8 MB.
            message_id: unique per (trial, attempt); lets the bus drop most duplicates.
            ahead: whether it is delivered before all tasks of the pool that are not ahead; of the
                same kind the oldest comes first.
        """
        ...

    async def open_pool(self, pool: str) -> None:
        """Create a pool's queue, so that agents can pull before its first task; may be repeated.

        `publish` does so as well. Needed where agents have no right to make consumers.
        """
        ...

    async def close_pool(self, pool: str) -> None:
        """Remove a pool's queue, with the tasks in it; do nothing if there is none.

        For a pool that no agent pulls from any more.
        """
        ...

    async def delete(self, sequence: int) -> None:
        """Remove a task from the queue; do nothing if it is gone already."""
        ...

    async def pull(self, pool: str) -> TaskFeed:
        """Return a feed of a pool's tasks, which delivers none before its `grant`."""
        ...

    async def ack(self, ack_subject: str) -> None:
        """Acknowledge a finished task; return when the bus has recorded it."""
        ...

    async def nak(self, ack_subject: str, delay_s: float = 0.0) -> None:
        """Return a task to the queue for delivery after `delay_s`."""
        ...

    async def in_progress(self, ack_subject: str) -> None:
        """Renew the lease of a task for `ACK_WAIT_S`; return when the bus has recorded it."""
        ...

    async def term(self, ack_subject: str) -> None:
        """Exclude an unfinished task from further deliveries."""
        ...


class Signals(Protocol):
    """Interface of unstored messages on the bus: orders to agents, presence, live views."""

    def publish(self, subject: str, payload: bytes) -> bool:
        """Send to the current subscribers; return False if the bus is away: the signal is lost."""
        ...

    async def request(self, subject: str, payload: bytes, timeout_s: float) -> bytes:
        """Send a request to a subject and return its first answer; raise if none comes in time.

        Raises:
            UnavailableError: the subject has no subscriber, or no answer came within `timeout_s`.
        """
        ...

    def reply(self, signal: Signal, payload: bytes) -> bool:
        """Answer a signal sent by `request`; return False if the answer was dropped."""
        ...

    async def subscribe(self, subject: str) -> AsyncGenerator[Signal, None]:
        """Return a generator of the signals to a subject or pattern, from the return on.

        Returns once the bus has the subscription: all later signals arrive.
        """
        ...


class LogLines(Protocol):
    """Interface of trials' recent output on the bus, for the page and the command line."""

    def publish(self, experiment_id: str, trial_id: str, payload: bytes) -> bool:
        """Send a piece of a trial's output without waiting; return False if it was dropped.

        The files of the agent are the record; this is a live view.
        """
        ...

    def follow(
        self, experiment_id: str, trial_id: str, after_sequence: int = 0
    ) -> AsyncGenerator[LogChunk, None]:
        """Yield a trial's stored output after `after_sequence`, then new output, for ever."""
        ...

    async def last_sequence(self, experiment_id: str, trial_id: str) -> int:
        """Return the sequence of the last stored output of a trial; 0 if there is none."""
        ...

    async def delete(self, experiment_id: str) -> None:
        """Delete the output of all trials of an experiment."""
        ...


class LastValues(Protocol):
    """Interface of needs and states of pools: the bus keeps the last message of each subject."""

    async def publish(
        self, subject: str, payload: bytes, *, expected_sequence: int | None = None
    ) -> None:
        """Replace a subject's value if it is the expected one; return once the bus has it on disk.

        Calls for one subject must not overlap unless they expect a value: nothing orders them.

        Args:
            subject: need or state of a pool (`subjects.pool_need_subject`).
            payload: at most 8 MB.
            expected_sequence: of the value that is replaced; 0: there is none; None: any.

        Raises:
            AbortedError: the subject has another value than the expected one, which may be that of
                an earlier try of this call: read it, and decide again.
        """
        ...

    async def read(self, pattern: str) -> list[LastValue]:
        """Return the last value of each subject of a pattern, oldest first; see `follow`."""
        ...

    def follow(self, pattern: str) -> AsyncGenerator[LastValue, None]:
        """Yield the last value of each subject of a pattern, then each new one, for ever.

        In order per subject, no message twice, also across reconnections. A reader that is slow or
        was away may miss a value that a later one has replaced, and never the last one. Deletions
        are not reported.

        Args:
            pattern: `subjects.ALL_POOLS`, such as `ALL_POOL_NEEDS`, or one subject.
        """
        ...

    async def delete(self, subject: str, *, through_sequence: int = 0) -> None:
        """Delete a subject's value, or only one up to `through_sequence`; do nothing if none.

        Args:
            subject: see `publish`.
            through_sequence: of the newest value that may be deleted; 0: any.
        """
        ...


class Bus(Protocol):
    """Interface of one connection to the bus: logs, inbox, tasks, signals, output, last values."""

    @property
    def events(self) -> EventLog:
        """Logs of experiments."""
        ...

    @property
    def inbox(self) -> Inbox:
        """Messages to managers."""
        ...

    @property
    def tasks(self) -> TaskQueue:
        """Tasks for agents."""
        ...

    @property
    def signals(self) -> Signals:
        """Messages that are not stored."""
        ...

    @property
    def log_lines(self) -> LogLines:
        """Output of trials."""
        ...

    @property
    def last_values(self) -> LastValues:
        """Needs and states of pools."""
        ...

    @property
    def connected(self) -> bool:
        """Return whether the bus can be reached now."""
        ...

    @property
    def disk_trouble(self) -> str:
        """Return why the bus's disk takes no messages (full, read-only); empty: it seems fine."""
        ...

    async def wait_connected(self, connected: bool = True) -> None:  # noqa: FBT001, FBT002 - the awaited state reads as a word
        """Wait until the bus can be reached (raise if closed); with False, until it cannot."""
        ...

    async def missing_streams(self) -> list[str]:
        """Return the names of the streams that the bus should have, and has not."""
        ...

    async def streams(self) -> list[StreamFacts]:
        """Return messages, bytes and replicas of each existing stream of the bus.

        A missing stream is left out.
        """
        ...

    async def __aenter__(self) -> Self:
        """Connect to the bus at the start of `async with`, waiting for it as long as it takes.

        Raises:
            UnauthenticatedError: the bus refuses the credentials.
        """
        ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection to the bus at the end of the `async with` block."""
        ...

    async def aclose(self) -> None:
        """Close; may be called twice. Waiting calls raise `UnavailableError`, iterators end."""
        ...
