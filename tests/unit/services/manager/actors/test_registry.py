"""Registry of actors: loading, lookups, deletions, and the end of a manager."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nni_proto.experiment.v1 import experiment_pb2
from svc_common.errors import NotFoundError, UnavailableError
from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.memory_broker import InMemoryBroker
from svc_manager.actors.registry import LOOK_EVERY_S
from svc_manager.domain.trial import TrialState
from svc_manager.usecases.activation import ReopenRequest
from tests.support.manual_timers import ManualTimers
from tests.unit.services.manager.world import (
    PATIENCE_S,
    InMemoryListeners,
    World,
    hold,
    manager_on,
    stopped,
    world_on,
)

DONE = experiment_pb2.EXPERIMENT_STATE_DONE
STOPPED = experiment_pb2.EXPERIMENT_STATE_STOPPED


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as made:
        yield made


async def test_an_experiment_has_one_actor(world: World) -> None:
    experiment_id = await world.create()
    registry = world.manager.registry

    found = await asyncio.gather(*(registry.find(experiment_id) for _ in range(3)))

    assert len({id(actor) for actor in found}) == 1
    assert [actor.id for actor in registry.actors()] == [experiment_id]


async def test_an_unknown_experiment_is_not_found(world: World) -> None:
    with pytest.raises(NotFoundError):
        await world.manager.registry.find("unknown1")

    assert not world.manager.registry.exists("unknown1")


async def test_a_stopped_experiment_is_viewed_without_an_actor(
    world: World, tmp_path: Path
) -> None:
    experiment_id = await stopped(world)

    async with manager_on(world.bus, tmp_path, InMemoryListeners()) as later:
        view = await later.registry.view(experiment_id)

        assert view.state == STOPPED
        assert list(later.registry.actors()) == []
        assert later.registry.stopped_at(experiment_id) is not None
        assert [one.id for one in later.registry.views()] == [experiment_id]
        assert later.registry.owned_views() == []


async def test_a_query_loads_the_log_of_a_stopped_experiment(world: World, tmp_path: Path) -> None:
    experiment_id = await stopped(world)

    async with manager_on(world.bus, tmp_path, InMemoryListeners()) as later:
        actor = await later.registry.find(experiment_id)

        assert len(actor.experiment.trials) == 5
        assert later.registry.stopped_at(experiment_id) is None
        assert [one.id for one in later.registry.owned_views()] == [experiment_id]


async def test_an_open_experiment_is_loaded_when_a_manager_starts(
    world: World, tmp_path: Path
) -> None:
    experiment_id = await world.create()
    await world.wait_for_state(experiment_id, DONE)
    await world.manager.registry.aclose()

    async with manager_on(world.bus, tmp_path, InMemoryListeners()) as later:
        assert [actor.id for actor in later.registry.actors()] == [experiment_id]


async def test_a_forgotten_experiment_has_neither_actor_nor_view(world: World) -> None:
    experiment_id = await stopped(world)
    registry = world.manager.registry
    actor = await registry.find(experiment_id)

    await registry.forget(experiment_id)

    assert not actor.alive
    assert not registry.exists(experiment_id)
    assert registry.views() == []


async def test_a_closed_registry_starts_no_actor(world: World, tmp_path: Path) -> None:
    registry = world.manager.registry
    await registry.aclose()
    await registry.aclose()

    with pytest.raises(UnavailableError, match="ending"):
        await registry.start("later123", str(tmp_path), debug=False)


@pytest.mark.parametrize("rest", [0, 4], ids=["emptied", "older"])
async def test_stopped_experiment_goes_on_after_its_inbox_was_replaced(
    tmp_path: Path, rest: int
) -> None:
    broker = InMemoryBroker()
    async with InMemoryBus(broker) as bus, world_on(bus, tmp_path) as world:
        experiment_id = await stopped(world)
    consumed = broker.inbox.last
    replace_inbox(broker, rest)

    async with InMemoryBus(broker) as bus, world_on(bus, tmp_path) as world:
        await world.experiments.resume(ReopenRequest(experiment_id))
        world.follow(experiment_id)

        resumed = await world.wait_for_state(experiment_id, DONE)

    assert resumed.state == DONE
    assert min(broker.inbox.records) > consumed > rest


async def test_inbox_that_was_replaced_while_the_bus_was_away_is_read_on(tmp_path: Path) -> None:
    broker = InMemoryBroker()
    async with InMemoryBus(broker) as bus, world_on(bus, tmp_path, hold) as world:
        watching = asyncio.create_task(world.manager.registry.watch_inbox())
        experiment_id = await world.create(max_trial_number=2)
        held = await world.agent.holds(2)
        await running(world, experiment_id, 2)
        consumed = broker.inbox.last

        broker.stop()
        await asyncio.sleep(0)
        replace_inbox(broker, 1)
        grown = asyncio.Event()
        broker.inbox.grown.append(grown.set)
        broker.start()
        async with asyncio.timeout(PATIENCE_S):
            while broker.inbox.last < consumed:
                grown.clear()
                await grown.wait()
        for one in held:
            await world.agent.result(one, 1.0)
            await world.agent.exit(one)
        ended = await world.wait_for_state(experiment_id, DONE)
        watching.cancel()

    assert ended.state == DONE


async def test_manager_ends_to_make_streams_that_the_bus_has_lost(tmp_path: Path) -> None:
    broker = InMemoryBroker()
    async with InMemoryBus(broker) as bus, world_on(bus, tmp_path) as world:
        watching = asyncio.create_task(world.manager.registry.watch_inbox())
        await asyncio.sleep(0)

        broker.stop()
        await asyncio.sleep(0)
        broker.lost_streams = {"TASKS"}
        broker.start()
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(UnavailableError, match="lost its streams TASKS"):
                await watching


async def test_manager_ends_to_make_streams_that_were_deleted_while_the_bus_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = InMemoryBroker()
    async with InMemoryBus(broker) as bus, world_on(bus, tmp_path) as world:
        looks = ManualTimers(monkeypatch, LOOK_EVERY_S)
        watching = asyncio.create_task(world.manager.registry.watch_streams())
        async with asyncio.timeout(PATIENCE_S):
            await looks.wait_pending()
            looks.fire()  # all are there
            await looks.wait_pending()
            broker.lost_streams = {"INBOX"}
            looks.fire()

            with pytest.raises(UnavailableError, match="lost its streams INBOX"):
                await watching


async def test_look_at_the_streams_that_a_bus_refuses_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse() -> list[str]:
        raise UnavailableError("no answer in time")

    async with InMemoryBus(InMemoryBroker()) as bus, world_on(bus, tmp_path) as world:
        looks = ManualTimers(monkeypatch, LOOK_EVERY_S)
        monkeypatch.setattr(bus, "missing_streams", refuse)
        watching = asyncio.create_task(world.manager.registry.watch_streams())
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(2):
                await looks.wait_pending()
                looks.fire()
            await looks.wait_pending()
        goes_on = not watching.done()
        watching.cancel()

    assert goes_on


def replace_inbox(broker: InMemoryBroker, rest: int) -> None:
    """Shorten the stream to its first messages, as an earlier copy of the bus's data does."""
    broker.inbox.records = {
        sequence: record for sequence, record in broker.inbox.records.items() if sequence <= rest
    }
    broker.inbox.last = rest
    broker.inbox.ids.clear()


async def running(world: World, experiment_id: str, count: int) -> None:
    """Wait until so many trials run."""
    actor = await world.manager.registry.find(experiment_id)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            change = actor.next_change
            if actor.experiment.counts[TrialState.RUNNING] == count:
                return
            await change.wait()
