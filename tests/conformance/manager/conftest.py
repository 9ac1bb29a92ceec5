"""Fixtures that run the conformance tests over every store of the manager."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from svc_common.clock import ManualClock
from svc_common.storage.directory import DirectoryBlobStore
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.storage.s3 import S3BlobStore
from svc_manager.adapters.blob_views import BlobViews
from svc_manager.adapters.memory_leases import InMemoryLeases
from svc_manager.adapters.memory_presences import InMemoryPresences
from svc_manager.adapters.redis_connection import RedisConnection
from svc_manager.adapters.redis_leases import RedisLeases
from svc_manager.adapters.redis_presences import RedisPresences
from svc_manager.adapters.redis_views import RedisViews
from svc_manager.ports import Leases, Presences, Views
from tests.support.stores import RedisServer, S3Server

TTL_S = 0.05
"""Short enough to wait for on a real server."""
RENEWABLE_S = 3.0
"""Long enough for a renewal that follows at once, and still short enough to wait for."""
STEP_S = 0.005
_numbers = itertools.count(1)


@pytest.fixture
def unique() -> str:
    """An id that no other test uses: servers are shared."""
    return f"x{next(_numbers)}"


@dataclass
class LeaseWorld:
    """Leases, and time that can pass."""

    leases: Leases
    expired: Callable[[str], Awaitable[None]]
    """Returns when the lease of this name has run out by itself."""


@dataclass
class PresenceWorld:
    """Presences, and time that can pass."""

    presences: Presences
    expired: Callable[[str], Awaitable[None]]
    """Returns when nothing is kept of this agent any more."""


@pytest.fixture(params=["memory blobs", "directory blobs", "s3 blobs", "redis"])
async def views(
    request: pytest.FixtureRequest, tmp_path: Path, unique: str
) -> AsyncIterator[Views]:
    if request.param == "memory blobs":
        yield BlobViews(InMemoryBlobStore())
    elif request.param == "directory blobs":
        yield BlobViews(DirectoryBlobStore(tmp_path / "blobs"))
    elif request.param == "s3 blobs":
        s3: S3Server = request.getfixturevalue("shared_s3")
        async with S3BlobStore(s3.settings(f"views/{unique}/")) as blobs:
            yield BlobViews(blobs)
    else:
        server: RedisServer = request.getfixturevalue("shared_redis")
        async with RedisConnection(server.url) as connection:
            yield RedisViews(connection)


@pytest.fixture(params=["memory", "redis"])
async def lease_world(request: pytest.FixtureRequest) -> AsyncIterator[LeaseWorld]:
    if request.param == "memory":
        clock = ManualClock()

        async def turn_the_clock(_: str) -> None:
            clock.advance(RENEWABLE_S)

        yield LeaseWorld(InMemoryLeases(clock), turn_the_clock)
        return
    server: RedisServer = request.getfixturevalue("shared_redis")
    async with RedisConnection(server.url) as connection:
        leases = RedisLeases(connection)

        async def wait_for_redis(name: str) -> None:
            async with asyncio.timeout(30):
                while await leases.holder(name) is not None:  # noqa: ASYNC110 - a server's time
                    await asyncio.sleep(STEP_S)

        yield LeaseWorld(leases, wait_for_redis)


@pytest.fixture(params=["memory", "redis"])
async def presence_world(request: pytest.FixtureRequest) -> AsyncIterator[PresenceWorld]:
    if request.param == "memory":
        clock = ManualClock()

        async def turn_the_clock(_: str) -> None:
            clock.advance(RENEWABLE_S)

        yield PresenceWorld(InMemoryPresences(clock), turn_the_clock)
        return
    server: RedisServer = request.getfixturevalue("shared_redis")
    async with RedisConnection(server.url) as connection:
        presences = RedisPresences(connection)

        async def wait_for_redis(runner_id: str) -> None:
            async with asyncio.timeout(30):
                while runner_id in await presences.all():  # noqa: ASYNC110 - as above
                    await asyncio.sleep(STEP_S)

        yield PresenceWorld(presences, wait_for_redis)
