from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nni_proto.runner.v1 import task_pb2
from svc_common import subjects
from svc_common.clock import ManualClock
from svc_common.messaging.memory import InMemoryBus
from svc_common.tasks import TaskOwner
from svc_manager.adapters.memory_presences import InMemoryPresences
from svc_manager.adapters.redis_connection import RedisConnection
from svc_manager.adapters.redis_presences import RedisPresences
from svc_manager.agents.liveness import GONE_AFTER_S, AgentMonitor
from svc_manager.agents.presence_cache import PresenceCache
from svc_manager.ports import Presences
from tests.unit.services.manager.world import raise_failure


def presence(runner_id: str, *, leaving: bool = False) -> task_pb2.RunnerPresence:
    return task_pb2.RunnerPresence(runner_id=runner_id, pool="local", leaving=leaving)


async def turns(count: int = 20) -> None:
    """Let whatever is ready run."""
    for _ in range(count):
        await asyncio.sleep(0)


@asynccontextmanager
async def board_on(
    bus: InMemoryBus, presences: Presences, agents: AgentMonitor
) -> AsyncIterator[PresenceCache]:
    board = PresenceCache(bus.signals, presences, agents)
    tasks = TaskOwner(raise_failure)
    tasks.start(board.listen(), "listen")
    tasks.start(board.write(), "write")
    await turns()
    try:
        yield board
    finally:
        await tasks.aclose()


def say(bus: InMemoryBus, message: task_pb2.RunnerPresence) -> None:
    subject = subjects.presence_subject(message.runner_id)
    bus.signals.publish(subject, message.SerializeToString())


async def test_next_manager_knows_the_agents_before_they_speak() -> None:
    clock = ManualClock()
    presences = InMemoryPresences(clock)
    async with InMemoryBus() as bus:
        async with board_on(bus, presences, AgentMonitor(bus, clock)):
            say(bus, presence("r1"))
            say(bus, presence("r2"))
            await turns()
        agents = AgentMonitor(bus, clock)

        await PresenceCache(bus.signals, presences, agents).recall()

    assert sorted(agents.of_pools({"local"})) == ["r1", "r2"]


async def test_agent_that_left_or_fell_silent_is_not_recalled() -> None:
    clock = ManualClock()
    presences = InMemoryPresences(clock)
    async with InMemoryBus() as bus:
        async with board_on(bus, presences, AgentMonitor(bus, clock)):
            say(bus, presence("silent"))
            await turns()
            clock.advance(GONE_AFTER_S)
            say(bus, presence("left"))
            await turns()
            say(bus, presence("left", leaving=True))
            say(bus, presence("came-back", leaving=True))
            say(bus, presence("came-back"))
            await turns()
        agents = AgentMonitor(bus, clock)

        await PresenceCache(bus.signals, presences, agents).recall()

    assert agents.of_pools({"local"}) == ["came-back"]


async def test_nonsense_on_the_bus_or_in_the_store_is_passed_over() -> None:
    clock = ManualClock()
    presences = InMemoryPresences(clock)
    await presences.keep({"r1": b"\xff\xff", "r2": presence("r2").SerializeToString()}, 60.0)
    agents = AgentMonitor(InMemoryBus(), clock)
    async with InMemoryBus() as bus, board_on(bus, presences, agents) as board:
        bus.signals.publish(subjects.presence_subject("r3"), b"\xff\xff")
        await turns()

        await board.recall()

    assert agents.of_pools({"local"}) == ["r2"]


async def test_a_store_that_is_away_raises_nothing() -> None:
    clock = ManualClock()
    async with RedisConnection("redis://127.0.0.1:1/0") as redis, InMemoryBus() as bus:
        agents = AgentMonitor(bus, clock)
        async with board_on(bus, RedisPresences(redis), agents) as board:
            say(bus, presence("r1"))
            await turns()

            await board.recall()

    assert agents.of_pools({"local"}) == []
