import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from nni_proto.runner.v1 import pool_pb2
from svc_common import subjects
from svc_common.messaging.memory import InMemoryBus
from svc_manager.usecases.fleet_demand import demand_fleet


class Demands:
    """Demands that were made."""

    def __init__(self) -> None:
        self.bus = InMemoryBus()
        self.count = 0

    def demand(self) -> None:
        self.count += 1

    async def need(self, pool: str, sequence: int, *, closed: bool = False) -> None:
        need = pool_pb2.PoolNeed(pool=pool, closed=closed, log_sequence=sequence)
        subject = subjects.pool_need_subject(pool)
        await self.bus.last_values.publish(subject, need.SerializeToString())

    async def cleaned(self, pool: str, sequence: int) -> None:
        state = pool_pb2.PoolState(pool=pool, cleaned=True, log_sequence=sequence)
        subject = subjects.pool_state_subject(pool)
        await self.bus.last_values.publish(subject, state.SerializeToString())

    async def run(self) -> None:
        async with asyncio.timeout(30):
            await demand_fleet(self.bus.last_values, self.demand)


@pytest.fixture
async def demands() -> Demands:
    return Demands()


async def test_open_pool_demands_a_fleet_once(demands: Demands) -> None:
    await demands.need("exp-1", 3)
    await demands.need("exp-2", 4)

    await demands.run()

    assert demands.count == 1


async def test_closed_pool_that_is_not_clean_demands_a_fleet(demands: Demands) -> None:
    await demands.cleaned("exp-1", 3)
    await demands.need("exp-1", 9, closed=True)

    await demands.run()

    assert demands.count == 1


async def test_clean_pool_demands_none_until_another_one_comes(demands: Demands) -> None:
    await demands.cleaned("exp-1", 3)
    await demands.need("exp-1", 3, closed=True)
    running = asyncio.ensure_future(demands.run())
    for _ in range(20):
        await asyncio.sleep(0)
    assert demands.count == 0

    await demands.need("exp-2", 5)
    await running

    assert demands.count == 1


async def test_definition_of_a_pool_demands_a_fleet(demands: Demands) -> None:
    definition = pool_pb2.PoolDefinition(pool="gpus", revision=5)
    subject = subjects.pool_definition_subject("gpus")
    await demands.bus.last_values.publish(subject, definition.SerializeToString())

    await demands.run()

    assert demands.count == 1


async def test_expired_check_and_ended_users_of_a_pool_demand_none(demands: Demands) -> None:
    expired = pool_pb2.PoolCheck(pool="check-1")
    expired.deadline.FromSeconds(1)
    subject = subjects.pool_check_subject("check-1")
    await demands.bus.last_values.publish(subject, expired.SerializeToString())
    need = pool_pb2.PoolNeed(pool="gpus", closed=True, log_sequence=3)
    subject = subjects.pool_need_subject("exp-1")
    await demands.bus.last_values.publish(subject, need.SerializeToString())
    removed = pool_pb2.PoolDefinition(pool="old", removed=True, revision=5)
    subject = subjects.pool_definition_subject("old")
    await demands.bus.last_values.publish(subject, removed.SerializeToString())
    await demands.cleaned("old", 5)
    running = asyncio.ensure_future(demands.run())
    for _ in range(20):
        await asyncio.sleep(0)
    assert demands.count == 0

    check = pool_pb2.PoolCheck(pool="check-2")
    check.deadline.FromDatetime(datetime.now(UTC) + timedelta(hours=1))
    subject = subjects.pool_check_subject("check-2")
    await demands.bus.last_values.publish(subject, check.SerializeToString())
    await running

    assert demands.count == 1


async def test_messages_that_cannot_be_read_are_skipped(demands: Demands) -> None:
    for subject in (subjects.pool_state_subject("exp-1"), subjects.pool_need_subject("exp-1")):
        await demands.bus.last_values.publish(subject, b"\xff")
    await demands.need("exp-2", 5)

    await demands.run()

    assert demands.count == 1
