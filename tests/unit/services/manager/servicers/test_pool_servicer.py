"""Methods of pools over gRPC, against a manager over the in-memory bus."""

from pathlib import Path
from typing import Any, cast

import pytest

from nni_proto.runner.v1 import pool_pb2
from nni_proto.runner.v1 import pool_service_pb2 as pb
from svc_common.errors import NotFoundError
from svc_manager.servicers.pool_servicer import Context, PoolServicer
from tests.unit.services.manager.usecases.test_pools import World, definition

NO_CONTEXT = cast("Context", None)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def servicer(world: World) -> PoolServicer:
    return PoolServicer(world.pools)


async def test_created_pool_is_returned_by_each_reading_method(servicer: PoolServicer) -> None:
    request = pb.CreatePoolRequest(definition=definition())
    created = (await servicer.CreatePool(request, NO_CONTEXT)).pool

    shown = (await servicer.GetPool(pb.GetPoolRequest(pool="gpus"), NO_CONTEXT)).pool
    listed = await servicer.ListPools(pb.ListPoolsRequest(), NO_CONTEXT)

    assert created == shown
    assert list(listed.pools) == [shown]
    assert listed.next_page_token == ""


async def test_update_and_drain_change_the_definition(servicer: PoolServicer) -> None:
    await servicer.CreatePool(pb.CreatePoolRequest(definition=definition()), NO_CONTEXT)
    wanted = definition()
    wanted.limits.MergeFrom(pool_pb2.PoolLimits(max_agents=9))

    updated = await servicer.UpdatePool(pb.UpdatePoolRequest(definition=wanted), NO_CONTEXT)
    drained = await servicer.DrainPool(pb.DrainPoolRequest(pool="gpus"), NO_CONTEXT)
    undone = await servicer.DrainPool(pb.DrainPoolRequest(pool="gpus", undo=True), NO_CONTEXT)

    assert updated.pool.definition.limits.max_agents == 9
    flags: list[Any] = [one.pool.definition.draining for one in (updated, drained, undone)]
    assert flags == [False, True, False]


async def test_removal_of_an_unknown_pool_is_an_error(servicer: PoolServicer) -> None:
    with pytest.raises(NotFoundError):
        await servicer.RemovePool(pb.RemovePoolRequest(pool="gpus"), NO_CONTEXT)


async def test_platforms_of_a_request_are_cleaned(servicer: PoolServicer) -> None:
    request = pb.CleanPlatformsRequest(platforms=[pool_pb2.PoolPlatform(platform="slurm")])

    answer = await servicer.CleanPlatforms(request, NO_CONTEXT)

    assert list(answer.problems) == ["slurm False"]
