"""Registry of actors: loading, lookups, deletions, and the end of a manager."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nni_proto.experiment.v1 import event_pb2, experiment_pb2
from svc_common.errors import NotFoundError, UnavailableError
from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.memory_broker import InMemoryBroker
from svc_common.messaging.ports import LOADING
from svc_common.storage.directory import DirectoryBlobStore
from svc_manager.adapters.blob_views import BlobViews
from svc_manager.adapters.event_file import read_records
from svc_manager.domain.trial import TrialState
from svc_manager.usecases.activation import ReopenRequest
from tests.unit.services.manager.world import (
    PATIENCE_S,
    InMemoryListeners,
    World,
    hold,
    manager_on,
    world_on,
)

DONE = experiment_pb2.EXPERIMENT_STATE_DONE
STOPPED = experiment_pb2.EXPERIMENT_STATE_STOPPED


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as made:
        yield made


async def stopped(world: World) -> str:
    """Run an experiment to its end and stop it; return its id."""
    experiment_id = await world.create()
    await world.wait_for_state(experiment_id, DONE)
    await world.experiments.stop(experiment_id)
    actor = await world.manager.registry.find(experiment_id)
    async with asyncio.timeout(PATIENCE_S):
        await actor.wait_for_effects()
    return experiment_id


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


@pytest.mark.parametrize("kept", [3, 6, -2])
async def test_log_whose_end_a_cut_of_power_took_comes_back_from_the_folder(
    tmp_path: Path, kept: int
) -> None:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as world:
        experiment_id = await world.create()
        await world.wait_for_state(experiment_id, DONE)
        trials = list((await world.manager.registry.find(experiment_id)).experiment.trials)
        log = [found async for found in bus.events.read(experiment_id)]

    async with InMemoryBus() as cut:
        last = 0
        for found in log[:kept]:
            last = await cut.events.append(
                experiment_id,
                found.payload,
                expected_sequence=last,
                epoch=found.epoch,
                append_id=found.append_id,
            )
        async with manager_on(cut, tmp_path, InMemoryListeners()) as manager:
            actor = await manager.registry.find(experiment_id)
            listed = list(actor.experiment.trials)
            state = actor.view().state
            await manager.experiments.resume(ReopenRequest(experiment_id))
        async with manager_on(cut, tmp_path, InMemoryListeners()) as manager:
            again = list((await manager.registry.find(experiment_id)).experiment.trials)
        restored = [
            (found.sequence, found.payload) async for found in cut.events.read(experiment_id)
        ]

    assert (state, listed[: len(trials)], again[: len(trials)]) == (STOPPED, trials, trials)
    file = tmp_path / "experiments" / experiment_id / "db" / "events.log"
    assert list(read_records(file)) == restored


async def test_log_with_a_hole_is_replaced_by_the_folder(tmp_path: Path) -> None:
    broker = InMemoryBroker()
    async with InMemoryBus(broker) as bus, world_on(bus, tmp_path) as world:
        experiment_id = await stopped(world)
        trials = list((await world.manager.registry.find(experiment_id)).experiment.trials)
    lost = next(
        sequence
        for sequence, record in broker.events.records.items()
        if any(
            event.HasField("trial_scheduled")
            for event in event_pb2.EventBatch.FromString(record.payload).events
        )
    )
    del broker.events.records[lost]
    await BlobViews(DirectoryBlobStore(tmp_path / "nni" / "blobs")).put(
        experiment_id, 1, await outdated_summary(tmp_path, experiment_id)
    )

    async with (
        InMemoryBus(broker) as bus,
        manager_on(bus, tmp_path, InMemoryListeners()) as manager,
    ):
        actor = await manager.registry.find(experiment_id)
        found, state = list(actor.experiment.trials), actor.view().state

    assert (found, state) == (trials, STOPPED)


async def outdated_summary(folder: Path, experiment_id: str) -> bytes:
    """Return the stored summary of an experiment, whose log has ended elsewhere since."""
    views = BlobViews(DirectoryBlobStore(folder / "nni" / "blobs"))
    _, view = (await views.get([experiment_id]))[experiment_id]
    return view


@pytest.mark.parametrize("rest", [0, 2])
async def test_experiment_whose_log_is_gone_comes_back_from_its_folder(
    tmp_path: Path, rest: int
) -> None:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as world:
        gone, deleted = await stopped(world), await world.create()
        await world.experiments.stop(deleted)
        await world.experiments.delete(deleted)
        trials = list((await world.manager.registry.find(gone)).experiment.trials)
        log = [found async for found in bus.events.read(gone)]

    async with InMemoryBus() as empty:
        last = 0
        for number, found in enumerate(log[:rest]):  # of an import that a kill interrupted
            last = await empty.events.append(
                gone,
                found.payload,
                expected_sequence=last,
                epoch=found.epoch,
                append_id=f"{LOADING}x-{number}",
            )
        async with manager_on(empty, tmp_path, InMemoryListeners()) as manager:
            found_trials = list((await manager.registry.find(gone)).experiment.trials)
            state = (await manager.registry.view(gone)).state
            ids = await empty.events.experiments()

    assert (state, found_trials, list(ids)) == (STOPPED, trials, [gone])


async def test_experiment_whose_log_and_folder_are_gone_stays_away(tmp_path: Path) -> None:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as world:
        experiment_id = await stopped(world)
    shutil.rmtree(tmp_path / "experiments" / experiment_id)

    async with InMemoryBus() as empty, manager_on(empty, tmp_path, InMemoryListeners()) as manager:
        with pytest.raises(NotFoundError):
            await manager.registry.find(experiment_id)


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
