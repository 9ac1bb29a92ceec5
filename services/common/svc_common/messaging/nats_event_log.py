"""`EventLog` on the stream `EXPERIMENTS`; confined users read it without consumers.

A consumer delivers to any subject of the stream's account, so a user who may make one can write
logs and orders. Confined users read history in batches instead (direct get). New messages come as
copies that the server publishes after it has stored them (republish); a copy that does not continue
what was read before makes the follower read the messages between from the stream.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from svc_common import subjects
from svc_common.errors import LostOwnershipError, UnavailableError
from svc_common.messaging.callback_queue import CallbackQueue
from svc_common.messaging.nats_jetstream import (
    ANSWER_TIMEOUT_S,
    FIRST_RETRY_S,
    LAST_RETRY_S,
    SILENCE_LIMIT_S,
    WRONG_LAST_SEQUENCE,
    JetStream,
    JetStreamError,
    Stored,
    nanoseconds,
)
from svc_common.messaging.nats_requests import (
    DisconnectedError,
    Headers,
    NoRespondersError,
    RequestTimeoutError,
)
from svc_common.messaging.ports import LogMessage

_BATCH_MESSAGES: Final = 1_000
_BATCH_LIMIT_BYTES: Final = 4 * 1024 * 1024
_EXPECTED: Final = "Nats-Expected-Last-Subject-Sequence"
_EPOCH: Final = "Nni-Epoch"
_APPEND_ID: Final = "Nni-Append"
_END_OF_BATCH: Final = "204"
_NO_MESSAGE: Final = "404"
_NO_RESPONDERS: Final = "503"


class NatsEventLog:
    """`EventLog` over NATS: experiments' logs on the stream `EXPERIMENTS`."""

    def __init__(self, jetstream: JetStream) -> None:
        self._js = jetstream

    async def append(
        self,
        experiment_id: str,
        payload: bytes,
        *,
        expected_sequence: int,
        epoch: int,
        append_id: str,
    ) -> int:
        """Append to an experiment's log if it ends at `expected_sequence`; settle lost answers."""
        subject = subjects.event_subject(experiment_id)
        headers = {_EXPECTED: str(expected_sequence), _EPOCH: str(epoch), _APPEND_ID: append_id}
        in_doubt = False
        while True:
            try:
                return await self._js.publish_once(subject, payload, headers)
            except (DisconnectedError, RequestTimeoutError, NoRespondersError):
                in_doubt = True
            except JetStreamError as error:
                if error.code != WRONG_LAST_SEQUENCE:
                    raise
            last = await self.last(experiment_id)
            if last is not None and (last.epoch, last.append_id) == (epoch, append_id):
                return last.sequence
            found = last.sequence if last is not None else 0
            if found != expected_sequence or not in_doubt:
                raise LostOwnershipError(
                    experiment_id,
                    expected_sequence=expected_sequence,
                    found_sequence=found,
                    found_epoch=last.epoch if last is not None else 0,
                )
            # It did not arrive, or not yet. Sending it again is safe: if the first arrives late,
            # the second breaks the expected sequence and the last message is this append.

    async def last(self, experiment_id: str) -> LogMessage | None:
        """Return the last message of an experiment's log; None if the log is empty."""
        stored = await self._js.last(
            subjects.STREAM_EXPERIMENTS, subjects.event_subject(experiment_id)
        )
        return None if stored is None else _log_message(stored)

    async def read(
        self, experiment_id: str, after_sequence: int = 0
    ) -> AsyncGenerator[LogMessage, None]:
        """Yield an experiment's log behind `after_sequence` up to its end at the call."""
        subject = subjects.event_subject(experiment_id)
        async with aclosing(self._read(subject, after_sequence)) as messages:
            async for stored in messages:
                yield _log_message(stored)

    async def follow(
        self, experiment_id: str, after_sequence: int = 0
    ) -> AsyncGenerator[LogMessage, None]:
        """Yield an experiment's log behind `after_sequence`, then each new message, for ever."""
        subject = subjects.event_subject(experiment_id)
        copies = subjects.copy_subject(experiment_id)
        async with aclosing(self._follow(subject, copies, after_sequence)) as messages:
            async for message in messages:
                yield message

    async def follow_all(self, after_sequence: int = 0) -> AsyncGenerator[LogMessage, None]:
        """Yield the messages of all experiments' logs in append order, then new ones, for ever."""
        pattern, copies = subjects.ALL_EVENTS, subjects.ALL_COPIES
        async with aclosing(self._follow(pattern, copies, after_sequence)) as messages:
            async for message in messages:
                yield message

    async def experiments(self) -> list[str]:
        """Return the sorted ids of all experiments with a log, from the stream's paged subjects."""
        found: set[str] = set()
        while True:
            answer = await self._js.api(
                f"STREAM.INFO.{subjects.STREAM_EXPERIMENTS}",
                {"subjects_filter": subjects.ALL_EVENTS, "offset": len(found)},
            )
            page = answer["state"].get("subjects") or {}
            found.update(subjects.experiment_of_event(subject) for subject in page)
            if not page or len(found) >= int(answer.get("total", 0)):
                return sorted(found)

    async def delete(self, experiment_id: str) -> None:
        """Delete a log; nothing happens if there is none."""
        await self._js.purge(subjects.STREAM_EXPERIMENTS, subjects.event_subject(experiment_id))

    async def _follow(
        self, pattern: str, copies: str, after: int
    ) -> AsyncGenerator[LogMessage, None]:
        """Read stored messages behind `after`, then live copies; fill gaps by reading again."""
        connection, loop = self._js.connection, asyncio.get_running_loop()
        box: CallbackQueue[Stored | None] = CallbackQueue()
        """Copies; None: messages may be missing."""

        def receive(_subject: str, _reply: str, headers: Headers, payload: bytes) -> None:
            box.put(_stored(headers, payload))

        def changed() -> None:
            box.close() if connection.closed else box.put(None)

        timer: asyncio.TimerHandle

        def check() -> None:
            nonlocal timer
            box.put(None)
            timer = loop.call_later(SILENCE_LIMIT_S, check)

        timer = loop.call_later(SILENCE_LIMIT_S, check)
        remove = connection.on_change(changed)
        sid = connection.subscribe(copies, receive)
        box.put(None)
        try:
            while True:
                copy = await box.get()
                if copy is not None and copy.sequence <= after:
                    continue
                if copy is not None and _previous(copy, pattern) == after:
                    after = copy.sequence
                    yield _log_message(copy)
                    continue
                async with aclosing(self._read(pattern, after)) as messages:
                    async for stored in messages:
                        after = stored.sequence
                        yield _log_message(stored)
        except (StopAsyncIteration, UnavailableError):
            return  # the bus was closed
        finally:
            timer.cancel()
            remove()
            connection.unsubscribe(sid)

    async def _read(self, pattern: str, after: int) -> AsyncGenerator[Stored, None]:
        """Yield stored messages of a pattern up to the end at the call, by the permitted method."""
        end = await self._js.last(subjects.STREAM_EXPERIMENTS, pattern)
        if end is None or end.sequence <= after:
            return
        read = self._read_direct if self._js.confined else self._read_by_consumer
        async with aclosing(read(pattern, after, end)) as messages:
            async for stored in messages:
                yield stored

    async def _read_by_consumer(
        self, pattern: str, after: int, end: Stored
    ) -> AsyncGenerator[Stored, None]:
        """Yield stored messages up to `end` through a JetStream consumer, the fast method."""
        follower = self._js.follow(subjects.STREAM_EXPERIMENTS, pattern, after)
        async with aclosing(follower) as batches:
            async for batch in batches:
                for stored in batch:
                    yield stored
                    if stored.sequence >= end.sequence:
                        return

    async def _read_direct(
        self, pattern: str, after: int, end: Stored
    ) -> AsyncGenerator[Stored, None]:
        """Yield stored messages up to `end` in batches of direct gets, which need no consumer."""
        last: Stored | None = end
        while last is not None and after < min(end.sequence, last.sequence):
            batch = await self._batch(pattern, after)
            for stored in batch:
                if stored.sequence > end.sequence:
                    return
                after = stored.sequence
                yield stored
            if not batch:
                # The rest was deleted, or the server that answered has not copied it yet.
                await asyncio.sleep(FIRST_RETRY_S)
                last = await self._js.last(subjects.STREAM_EXPERIMENTS, pattern)

    async def _batch(self, pattern: str, after: int) -> list[Stored]:
        """Return the next stored messages of a pattern behind `after`; retry until answered.

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
        """Send one batched direct get; return its messages and final status; empty: broke off."""
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
        subject = f"{self._js.api_prefix}.DIRECT.GET.{subjects.STREAM_EXPERIMENTS}"
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                if not connection.publish(subject, request, reply=inbox):
                    return [], ""
                return batch, await status
        except TimeoutError:
            end()
            return batch, ""
        finally:
            remove()
            connection.unsubscribe(sid)


def _stored(headers: Headers, payload: bytes) -> Stored:
    """Return the message of a stream that a direct get or a copy contains."""
    sequence, time_ns = int(headers["Nats-Sequence"]), nanoseconds(headers["Nats-Time-Stamp"])
    return Stored(headers["Nats-Subject"], sequence, payload, headers, time_ns)


def _previous(copy: Stored, pattern: str) -> int:
    """Return the sequence of the pattern's message before a live copy, from its headers."""
    if pattern == subjects.ALL_EVENTS:
        return copy.sequence - 1  # the whole stream
    return int(copy.headers["Nats-Last-Sequence"])


def _log_message(stored: Stored) -> LogMessage:
    headers = stored.headers
    return LogMessage(
        experiment_id=subjects.experiment_of_event(stored.subject),
        sequence=stored.sequence,
        payload=stored.payload,
        epoch=int(headers.get(_EPOCH, "0")),
        append_id=headers.get(_APPEND_ID, ""),
        time_ns=stored.time_ns,
    )
