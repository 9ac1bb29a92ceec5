from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from svc_common.errors import ResourceExhaustedError
from svc_common.messaging.memory import InMemoryBus
from svc_manager.blobs.usage import BlobUsage, PendingUpload
from svc_manager.domain.quota import Quota
from tests.unit.services.manager.storing import StoreFixture, digest

_keys = itertools.count()


@pytest.fixture
async def bus() -> AsyncIterator[InMemoryBus]:
    async with InMemoryBus() as opened:
        yield opened


async def test_experiment_uses_what_its_log_names_and_what_its_trials_wrote(
    bus: InMemoryBus,
) -> None:
    shelf = StoreFixture(bus)
    for content in (b"shared", b"own", b"unowned"):
        await shelf.blobs.put(content)
    await shelf.blobs.put_named("output/e1/t/1/stdout", b"text")
    await shelf.blobs.put_named("output/e10/t/1/stdout", b"of another")
    await shelf.log("e1", digest(b"shared"), digest(b"own"), "f" * 64)
    await shelf.log("e2", digest(b"shared"))

    uses = await shelf.use.by_experiment(await shelf.use.all())

    assert uses == {"e1": BlobUsage(6 + 3 + 4, 3), "e2": BlobUsage(6, 1)}
    assert await shelf.use.of("e1") == uses["e1"]


def wanted(size_bytes: int, experiment_id: str = "", key: str = "") -> PendingUpload:
    return PendingUpload(key or f"sha256/{next(_keys)}", size_bytes, experiment_id)


async def admit(shelf: StoreFixture, one: PendingUpload) -> None:
    now = shelf.clock.now()
    await shelf.use.admit(one, now, now + timedelta(minutes=10))


async def is_full(shelf: StoreFixture, experiment_id: str = "") -> bool:
    """Tell whether not a single byte more may come."""
    try:
        await admit(shelf, wanted(1, experiment_id))
    except ResourceExhaustedError:
        return True
    return False


async def test_more_than_the_quota_of_an_experiment_is_refused(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus, Quota(0, 10))
    await shelf.blobs.put_named("output/e1/t/1/stdout", b"123456")

    await admit(shelf, one := wanted(4, "e1"))
    shelf.use.stored(one)

    with pytest.raises(ResourceExhaustedError, match="e1 uses 10 bytes and 1 bytes more"):
        await admit(shelf, wanted(1, "e1"))
    await admit(shelf, wanted(10, "e2"))


async def test_more_than_the_quota_of_the_installation_is_refused(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus, Quota(10, 0))
    await shelf.blobs.put(b"123456")

    await admit(shelf, one := wanted(4))
    shelf.use.stored(one)

    with pytest.raises(ResourceExhaustedError, match="at most 10 bytes, 10 bytes are used"):
        await admit(shelf, wanted(1, "e1"))


async def test_what_is_on_its_way_has_its_room(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus, Quota(0, 10))
    await admit(shelf, wanted(6, "e1"))

    with pytest.raises(ResourceExhaustedError, match="e1 uses 6 bytes"):
        await admit(shelf, wanted(5, "e1"))

    await admit(shelf, wanted(4, "e1"))


async def test_asking_twice_for_the_same_takes_no_more_room(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus, Quota(0, 10))
    one = wanted(6, "e1")

    await admit(shelf, one)
    await admit(shelf, one)

    await admit(shelf, wanted(4, "e1"))
    assert await is_full(shelf, "e1")


async def test_room_for_what_never_came_is_free_again(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus, Quota(0, 10))
    await admit(shelf, wanted(6, "e1"))

    shelf.clock.advance(600)

    await admit(shelf, wanted(10, "e1"))
    assert await is_full(shelf, "e1")


async def test_what_is_said_to_have_come_twice_counts_once(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus, Quota(10, 0))
    await admit(shelf, one := wanted(6, key=f"sha256/{digest(b'123456')}"))
    await shelf.blobs.put(b"123456")

    shelf.use.stored(one)
    shelf.use.stored(one)

    await admit(shelf, wanted(4))
    assert await is_full(shelf)


async def test_room_that_was_made_is_seen(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus, Quota(10, 0))
    key = await shelf.blobs.put(b"1234567890")
    with pytest.raises(ResourceExhaustedError):
        await admit(shelf, wanted(1))

    await shelf.blobs.delete(key)
    shelf.use.forget()

    assert not await is_full(shelf)
