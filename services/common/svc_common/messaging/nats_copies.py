"""Reads of a stream without consumers: batches of direct gets, and copies of new messages.

A consumer delivers to any subject of the stream's account, so a user who may make one can write
logs and orders. Confined users read stored messages in batches instead (direct get). New messages
come as copies that the server publishes after it has stored them (republish).
"""

import asyncio
import json
from types import TracebackType
from typing import Final, Self

from svc_common.messaging.callback_queue import CallbackQueue
from svc_common.messaging.nats_jetstream import (
    ANSWER_TIMEOUT_S,
    FIRST_RETRY_S,
    LAST_RETRY_S,
    SILENCE_LIMIT_S,
    JetStream,
    JetStreamError,
    Stored,
    nanoseconds,
)
from svc_common.messaging.nats_requests import Headers

_BATCH_MESSAGES: Final = 1_000
_BATCH_LIMIT_BYTES: Final = 4 * 1024 * 1024
_END_OF_BATCH: Final = "204"
_NO_MESSAGE: Final = "404"
_NO_RESPONDERS: Final = "503"


class DirectReader:
    """Reader of a stream's messages in batches of direct gets, which need no consumer."""

    def __init__(self, jetstream: JetStream, stream: str) -> None:
        self._js = jetstream
        self._subject = f"{jetstream.api_prefix}.DIRECT.GET.{stream}"

    async def batch(self, pattern: str, after: int) -> list[Stored]:
        """Return up to 1,000 messages of a pattern after `after`, retrying; empty: there are none.

        Raises:
            JetStreamError: the server refuses.
            UnavailableError: the connection was closed.
        """
        request = {
            "seq": after + 1,
            "next_by_subj": pattern,
            "batch": _BATCH_MESSAGES,
            "max_bytes": _BATCH_LIMIT_BYTES,
        }
        retry_s = FIRST_RETRY_S
        while True:
            await self._js.connection.wait_connected()
            batch, status = await self._get(json.dumps(request).encode())
            if batch or status == _NO_MESSAGE:
                return batch
            if status not in {"", _END_OF_BATCH, _NO_RESPONDERS}:
                raise JetStreamError(int(status), "a batch of messages cannot be read")
            # The stream does not exist yet, or the connection was lost.
            await asyncio.sleep(retry_s)
            retry_s = min(retry_s * 2, LAST_RETRY_S)

    async def _get(self, request: bytes) -> tuple[list[Stored], str]:
        """Send one batched direct get; return its messages and final status, "" if it broke off."""
        connection = self._js.connection
        batch: list[Stored] = []
        status: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def end(text: str = "") -> None:
            if not status.done():
                status.set_result(text)

        def receive(_subject: str, _reply: str, headers: Headers, payload: bytes) -> None:
            if "Status" in headers:
                end(headers["Status"])
            elif not status.done():
                batch.append(_stored(headers, payload))

        inbox = connection.new_inbox()
        remove, sid = connection.on_change(end), connection.subscribe(inbox, receive)
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                if not connection.publish(self._subject, request, reply=inbox):
                    return [], ""
                return batch, await status
        except TimeoutError:
            end()
            return batch, ""
        finally:
            remove()
            connection.unsubscribe(sid)


class CopyFeed:
    """Subscription to the copies of a stream's new messages, with notices of possible gaps.

    Args:
        jetstream: its connection is subscribed inside the `async with` block.
        copies: subject or pattern of the copies.
    """

    def __init__(self, jetstream: JetStream, copies: str) -> None:
        self._connection = jetstream.connection
        self._copies = copies
        self._box: CallbackQueue[Stored | None] = CallbackQueue()
        self._loop = asyncio.get_running_loop()

    async def get(self) -> Stored | None:
        """Wait for the next copy; None: messages may be missing, read the stream.

        None comes first, after each reconnection, and every `SILENCE_LIMIT_S`.

        Raises:
            StopAsyncIteration: the bus was closed.
        """
        return await self._box.get()

    async def __aenter__(self) -> Self:
        """Subscribe to the copies."""
        self._timer = self._loop.call_later(SILENCE_LIMIT_S, self._check)
        self._remove = self._connection.on_change(self._changed)
        self._sid = self._connection.subscribe(self._copies, self._receive)
        self._box.put(None)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the subscription."""
        self._timer.cancel()
        self._remove()
        self._connection.unsubscribe(self._sid)

    def _receive(self, _subject: str, _reply: str, headers: Headers, payload: bytes) -> None:
        self._box.put(_stored(headers, payload))

    def _changed(self) -> None:
        if self._connection.closed:
            self._box.close()
        else:
            self._box.put(None)

    def _check(self) -> None:
        self._box.put(None)
        self._timer = self._loop.call_later(SILENCE_LIMIT_S, self._check)


def _stored(headers: Headers, payload: bytes) -> Stored:
    """Return the message of a stream that a direct get or a copy contains."""
    sequence, time_ns = int(headers["Nats-Sequence"]), nanoseconds(headers["Nats-Time-Stamp"])
    return Stored(headers["Nats-Subject"], sequence, payload, headers, time_ns)
