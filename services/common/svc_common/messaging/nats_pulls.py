"""Pending pull requests at a consumer of JetStream, counted by the tasks they may deliver."""

import asyncio
import json
from collections.abc import Iterator
from typing import Final

from svc_common.messaging.nats_connection import Connection

PULL_EXPIRES_S: Final = 60.0
"""How long a pull request stands before the server ends it."""
OVERDUE_S: Final = PULL_EXPIRES_S + 5.0
"""Age at which a request that the server has not ended counts as dropped."""


class StandingPulls:
    """Pull requests of one feed at one consumer, and how many tasks each of them may still bring.

    Requests are served in order; a task does not tell which one it answers.

    Args:
        connection: over which they are sent.
        subject: of pulls from the consumer.
        inbox: prefix of the subject that receives the tasks; the number of a request follows.
        numbers: of requests, unique in the inbox.
    """

    def __init__(
        self, connection: Connection, subject: str, inbox: str, numbers: Iterator[int]
    ) -> None:
        self._connection = connection
        self._subject = subject
        self._inbox = inbox
        self._numbers = numbers
        self._loop = asyncio.get_running_loop()
        self._standing: dict[str, tuple[int, float]] = {}

    @property
    def rest(self) -> int:
        """Number of tasks that the requests may still bring."""
        return sum(rest for rest, _ in self._standing.values())

    def __contains__(self, number: str) -> bool:
        """Return whether a request may still bring a task."""
        return number in self._standing

    def send(self, count: int, *, at_once: bool = False) -> str:
        """Request tasks, pending or `at_once`; return the request's number; empty: bus unreachable.

        Args:
            count: at least 1.
            at_once: whether the server ends the request when it has sent what it has.
        """
        number = str(next(self._numbers))
        request: dict[str, object] = {"batch": count}
        request |= {"no_wait": True} if at_once else {"expires": int(PULL_EXPIRES_S * 1e9)}
        reply = f"{self._inbox}.{number}"
        if not self._connection.publish(self._subject, json.dumps(request).encode(), reply=reply):
            return ""
        self._standing[number] = (count, self._loop.time() + OVERDUE_S)
        return number

    def count_delivery(self) -> None:
        """Count a task that was delivered: the oldest request has brought it."""
        for number, (rest, deadline_s) in self._standing.items():
            if rest > 1:
                self._standing[number] = (rest - 1, deadline_s)
            else:
                del self._standing[number]
            return

    def end(self, number: str) -> None:
        """Forget a request that the server has ended; do nothing if it is unknown."""
        self._standing.pop(number, None)

    def end_overdue(self) -> None:
        """Remove the requests that the server should have ended by now."""
        now_s = self._loop.time()
        for number, (_, deadline_s) in list(self._standing.items()):
            if deadline_s <= now_s:
                del self._standing[number]

    def clear(self) -> None:
        """Forget all requests: the server does, when the connection is lost."""
        self._standing.clear()
