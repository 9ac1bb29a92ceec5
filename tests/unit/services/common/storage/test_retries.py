from __future__ import annotations

import asyncio

import pytest

from svc_common.clock import ManualClock
from svc_common.errors import NotFoundError, ResourceExhaustedError, ServiceError, UnavailableError
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.storage.retries import (
    FULL_RETRY_INTERVAL_S,
    RETRY_INTERVAL_S,
    RetryingBlobExchange,
    RetryingBlobStore,
)


class LeavingBlobStore(InMemoryBlobStore):
    """`BlobStore` that is unavailable for a number of calls."""

    def __init__(self) -> None:
        super().__init__()
        self.absences = 0

    async def get(self, key: str) -> bytes:
        if self.absences > 0:
            self.absences -= 1
            raise UnavailableError("unreachable")
        return await super().get(key)


async def turns(count: int = 10) -> None:
    """Let all ready tasks run."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_call_is_retried_until_the_store_is_available() -> None:
    clock, store = ManualClock(), LeavingBlobStore()
    patient = RetryingBlobStore(store, clock)
    await patient.put_named("k/1", b"x")
    store.absences = 3
    reading = asyncio.ensure_future(patient.get("k/1"))

    for left in (2, 1, 0):
        await turns()
        assert store.absences == left
        clock.advance(RETRY_INTERVAL_S)

    assert await reading == b"x"


async def test_call_that_waits_can_be_cancelled() -> None:
    clock, store = ManualClock(), LeavingBlobStore()
    store.absences = 1_000_000
    reading = asyncio.ensure_future(RetryingBlobStore(store, clock).get("k/1"))
    await turns()

    reading.cancel()

    with pytest.raises(asyncio.CancelledError):
        await reading


async def test_other_errors_are_raised_at_once() -> None:
    with pytest.raises(NotFoundError):
        await RetryingBlobStore(LeavingBlobStore(), ManualClock()).get("k/1")


class FullBlobStore(InMemoryBlobStore):
    """`BlobStore` that is full while it has a reason."""

    reason: ServiceError | None = ResourceExhaustedError("at most 5 MB")

    async def put(self, data: bytes) -> str:
        if self.reason is not None:
            raise self.reason
        return await super().put(data)


async def test_call_waits_for_space_and_names_the_error() -> None:
    clock, store = ManualClock(), FullBlobStore()
    patient = RetryingBlobExchange(store, clock, wait_for_space=True)
    storing = asyncio.ensure_future(patient.put(b"x"))
    await turns()
    waiting = patient.trouble
    store.reason = None

    clock.advance(FULL_RETRY_INTERVAL_S)
    key = await storing

    assert waiting == "at most 5 MB"
    assert patient.trouble == ""
    assert await store.get(key) == b"x"


async def test_full_store_raises_without_wait_for_space() -> None:
    with pytest.raises(ResourceExhaustedError):
        await RetryingBlobExchange(FullBlobStore(), ManualClock()).put(b"x")
