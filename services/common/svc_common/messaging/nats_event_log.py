"""`EventLog` on the stream `EXPERIMENTS`; confined users read it without consumers.

A copy of a new message that does not continue what was read before makes the follower read the
messages between from the stream.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import lru_cache
from typing import Final

from svc_common import subjects
from svc_common.errors import LostOwnershipError, UnavailableError
from svc_common.messaging.nats_copies import CopyFeed, DirectReader
from svc_common.messaging.nats_jetstream import (
    EXPECTED_SEQUENCE,
    FIRST_RETRY_S,
    WRONG_LAST_SEQUENCE,
    JetStream,
    JetStreamError,
    Stored,
)
from svc_common.messaging.nats_requests import (
    DisconnectedError,
    NoRespondersError,
    RequestTimeoutError,
)
from svc_common.messaging.ports import LogMessage

_EPOCH: Final = "Nni-Epoch"
_APPEND_ID: Final = "Nni-Append"
_SUBJECTS_KEPT: Final = 1_024
_experiment_of = lru_cache(_SUBJECTS_KEPT)(subjects.experiment_of_event)
"""Experiment of a log's subject, which each of its messages has."""


class NatsEventLog:
    """`EventLog` over NATS: experiments' logs on the stream `EXPERIMENTS`."""

    def __init__(self, jetstream: JetStream) -> None:
        self._js = jetstream
        self._reader = DirectReader(jetstream, subjects.STREAM_EXPERIMENTS)

    async def append(
        self,
        experiment_id: str,
        payload: bytes,
        *,
        expected_sequence: int,
        epoch: int,
        append_id: str,
    ) -> int:
        """Append once if the log ends at `expected_sequence`, else raise; return the sequence."""
        subject = subjects.event_subject(experiment_id)
        headers = {
            EXPECTED_SEQUENCE: str(expected_sequence),
            _EPOCH: str(epoch),
            _APPEND_ID: append_id,
        }
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
        """Yield an experiment's log after `after_sequence` up to its end at the call."""
        subject = subjects.event_subject(experiment_id)
        async with aclosing(self._read(subject, after_sequence)) as messages:
            async for stored in messages:
                yield _log_message(stored)

    async def follow(
        self, experiment_id: str, after_sequence: int = 0
    ) -> AsyncGenerator[LogMessage, None]:
        """Yield an experiment's log after `after_sequence`, then each new message, for ever."""
        subject = subjects.event_subject(experiment_id)
        copies = subjects.copy_subject(experiment_id)
        async with aclosing(self._follow(subject, copies, after_sequence)) as messages:
            async for message in messages:
                yield message

    async def follow_all(self, after_sequence: int = 0) -> AsyncGenerator[LogMessage, None]:
        """Yield all logs' messages after `after_sequence`, in order, then new ones, for ever."""
        pattern, copies = subjects.ALL_EVENTS, subjects.ALL_COPIES
        async with aclosing(self._follow(pattern, copies, after_sequence)) as messages:
            async for message in messages:
                yield message

    async def count(self, experiment_id: str) -> int:
        """Return the number of messages in a log, as the stream counts them by subject."""
        subject = subjects.event_subject(experiment_id)
        answer = await self._js.api(
            f"STREAM.INFO.{subjects.STREAM_EXPERIMENTS}", {"subjects_filter": subject}
        )
        return int((answer["state"].get("subjects") or {}).get(subject, 0))

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
        """Delete a log; do nothing if there is none."""
        await self._js.purge(subjects.STREAM_EXPERIMENTS, subjects.event_subject(experiment_id))

    async def _follow(
        self, pattern: str, copies: str, after: int
    ) -> AsyncGenerator[LogMessage, None]:
        """Yield messages after `after`, then live copies for ever; fill gaps by reading again."""
        try:
            async with CopyFeed(self._js, copies) as feed:
                while True:
                    copy = await feed.get()
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
            batch = await self._reader.batch(pattern, after)
            for stored in batch:
                if stored.sequence > end.sequence:
                    return
                after = stored.sequence
                yield stored
            if not batch:
                # The rest was deleted, or the server that answered has not copied it yet.
                await asyncio.sleep(FIRST_RETRY_S)
                last = await self._js.last(subjects.STREAM_EXPERIMENTS, pattern)


def _previous(copy: Stored, pattern: str) -> int:
    """Return the sequence of the message of a pattern that precedes a live copy."""
    if pattern == subjects.ALL_EVENTS:
        return copy.sequence - 1  # the whole stream
    return int(copy.headers["Nats-Last-Sequence"])


def _log_message(stored: Stored) -> LogMessage:
    headers = stored.headers
    return LogMessage(
        experiment_id=_experiment_of(stored.subject),
        sequence=stored.sequence,
        payload=stored.payload,
        epoch=int(headers.get(_EPOCH, "0")),
        append_id=headers.get(_APPEND_ID, ""),
        time_ns=stored.time_ns,
    )
