"""What services need from the bus, as promises; `Bus` bundles them.

Common to all ports:

* They belong to the event loop that opened the bus and are used from that loop only.
* Waiting calls wait while the bus is away and go on when it is back; give up on them with
  `asyncio.timeout` or by cancelling. A call that was cancelled may or may not have had effect.
* `LostOwnershipError` and `InvalidArgumentError` are the only errors that tell of the message;
  `UnavailableError` means that this bus was closed. A payload above the limit of the bus
  (8 MB) raises `ResourceExhaustedError`.
* Iterators end only when closed or when the bus is closed. Close them
  (`contextlib.aclosing`), for a feed holds a subscription on the server.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Protocol, Self

LOADING: Final = "loading-"
"""How the ids of appends begin that bring a log from elsewhere; the last one begins otherwise."""


@dataclass(frozen=True, slots=True)
class LogMessage:
    """One append to an experiment's log."""

    experiment_id: str
    sequence: int
    """Position in the stream; grows within a log but is not contiguous there."""
    payload: bytes
    epoch: int
    """Epoch of the manager that appended it."""
    append_id: str
    """Id that the manager gave this append."""
    time_ns: int
    """When the bus stored it, in nanoseconds since 1970 (UTC); 0 if the bus did not tell."""

    @property
    def is_loading(self) -> bool:
        """Whether the log is being loaded: as long as it ends here, nobody may act on it."""
        return self.append_id.startswith(LOADING)


@dataclass(frozen=True, slots=True)
class InboxMessage:
    """One request or report to the manager of an experiment."""

    experiment_id: str
    source: str
    """Who sent it: a runner id, a host, a client."""
    sequence: int
    """Position in the stream: the cursor. Grows within an inbox but is not contiguous there."""
    payload: bytes


@dataclass(frozen=True, slots=True)
class Task:
    """A task handed to this agent; its own until `ack_wait` (30 s) passes without a renewal."""

    pool: str
    sequence: int
    """Position in the stream; what `TaskQueue.delete` takes."""
    payload: bytes
    ack_subject: str
    """Address for `ack`, `nak`, `in_progress` and `term`; still good after a restart."""
    deliveries: int
    """How often the bus believes to have delivered it, this time included. Not to be relied on:
    after a kill of the bus it may begin at 1 again."""


@dataclass(frozen=True, slots=True)
class Signal:
    """A message that nobody keeps."""

    subject: str
    payload: bytes
    reply_subject: str
    """Where an answer is awaited; empty if it is not."""


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Some output of a trial."""

    trial_id: str
    sequence: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """How a stream of the bus is."""

    name: str
    messages: int
    size_bytes: int
    replicas: int
    """Copies that the bus is to keep."""
    replicas_missing: int
    """How many of them are away or behind; 0 for a single copy."""
    consumers: int


class EventLog(Protocol):
    """The ordered, durable log of each experiment; only the experiment's manager appends."""

    async def append(
        self,
        experiment_id: str,
        payload: bytes,
        *,
        expected_sequence: int,
        epoch: int,
        append_id: str,
    ) -> int:
        """Append one message behind `expected_sequence` and return its stream sequence.

        Returns once the bus has it on disk. An append whose acknowledgement was lost is
        recognised by (`epoch`, `append_id`) in the last message of the log, so it is stored
        exactly once, however often it is sent.

        Args:
            experiment_id: whose log.
            payload: the batch of events, at most 8 MB.
            expected_sequence: sequence of the last message of this log; 0 for the first append.
            epoch: number of this ownership of the experiment; larger for later owners.
            append_id: differs between all appends of one epoch.

        Raises:
            LostOwnershipError: the log ends with a message of another writer.
        """
        ...

    async def last(self, experiment_id: str) -> LogMessage | None:
        """Give the last message of a log; None if the log has none."""
        ...

    def read(self, experiment_id: str, after_sequence: int = 0) -> AsyncGenerator[LogMessage, None]:
        """Give the messages behind `after_sequence` up to the end the log has at the call."""
        ...

    def follow(
        self, experiment_id: str, after_sequence: int = 0
    ) -> AsyncGenerator[LogMessage, None]:
        """Give the messages behind `after_sequence`, then each new one; never ends.

        In order, each exactly once, also across reconnections.
        """
        ...

    def follow_all(self, after_sequence: int = 0) -> AsyncGenerator[LogMessage, None]:
        """As `follow`, for the logs of all experiments in the order of their appends."""
        ...

    async def experiments(self) -> list[str]:
        """List the ids of all experiments that have a log, sorted."""
        ...

    async def delete(self, experiment_id: str) -> None:
        """Delete a log; nothing happens if there is none."""
        ...


class Inbox(Protocol):
    """What is sent to the manager of an experiment, kept until it has been consumed."""

    async def publish(
        self, experiment_id: str, source: str, payload: bytes, *, message_id: str
    ) -> int:
        """Send to the manager; return the stream sequence once the bus has it on disk.

        Calls may overlap (they are pipelined); without a reconnection their order is kept.
        After a lost acknowledgement the message is sent again, so it may be stored twice:
        readers drop duplicates by what the payload says.

        Args:
            experiment_id: whose manager.
            source: who sends, one token.
            payload: at most 8 MB.
            message_id: unique per message; lets the bus drop most of the duplicates.
        """
        ...

    def follow(
        self, experiment_id: str, after_sequence: int = 0
    ) -> AsyncGenerator[list[InboxMessage], None]:
        """Give all messages behind `after_sequence`, then new ones as they come; never ends.

        Each item is the non-empty list of everything that has arrived since the last one, in
        order, each message exactly once, also across reconnections. A slow reader gets longer
        lists (at most 1,000 messages).
        """
        ...

    async def last_sequence(self, experiment_id: str) -> int:
        """Give the sequence of the last message kept for an experiment; 0 if there is none."""
        ...

    async def trim(self, experiment_id: str, through_sequence: int) -> None:
        """Forget the messages of an experiment up to and including `through_sequence`."""
        ...

    async def delete(self, experiment_id: str) -> None:
        """Forget all messages of an experiment."""
        ...


class TaskFeed(Protocol):
    """A standing pull of tasks; iterate over it: `async for task in feed`.

    Nothing is delivered before `grant`. One reader at a time.
    """

    def grant(self, count: int) -> None:
        """Allow `count` more tasks to be delivered; grants add up, each task uses up one."""
        ...

    @property
    def granted(self) -> int:
        """How many more tasks may be delivered."""
        ...

    def __aiter__(self) -> "TaskFeed":
        """Return itself."""
        ...

    async def __anext__(self) -> Task:
        """Wait for the next task.

        Raises:
            StopAsyncIteration: the feed was closed.
        """
        ...

    async def aclose(self) -> None:
        """Stop the pull; tasks delivered but not yet read are given back at once."""
        ...


class TaskQueue(Protocol):
    """Tasks for pools of agents: each is delivered to one of them, at least once."""

    async def publish(self, pool: str, payload: bytes, *, message_id: str) -> int:
        """Queue a task; return its sequence once the bus has it on disk.

        Calls may overlap. A task whose acknowledgement was lost may be queued twice.

        Args:
            pool: which agents may take it.
            payload: at most 8 MB.
            message_id: unique per (trial, attempt); lets the bus drop most duplicates.
        """
        ...

    async def open_pool(self, pool: str) -> None:
        """Let agents pull from a pool before anything was published to it; may be repeated.

        `publish` does it as well. Needed where the bus lets agents make nothing themselves.
        """
        ...

    async def delete(self, sequence: int) -> None:
        """Take a task off the queue; nothing happens if it is gone already."""
        ...

    async def pull(self, pool: str) -> TaskFeed:
        """Open a standing pull of the tasks of a pool."""
        ...

    async def ack(self, ack_subject: str) -> None:
        """Say that a task is finished, for good; returns when the bus knows."""
        ...

    async def nak(self, ack_subject: str, delay_s: float = 0.0) -> None:
        """Give a task back; it is delivered again after `delay_s`."""
        ...

    async def in_progress(self, ack_subject: str) -> None:
        """Renew the hold on a task for another `ack_wait`; returns when the bus knows."""
        ...

    async def term(self, ack_subject: str) -> None:
        """Say that a task must never be delivered again although it was not done."""
        ...


class Signals(Protocol):
    """Messages that nobody keeps: orders to agents, presence, live views."""

    def publish(self, subject: str, payload: bytes) -> bool:
        """Send to whoever listens now; False if the bus is away and the signal was dropped."""
        ...

    async def request(self, subject: str, payload: bytes, timeout_s: float) -> bytes:
        """Send and wait for one answer.

        Raises:
            UnavailableError: nobody listens, or no answer came within `timeout_s`.
        """
        ...

    def reply(self, signal: Signal, payload: bytes) -> bool:
        """Answer a signal that came by `request`; False if the answer was dropped."""
        ...

    async def subscribe(self, subject: str) -> AsyncGenerator[Signal, None]:
        """Listen to a subject or pattern made by `svc_common.subjects`.

        Returns once the bus knows of the subscription: what is published from now on arrives.
        """
        ...


class LogLines(Protocol):
    """Output of trials on its way to the page and the command line; kept for a while."""

    def publish(self, experiment_id: str, trial_id: str, payload: bytes) -> bool:
        """Send some output of a trial; False if the bus is away or busy and it was dropped.

        The files of the runner are the record; this is for those who watch.
        """
        ...

    def follow(
        self, experiment_id: str, trial_id: str, after_sequence: int = 0
    ) -> AsyncGenerator[LogChunk, None]:
        """Give what is kept behind `after_sequence`, then what comes; never ends."""
        ...

    async def last_sequence(self, experiment_id: str, trial_id: str) -> int:
        """Give the sequence of the last output kept of a trial; 0 if there is none."""
        ...

    async def delete(self, experiment_id: str) -> None:
        """Forget the output of all trials of an experiment."""
        ...


class Bus(Protocol):
    """All ports of one connection to the bus; open it with `async with`."""

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
        """Messages that nobody keeps."""
        ...

    @property
    def log_lines(self) -> LogLines:
        """Output of trials."""
        ...

    @property
    def connected(self) -> bool:
        """Whether the bus can be reached now."""
        ...

    async def wait_connected(self, connected: bool = True) -> None:  # noqa: FBT001, FBT002 - the awaited state reads as a word
        """Wait until the bus can be reached, or (False) until it no longer can."""
        ...

    async def streams(self) -> list[StreamFacts]:
        """Tell how the streams are, in the order of `svc_common.subjects`.

        One that is missing is left out.
        """
        ...

    async def __aenter__(self) -> Self:
        """Connect, waiting for the bus as long as it takes.

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
        """Close."""
        ...

    async def aclose(self) -> None:
        """Close; may be called twice. Waiting calls get `UnavailableError`, iterators end."""
        ...
