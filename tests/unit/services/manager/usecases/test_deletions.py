"""Repeated deletions: after a restart, an interruption, and a reuse of the id."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from svc_common.access.current_call import serving
from svc_common.access.roles import SERVICES_NAME, Caller, Role
from svc_common.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from svc_common.messaging.memory import InMemoryBus, InMemoryEventLog
from tests.unit.services.manager.world import InMemoryListeners, World, manager_on, world_on

OWNER = Caller(SERVICES_NAME, Role.ADMIN, "token")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as made:
        yield made


async def stopped(world: World, request_id: str = "") -> str:
    experiment_id = await world.create(request_id=request_id)
    await world.experiments.stop(experiment_id)
    return experiment_id


async def test_repetition_after_a_restart_is_answered_as_before(world: World) -> None:
    experiment_id = await stopped(world)
    await world.experiments.delete(experiment_id, "d1")

    async with manager_on(world.bus, world.folder, InMemoryListeners()) as next_manager:
        await next_manager.experiments.delete(experiment_id, "d1")

        with pytest.raises(NotFoundError):
            await next_manager.experiments.delete(experiment_id, "d2")


async def test_request_id_of_one_deletion_is_refused_for_another(world: World) -> None:
    first, second = await stopped(world), await stopped(world)
    await world.experiments.delete(first, "d1")

    with pytest.raises(InvalidArgumentError, match="request_id must name one request only"):
        await world.experiments.delete(second, "d1")

    assert (await world.experiments.get(second)).experiment.id == second


async def test_experiment_whose_storage_refuses_stays_until_it_can_be_deleted(
    world: World,
) -> None:
    place = world.folder / "storage"
    place.mkdir()
    section = {
        "storageType": "NFS",
        "localMountPoint": str(place),
        "remoteMountPoint": "data",
        "localMounted": "usermount",
        "nfsServer": "10.0.0.9",
        "exportedDirectory": "/data",
    }
    with serving(OWNER):
        experiment_id = await world.create_on("remote", options={"sharedStorage": section})
    await world.experiments.stop(experiment_id)
    place.rename(world.folder / "away")
    place.touch()  # no folder, so that it cannot be opened

    with pytest.raises(FailedPreconditionError, match="cannot be deleted from"):
        await world.experiments.delete(experiment_id, "d1")
    assert [one.id for one in world.manager.registry.views()] == [experiment_id]

    place.unlink()
    (world.folder / "away").rename(place)
    await world.experiments.delete(experiment_id, "d1")
    assert list((place / "nni").iterdir()) == []


async def test_late_repetition_spares_a_new_experiment_of_the_same_id(world: World) -> None:
    experiment_id = await stopped(world, "creation")
    await world.experiments.delete(experiment_id, "d1")
    assert await stopped(world, "creation") == experiment_id

    await world.experiments.delete(experiment_id, "d1")

    assert (await world.experiments.get(experiment_id)).experiment.id == experiment_id


class CutOffLog(InMemoryEventLog):
    """The log of a bus that goes away once, in the middle of a deletion."""

    cut = True

    async def delete(self, experiment_id: str) -> None:
        if self.cut:
            self.cut = False
            raise UnavailableError("the bus is gone")
        await super().delete(experiment_id)


class CutOffBus(InMemoryBus):
    def __init__(self) -> None:
        super().__init__()
        self.events = CutOffLog(self)


async def test_deletion_that_was_cut_in_two_is_carried_on(tmp_path: Path) -> None:
    async with CutOffBus() as bus, world_on(bus, tmp_path) as world:
        experiment_id = await stopped(world)
        with pytest.raises(UnavailableError):
            await world.experiments.delete(experiment_id, "d1")

        await world.experiments.delete(experiment_id, "d1")

        assert await world.bus.events.experiments() == []
        assert not (world.folder / "experiments" / experiment_id).exists()
