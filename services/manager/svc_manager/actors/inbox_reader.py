"""Reading of the INBOX: its continuity with the logs, and the messages of one experiment."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from svc_common.errors import UnavailableError
from svc_common.logs import get_logger
from svc_common.messaging.ports import Inbox, InboxMessage
from svc_common.subjects import STREAM_INBOX

TAKE_LIMIT_BYTES: Final = 512 * 1024
"""Largest batch of one `take`, about 5,000 reports: deciding on it blocks the loop for less than
0.1 s."""
BACKLOG_LIMIT: Final = 5000
"""Buffered messages above which reading pauses."""


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

    Args:
        inbox: source of the messages.
        experiment_id: the experiment.
        wake: called whenever messages are buffered, or reading has failed.
    """

    def __init__(self, inbox: Inbox, experiment_id: str, wake: Callable[[], None]) -> None:
        self._inbox = inbox
        self._experiment_id = experiment_id
        self._wake = wake
        self._messages: list[InboxMessage] = []
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

    def take(self) -> list[InboxMessage]:
        """Remove and return the buffered INBOX messages, in order, up to a limit of bytes.

        Call `wake` again if some remain.

        Raises:
            ServiceError: reading has failed.
        """
        if self._task is not None and self._task.done():
            self._task.result()  # reading ends only by an error: this raises it
        count = total = 0
        while count < len(self._messages) and total < TAKE_LIMIT_BYTES:
            total += len(self._messages[count].payload)
            count += 1
        messages, self._messages = self._messages[:count], self._messages[count:]
        if self._messages:
            self._wake()
        self._taken.set()
        return messages

    async def aclose(self) -> None:
        """Cancel the task that reads the INBOX; may be called twice."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _read(self, after_sequence: int) -> None:
        async with aclosing(self._inbox.follow(self._experiment_id, after_sequence)) as feed:
            async for messages in feed:
                self._messages.extend(messages)
                self.read_sequence = messages[-1].sequence
                self._wake()
                while len(self._messages) > BACKLOG_LIMIT:
                    self._taken.clear()
                    await self._taken.wait()
        raise UnavailableError("the bus was closed")
