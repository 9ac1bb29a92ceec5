"""Buffer of INBOX messages for the actor of one experiment."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from svc_common.errors import UnavailableError
from svc_common.messaging.ports import Inbox, InboxMessage

TAKE_LIMIT_BYTES: Final = 512 * 1024
"""Largest batch of one `take`, about 5,000 reports: deciding on it blocks the loop for less than
0.1 s."""
BACKLOG_LIMIT: Final = 5000
"""Buffered messages above which reading pauses."""


class InboxReader:
    """Buffer of an experiment's INBOX messages, filled by a background task until closed.

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
        self._taken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def reading(self) -> bool:
        """True if the reader is started and not closed."""
        return self._task is not None

    def start(self, after_sequence: int) -> None:
        """Start a task that buffers INBOX messages behind the sequence ``after_sequence``."""
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
                self._wake()
                while len(self._messages) > BACKLOG_LIMIT:
                    self._taken.clear()
                    await self._taken.wait()
        raise UnavailableError("the bus was closed")
