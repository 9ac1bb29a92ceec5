"""Diagnosis of servers that are away, with the real servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import grpc.aio
import pytest

from svc_common.clock import SystemClock
from svc_common.messaging.memory import InMemoryBus
from svc_common.rpc.server import GrpcServer
from svc_common.storage.s3 import S3BlobStore
from svc_manager.adapters.probes import dispatcher_probe, store_probe, views_probe
from svc_manager.adapters.redis_connection import RedisConnection
from svc_manager.adapters.redis_views import RedisViews
from svc_manager.agents.liveness import AgentMonitor
from svc_manager.usecases.diagnosis import Diagnosis, Probe, Result
from tests.support.ports import free_port
from tests.support.stores import RedisServer, S3Server, redis_server


async def finding(probe: Probe) -> tuple[Result, str]:
    """Give what a diagnosis with this one probe says of it."""
    async with InMemoryBus() as bus:
        agents = AgentMonitor(bus, SystemClock())
        found = await Diagnosis(bus, agents, {"it": probe}, "4.0").run()
    (one,) = [one for one in found if one.check == "it"]
    return one.result, one.explanation


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path) as server:
        yield server


@pytest.fixture
async def views(own_redis: RedisServer) -> AsyncIterator[RedisViews]:
    async with RedisConnection(own_redis.url) as opened:
        yield RedisViews(opened)


async def test_redis_that_is_away_is_found(own_redis: RedisServer, views: RedisViews) -> None:
    assert await finding(views_probe(views)) == (Result.OK, "answers")
    own_redis.kill()

    result, text = await finding(views_probe(views))

    assert result is Result.BAD
    assert f"Redis at 127.0.0.1:{own_redis.port} cannot be used" in text


async def test_an_s3_server_that_is_away_is_found(shared_s3: S3Server) -> None:
    settings = shared_s3.settings("probes/")
    async with S3BlobStore(settings) as store:
        await store.put(b"the first write of a new server takes seconds")
        assert await finding(store_probe(store)) == (Result.OK, "bytes can be written and read")
    elsewhere = replace(settings, endpoint=f"http://127.0.0.1:{free_port()}")
    async with S3BlobStore(elsewhere) as store:
        result, text = await finding(store_probe(store))

    assert result is Result.BAD
    assert "no answer within" in text or "127.0.0.1" in text


async def test_a_dispatcher_that_is_away_is_found() -> None:
    server = GrpcServer([], None)
    port = await server.start()
    address = f"127.0.0.1:{port}"
    async with grpc.aio.insecure_channel(address) as channel:
        assert await finding(dispatcher_probe(channel, address)) == (
            Result.OK,
            f"{address} serves",
        )
        await server.stop(0)

        result, text = await finding(dispatcher_probe(channel, address))

    assert result is Result.BAD
    assert "does not answer" in text
