"""Requests under way on a connection: who waits for which answer, and for how long."""

import asyncio
import itertools
from dataclasses import dataclass
from typing import Final

from svc_common.errors import PermissionDeniedError, UnavailableError
from svc_common.messaging import nats_wire as wire

SWEEP_INTERVAL_S: Final = 1.0
"""How often overdue requests are looked for; one timer for all of them."""


class DisconnectedError(UnavailableError):
    """The server went away before it answered; what was sent may or may not have arrived."""


class RequestTimeoutError(UnavailableError):
    """The server did not answer in time; what was sent may or may not have arrived."""


class NoRespondersError(UnavailableError):
    """Nobody listens to the subject of the request."""


@dataclass(frozen=True, slots=True)
class _Pending:
    future: asyncio.Future[tuple[bytes, bytes]]
    deadline_s: float
    subject: str


class RequestTable:
    """Matches answers to requests by a token that travels as the last part of the reply subject.

    A timer of its own for each request would cost more than the request: one sweep a second
    finds those that are overdue, so a time-out may come up to a second late.
    """

    def __init__(self) -> None:
        self._requests: dict[str, _Pending] = {}
        self._tokens = itertools.count(1)
        self._sweeper: asyncio.TimerHandle | None = None

    def add(
        self, timeout_s: float, subject: str = ""
    ) -> tuple[str, asyncio.Future[tuple[bytes, bytes]]]:
        """Begin to wait for an answer: headers and payload; give its token and its future.

        Args:
            timeout_s: longest wait.
            subject: that the request is sent to; see `forbid`.
        """
        loop = asyncio.get_running_loop()
        token = str(next(self._tokens))
        future: asyncio.Future[tuple[bytes, bytes]] = loop.create_future()
        self._requests[token] = _Pending(future, loop.time() + timeout_s, subject)
        if self._sweeper is None:
            self._sweeper = loop.call_later(SWEEP_INTERVAL_S, self._sweep)
        return token, future

    def answer(self, token: str, headers: bytes, payload: bytes) -> None:
        """Hand an answer to who waits for it; dropped if nobody does any more."""
        pending = self._requests.pop(token, None)
        if pending is None or pending.future.done():
            return
        if headers and wire.status_of(headers) == "503":
            pending.future.set_exception(NoRespondersError("nobody listens"))
        else:
            pending.future.set_result((headers, payload))

    def refuse(self, token: str) -> None:
        """Let who waits know that nothing was sent: the server is away."""
        pending = self._requests.pop(token)
        pending.future.set_exception(DisconnectedError("the bus is away"))

    def forbid(self, subject: str) -> None:
        """Let all who asked at ``subject`` know that this user of the bus may not."""
        for token, pending in list(self._requests.items()):
            if pending.subject == subject:
                del self._requests[token]
                if not pending.future.done():
                    pending.future.set_exception(
                        PermissionDeniedError(f"the bus forbids this user to publish to {subject}")
                    )
                    pending.future.exception()  # seen: its waiter may be gone

    def fail_all(self) -> None:
        """Let all who wait know that the server went away."""
        requests, self._requests = self._requests, {}
        for pending in requests.values():
            if not pending.future.done():
                pending.future.set_exception(DisconnectedError("the bus went away"))
                pending.future.exception()  # seen: its waiter may be gone as well
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None

    def _sweep(self) -> None:
        """Fail requests that are overdue; goes on while any is waiting."""
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        overdue = [token for token, one in self._requests.items() if one.deadline_s <= now_s]
        for token in overdue:
            future = self._requests.pop(token).future
            if not future.done():
                future.set_exception(RequestTimeoutError("the bus did not answer in time"))
                future.exception()  # as above
        self._sweeper = loop.call_later(SWEEP_INTERVAL_S, self._sweep) if self._requests else None
