"""Tells a connection that stands from one whose other end is gone without a word."""

import asyncio
from collections.abc import Callable
from typing import Final

PING_INTERVAL_S: Final = 20.0
"""A connection that does not answer a ping within this time is given up."""


class Heartbeat:
    """Pings again and again; belongs to one event loop.

    Args:
        ping: sends a ping.
        give_up: called once if a ping was not answered when the next one is due.
        interval_s: between two pings.
    """

    def __init__(
        self,
        ping: Callable[[], None],
        give_up: Callable[[], None],
        interval_s: float = PING_INTERVAL_S,
    ) -> None:
        self._ping = ping
        self._give_up = give_up
        self._interval_s = interval_s
        self._timer: asyncio.TimerHandle | None = None
        self._due = False

    def start(self) -> None:
        """Begin, or begin anew with a new connection."""
        self.stop()
        self._due = False
        self._wait()

    def answered(self) -> None:
        """Take note of an answer."""
        self._due = False

    def stop(self) -> None:
        """Ping no more; may be called twice."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._beat)

    def _beat(self) -> None:
        if self._due:
            self._timer = None
            self._give_up()
            return
        self._due = True
        self._ping()
        self._wait()
