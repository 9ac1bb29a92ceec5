"""A Redis that goes away, and its users."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from svc_common.errors import PermissionDeniedError, UnavailableError
from svc_manager.adapters.redis_connection import RedisConnection
from svc_manager.adapters.redis_leases import RedisLeases
from svc_manager.adapters.redis_views import RedisViews
from tests.support.stores import RedisServer, redis_server


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path) as server:
        yield server


@pytest.fixture
async def connection(own_redis: RedisServer) -> AsyncIterator[RedisConnection]:
    async with RedisConnection(own_redis.url) as opened:
        yield opened


async def test_a_redis_that_is_away_is_reported_and_used_again_later(
    own_redis: RedisServer, connection: RedisConnection
) -> None:
    views = RedisViews(connection)
    await views.put("e1", 1, b"x")
    own_redis.kill()

    with pytest.raises(UnavailableError, match=r"Redis at 127\.0\.0\.1:\d+ cannot be used"):
        await views.get(["e1"])

    own_redis.start()
    assert await views.get(["e1"]) == {}, "all was lost, and that is no error"
    await views.put("e1", 1, b"x")
    assert await views.get(["e1"]) == {"e1": (1, b"x")}


async def test_lease_after_a_loss_goes_on_from_the_epoch_in_the_log(
    own_redis: RedisServer, connection: RedisConnection
) -> None:
    leases = RedisLeases(connection)
    old = await leases.acquire("e1", "manager 1", 60.0)
    assert old is not None
    own_redis.kill()
    own_redis.start()

    lost = await leases.renew([old], 60.0)
    new = await leases.acquire("e1", "manager 2", 60.0, above=old.epoch)

    assert lost == [old], "its owner must stop deciding"
    assert new is not None
    assert new.epoch > old.epoch


async def test_refused_account_is_explained(own_redis: RedisServer) -> None:
    url = own_redis.url.replace("redis://", "redis://unknown:hush@")
    async with RedisConnection(url) as refused:
        with pytest.raises(PermissionDeniedError, match="check NNI_REDIS_URL") as refusal:
            await RedisViews(refused).get(["e1"])

    assert "hush" not in refusal.value.message


async def test_a_task_that_is_cancelled_while_it_asks_redis_ends(
    connection: RedisConnection,
) -> None:
    """The driver takes some cancellations for time-outs of its own and goes on."""
    leases = RedisLeases(connection)

    async def ask_for_ever() -> None:
        while True:
            with suppress(UnavailableError):
                await leases.holders()

    tasks = [asyncio.create_task(ask_for_ever()) for _ in range(100)]
    for task in tasks:
        await leases.holders()
        task.cancel()
    _, asking = await asyncio.wait(tasks, timeout=10)

    assert not asking
    assert all(task.cancelled() for task in tasks)
