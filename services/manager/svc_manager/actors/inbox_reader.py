"""Reading of the INBOX: its continuity with the logs, and the messages of one experiment."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError

from svc_common.errors import PermissionDeniedError, UnavailableError
from svc_common.large_work import ON_LOOP_BYTES, off_loop
from svc_common.logs import get_logger
from svc_common.messaging.ports import Inbox, InboxMessage
from svc_common.subjects import STREAM_INBOX
from svc_manager.converters.notifications import inbox_message_from, notifications_of
from svc_manager.domain.inputs import Notification

TAKE_LIMIT_BYTES: Final = 512 * 1024
"""Size of a batch of one `take`; the last message may exceed it."""
TAKE_LIMIT: Final = 2_000
"""Reports in a batch of one `take`: deciding on them blocks the loop for less than 50 ms."""
BACKLOG_LIMIT: Final = 5000
"""Buffered messages above which reading pauses."""


@dataclass(frozen=True, slots=True)
class DecodedMessage:
    """Notifications of an INBOX message, or of a piece of one that has many."""

    sequence: int
    notifications: Sequence[Notification]
    size_bytes: int
    complete: bool = True
    """False if the next piece has more notifications of the same message."""
    unknown: int = 0
    """Reports of kinds that this version does not know."""


async def continue_inbox(inbox: Inbox, cursor: int) -> bool:
    """Renumber the INBOX above the logs' cursor if it ends below (lost data); return whether.

    It was emptied, is damaged or is an older copy then: it would give consumed numbers again, and
    no report would be read. Reports that are gone cost the attempts that lack them.

    Returns:
        Whether the stream did not continue what the logs have consumed.
    """
    moved = await inbox.lift(cursor)
    if moved is None:
        return False
    get_logger().error(
        "reports that the logs have consumed are gone from the bus, whose data are damaged, "
        "replaced or older; its numbers go on above them, and attempts whose reports are lost run "
        "again",
        stream=STREAM_INBOX,
        consumed_through=cursor,
        numbered_again=moved,
    )
    return True


class InboxReader:
    """Bounded buffer of an experiment's INBOX messages, filled in the background until closed.

    Messages are decoded when they are taken, large ones before that in a thread. Messages that are
    malformed, have too many parts, or that their sender may not send, are logged, and have no
    notifications.

    Args:
        inbox: source of the messages.
        experiment_id: the experiment.
        wake: called whenever messages are buffered, or reading has failed.
    """

    def __init__(self, inbox: Inbox, experiment_id: str, wake: Callable[[], None]) -> None:
        self._inbox = inbox
        self._experiment_id = experiment_id
        self._wake = wake
        self._buffer: deque[InboxMessage | DecodedMessage] = deque()
        self.read_sequence = 0
        """Sequence of the last buffered message."""
        self._taken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def reading(self) -> bool:
        """True if the reader is started and not closed."""
        return self._task is not None

    def start(self, after_sequence: int) -> None:
        """Start a task that buffers INBOX messages after the sequence ``after_sequence``."""
        self._task = asyncio.create_task(
            self._read(after_sequence), name=f"inbox {self._experiment_id}"
        )
        self._task.add_done_callback(lambda _: self._wake())

    def take(self) -> list[DecodedMessage]:
        """Remove and return buffered INBOX messages, in order, up to limits of bytes and reports.

        Call `wake` again if some remain.

        Raises:
            ServiceError: reading has failed.
        """
        if self._task is not None and self._task.done():
            self._task.result()  # reading ends only by an error: this raises it
        taken: list[DecodedMessage] = []
        count = size_bytes = 0
        while self._buffer and size_bytes < TAKE_LIMIT_BYTES and count < TAKE_LIMIT:
            message = self._buffer.popleft()
            if isinstance(message, InboxMessage):
                self._buffer.extendleft(reversed(_decoded(message)))
                continue
            taken.append(message)
            count += len(message.notifications) + message.unknown
            size_bytes += message.size_bytes
        if self._buffer:
            self._wake()
        self._taken.set()
        return taken

    async def aclose(self) -> None:
        """Cancel the task that reads the INBOX; may be called twice."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _read(self, after_sequence: int) -> None:
        async with aclosing(self._inbox.follow(self._experiment_id, after_sequence)) as feed:
            async for messages in feed:
                for message in messages:
                    if len(message.payload) <= ON_LOOP_BYTES:
                        self._buffer.append(message)
                    else:
                        await self._decode_large(message)
                    self.read_sequence = message.sequence
                self._wake()
                await self._wait_until_buffered(BACKLOG_LIMIT)
        raise UnavailableError("the bus was closed")

    async def _decode_large(self, message: InboxMessage) -> None:
        """Decode a message in a thread once the buffer is empty, so that it holds one at most."""
        await self._wait_until_buffered(0)
        self._buffer.extend(await off_loop(len(message.payload), _decoded, message))

    async def _wait_until_buffered(self, count: int) -> None:
        """Wait until at most so many messages are in the buffer."""
        while len(self._buffer) > count:
            self._wake()
            self._taken.clear()
            await self._taken.wait()


def _decoded(message: InboxMessage) -> list[DecodedMessage]:
    """Decode a message, and split many reports; without notifications, and logged, if refused."""
    try:
        decoded = inbox_message_from(message.payload)
        notifications = notifications_of(decoded, message.source)
    except (DecodeError, PermissionDeniedError) as error:
        get_logger().error(
            "message dropped",
            experiment=message.experiment_id,
            source=message.source,
            sequence=message.sequence,
            error=str(error),
        )
        return [DecodedMessage(message.sequence, (), len(message.payload))]
    unknown = max(0, len(decoded.runner_reports.reports) - len(notifications))
    return _pieces(message, notifications, unknown)


def _pieces(
    message: InboxMessage, notifications: Sequence[Notification], unknown: int
) -> list[DecodedMessage]:
    """Split the notifications of a message to pieces; its size and unknown reports are the last's.

    If the manager dies between two of them, the message is read again, and the reports that were
    applied are known by their numbers.
    """
    starts = range(0, max(1, len(notifications)), TAKE_LIMIT)
    return [
        DecodedMessage(
            message.sequence,
            notifications[start : start + TAKE_LIMIT],
            len(message.payload) if start == starts[-1] else 0,
            complete=start == starts[-1],
            unknown=unknown if start == starts[-1] else 0,
        )
        for start in starts
    ]
