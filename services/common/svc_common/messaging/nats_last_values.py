"""`LastValues` on the stream `POOLS`, read without consumers by every user."""

import uuid
from collections.abc import AsyncGenerator
from typing import Final

from svc_common import subjects
from svc_common.errors import AbortedError, UnavailableError
from svc_common.messaging.nats_copies import CopyFeed, DirectReader
from svc_common.messaging.nats_jetstream import (
    EXPECTED_SEQUENCE,
    WRONG_LAST_SEQUENCE,
    JetStream,
    JetStreamError,
    Stored,
)
from svc_common.messaging.ports import LastValue

_MESSAGE_ID: Final = "Nats-Msg-Id"


class NatsLastValues:
    """`LastValues` over NATS: the stream `POOLS` keeps one message of each subject."""

    def __init__(self, jetstream: JetStream) -> None:
        self._js = jetstream
        self._reader = DirectReader(jetstream, subjects.STREAM_POOLS)

    async def publish(
        self, subject: str, payload: bytes, *, expected_sequence: int | None = None
    ) -> None:
        """Replace a value, on disk at return; raise AbortedError if not at `expected_sequence`."""
        subjects.pool_of_subject(subject)
        # A value that is sent again after a lost connection must not replace a later one if the
        # server handles the first copy late: the id lets it drop that copy.
        headers = {_MESSAGE_ID: uuid.uuid4().hex}
        if expected_sequence is not None:
            headers[EXPECTED_SEQUENCE] = str(expected_sequence)
        try:
            await self._js.publish(subject, payload, headers)
        except JetStreamError as error:
            if error.code != WRONG_LAST_SEQUENCE:
                raise
            raise AbortedError(
                f"{subject} was changed by another process", {"subject": subject}
            ) from error

    async def read(self, pattern: str) -> list[LastValue]:
        """Return the last value of each subject of a pattern, oldest first."""
        subjects.pool_copies(pattern)
        return [_last_value(one) for one in await self._read(pattern)]

    async def follow(self, pattern: str) -> AsyncGenerator[LastValue, None]:
        """Yield the last value per subject of a pattern, then new ones, until the bus closes."""
        newest: dict[str, Stored] = {}
        try:
            async with CopyFeed(self._js, subjects.pool_copies(pattern)) as copies:
                while True:
                    copy = await copies.get()
                    found = await self._read(pattern) if copy is None else [copy]
                    for stored in found:
                        if _is_newer(stored, newest.get(stored.subject)):
                            newest[stored.subject] = stored
                            yield _last_value(stored)
        except (StopAsyncIteration, UnavailableError):
            return  # the bus was closed

    async def delete(self, subject: str, *, through_sequence: int = 0) -> None:
        """Delete a subject's value, or only one up to `through_sequence`; do nothing if none."""
        subjects.pool_of_subject(subject)
        before = through_sequence + 1 if through_sequence else 0
        await self._js.purge(subjects.STREAM_POOLS, subject, before)

    async def _read(self, pattern: str) -> list[Stored]:
        """Return the current values of all subjects of a pattern, in the order of their storage."""
        found: list[Stored] = []
        while batch := await self._reader.batch(pattern, found[-1].sequence if found else 0):
            found += batch
        return found


def _last_value(stored: Stored) -> LastValue:
    return LastValue(stored.subject, stored.payload, stored.sequence)


def _is_newer(stored: Stored, known: Stored | None) -> bool:
    """Return whether no message is known, or one with a lower sequence or an earlier time.

    A bus that lost its data numbers from 1 again, so a later time is enough. Copies that a read
    has overtaken, and reads from a server that lags behind, are neither.
    """
    if known is None:
        return True
    return stored.sequence > known.sequence or stored.time_ns > known.time_ns
