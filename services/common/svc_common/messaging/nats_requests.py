"""Requests that wait for an answer on a connection to the bus."""

import asyncio
import itertools
from typing import Final

from svc_common.errors import PermissionDeniedError, UnavailableError

SWEEP_INTERVAL_S: Final = 1.0
Headers = dict[str, str]
Answer = asyncio.Future[tuple[Headers, bytes]]
"""Headers and payload."""


class DisconnectedError(UnavailableError):
    """Error: the server went away before it answered; the request may or may not have arrived."""


class RequestTimeoutError(UnavailableError):
    """Error: the server did not answer in time; the request may or may not have arrived."""


class NoRespondersError(UnavailableError):
    """Error: the subject of the request has no subscriber."""


class RequestTable:
    """Table of pending NATS requests by token, which one periodic sweep times out.

    A timer for each request would cost more than the request: one sweep a second finds those that
    are overdue, so a time-out may come up to a second late.

    Args:
        sweep_interval_s: time between two sweeps.
    """

    def __init__(self, sweep_interval_s: float = SWEEP_INTERVAL_S) -> None:
        self._sweep_interval_s = sweep_interval_s
        self._pending: dict[str, tuple[Answer, float, str]] = {}
        self._tokens = itertools.count(1)
        self._sweeper: asyncio.TimerHandle | None = None

    def add(self, timeout_s: float, subject: str) -> tuple[str, Answer]:
        """Register a request with its deadline; return its token and the future of its answer."""
        loop = asyncio.get_running_loop()
        token, answer = str(next(self._tokens)), loop.create_future()
        self._pending[token] = (answer, loop.time() + timeout_s, subject)
        if self._sweeper is None:
            self._sweeper = loop.call_later(self._sweep_interval_s, self._sweep)
        return token, answer

    def complete(self, token: str, headers: Headers, payload: bytes) -> None:
        """Resolve a request's future by an answer; fail it if there was no subscriber."""
        if headers.get("Status") == "503":
            self.fail(token, NoRespondersError("the subject has no subscriber"))
        elif (pending := self._pending.pop(token, None)) and not pending[0].done():
            pending[0].set_result((headers, payload))

    def fail(self, token: str, error: UnavailableError | PermissionDeniedError) -> None:
        """Remove a pending request and set an error on its future."""
        if (pending := self._pending.pop(token, None)) and not pending[0].done():
            pending[0].set_exception(error)
            pending[0].exception()  # retrieved: the task that waited for it may be gone

    def fail_all(self) -> None:
        """Fail all requests because the server went away."""
        for token in tuple(self._pending):
            self.fail(token, DisconnectedError("the bus went away"))

    def forbid(self, subject: str) -> None:
        """Fail all requests to a subject, given in lower case, to which publishing is forbidden."""
        for token, (_, _, asked) in tuple(self._pending.items()):
            if asked.lower() == subject:
                text = f"the bus forbids this user to publish to {asked}"
                self.fail(token, PermissionDeniedError(text))

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        for token, (_, deadline_s, _) in tuple(self._pending.items()):
            if deadline_s <= loop.time():
                self.fail(token, RequestTimeoutError("the bus did not answer in time"))
        self._sweeper = (
            loop.call_later(self._sweep_interval_s, self._sweep) if self._pending else None
        )
