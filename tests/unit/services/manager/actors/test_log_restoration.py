"""Logs that the bus has lost come back from the folders of their experiments."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nni_proto.experiment.v1 import event_pb2, experiment_pb2
from svc_common.errors import NotFoundError
from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.memory_broker import InMemoryBroker
from svc_common.messaging.ports import LOADING
from svc_common.storage.directory import DirectoryBlobStore
from svc_manager.adapters.blob_views import BlobViews
from svc_manager.adapters.event_file import read_records
from svc_manager.event_log.file_format import file_of
from svc_manager.event_log.merging import readable_start
from svc_manager.usecases.activation import ReopenRequest
from tests.unit.services.manager.world import InMemoryListeners, manager_on, stopped, world_on

DONE = experiment_pb2.EXPERIMENT_STATE_DONE
STOPPED = experiment_pb2.EXPERIMENT_STATE_STOPPED


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


def of_another(payload: bytes) -> bytes:
    """Return the first batch of a log as that of another experiment."""
    batch = event_pb2.EventBatch.FromString(payload)
    batch.events[0].experiment_created.experiment_id = "other123"
    return batch.SerializeToString()


@pytest.mark.parametrize("damage", ["magic", "other", "twice", "hole", "missing", "cut"])
async def test_event_file_is_whole_again_after_the_next_load(tmp_path: Path, damage: str) -> None:
    broker = InMemoryBroker()
    async with InMemoryBus(broker) as bus, world_on(bus, tmp_path) as world:
        experiment_id = await world.create()
        await world.wait_for_state(experiment_id, DONE)
    file = tmp_path / "experiments" / experiment_id / "db" / "events.log"
    records = list(read_records(file))
    whole = file_of(records)
    damaged = {
        "magic": b"?" + whole[1:],
        "other": file_of([(1, of_another(records[0][1])), *records[1:]]),
        "twice": file_of([*records[:6], *records[3:]]),
        "hole": file_of([*records[:4], *records[6:]]),
        "missing": b"",
        "cut": whole[:-30],
    }
    file.write_bytes(damaged[damage])

    async with (
        InMemoryBus(broker) as bus,
        manager_on(bus, tmp_path, InMemoryListeners()) as manager,
    ):
        await manager.registry.find(experiment_id)
        log = [(found.sequence, found.payload) async for found in bus.events.read(experiment_id)]

    assert list(read_records(file)) == log
    assert file.read_bytes() == file_of(log)


async def test_hole_in_a_log_that_can_be_folded_is_filled_from_the_folder(tmp_path: Path) -> None:
    broker = InMemoryBroker()
    async with InMemoryBus(broker) as bus, world_on(bus, tmp_path) as world:
        experiment_id = await world.create()
        await world.wait_for_state(experiment_id, DONE)
        trials = (await world.manager.registry.find(experiment_id)).experiment.trials
        finals = {id_: trial.final for id_, trial in trials.items()}
    file = tmp_path / "experiments" / experiment_id / "db" / "events.log"
    records = list(read_records(file))
    lost = next(
        sequence
        for sequence, _ in records[1:-1]
        if len(readable_start([found for found in records if found[0] != sequence]))
        == len(records) - 1
    )
    del broker.events.records[lost]
    shutil.rmtree(tmp_path / "nni")

    async with (
        InMemoryBus(broker) as bus,
        manager_on(bus, tmp_path, InMemoryListeners()) as manager,
    ):
        found = (await manager.registry.find(experiment_id)).experiment.trials

    assert {id_: trial.final for id_, trial in found.items()} == finals


async def test_experiment_whose_log_and_folder_are_gone_stays_away(tmp_path: Path) -> None:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as world:
        experiment_id = await stopped(world)
    shutil.rmtree(tmp_path / "experiments" / experiment_id)

    async with InMemoryBus() as empty, manager_on(empty, tmp_path, InMemoryListeners()) as manager:
        with pytest.raises(NotFoundError):
            await manager.registry.find(experiment_id)
