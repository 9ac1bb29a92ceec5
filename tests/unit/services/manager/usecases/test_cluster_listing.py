"""Lists of all managers' experiments, with managers that may not respond."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nni_proto.experiment.v1 import experiment_pb2
from svc_common.clock import ManualClock
from svc_common.errors import UnavailableError
from svc_common.messaging.memory import InMemoryBus
from svc_common.storage.memory import InMemoryBlobStore
from svc_manager.actors.leasing import Ownership
from svc_manager.adapters.blob_views import BlobViews
from svc_manager.adapters.memory_leases import InMemoryLeases
from svc_manager.domain.lease import ManagerId
from svc_manager.event_log.summaries import Summaries
from svc_manager.usecases.cluster_listing import ClusterListing
from tests.unit.services.manager.world import World, world_on

RUNNING = experiment_pb2.EXPERIMENT_STATE_RUNNING
STOPPED = experiment_pb2.EXPERIMENT_STATE_STOPPED


def view(
    experiment_id: str, state: experiment_pb2.ExperimentState.ValueType = STOPPED
) -> experiment_pb2.Experiment:
    return experiment_pb2.Experiment(id=experiment_id, state=state)


@dataclass
class OtherManagers:
    """What they own; None: they do not answer."""

    views: list[experiment_pb2.Experiment] | None = field(default_factory=list)

    async def owned(self, manager: ManagerId) -> list[experiment_pb2.Experiment]:
        assert manager.boot_id == "other"
        if self.views is None:
            raise UnavailableError("it does not answer")
        return self.views


@dataclass
class Place:
    world: World
    summaries: Summaries
    others: OtherManagers
    everywhere: ClusterListing

    async def listed(self) -> dict[str, int]:
        return {view.id: view.state for view in await self.everywhere.views()}

    async def log(self, experiment_id: str) -> None:
        """Begin a log, as another manager does."""
        await self.world.bus.events.append(
            experiment_id, b"", expected_sequence=0, epoch=1, append_id="0"
        )


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as world:
        clock = ManualClock()
        leases = InMemoryLeases(clock)
        ownership = Ownership(leases, ManagerId("me"), clock, bus.signals, shared=True)
        ownership.set_addresses("me:1", "me:2")
        other = ManagerId("other", "other:1", "other:2")
        await leases.acquire(other.presence_name, str(other), 1000.0)
        await ownership.join()
        blobs = InMemoryBlobStore()
        summaries = Summaries(BlobViews(blobs), blobs)
        others = OtherManagers()
        everywhere = ClusterListing(
            world.manager.registry, ownership, others, summaries, bus.events
        )
        yield Place(world, summaries, others, everywhere)


async def test_experiments_of_this_manager_of_others_and_without_owner_are_listed(
    place: Place,
) -> None:
    own = await place.world.create()
    for experiment_id in ("theirs01", "nobodys1"):
        await place.log(experiment_id)
    place.others.views = [view("theirs01", RUNNING)]
    await place.summaries.put(view("nobodys1"), 1)
    await place.summaries.put(view("theirs01"), 1)

    listed = await place.listed()

    assert set(listed) == {own, "theirs01", "nobodys1"}
    assert (listed["theirs01"], listed["nobodys1"]) == (RUNNING, STOPPED), "the owner knows best"


async def test_what_was_deleted_elsewhere_is_listed_no_more(place: Place) -> None:
    await place.summaries.put(view("deleted1"), 1)

    assert await place.listed() == {}


async def test_of_a_manager_that_does_not_answer_the_last_known_is_listed(place: Place) -> None:
    await place.log("theirs01")
    await place.summaries.put(view("theirs01", RUNNING), 1)
    place.others.views = None

    assert await place.listed() == {"theirs01": RUNNING}


async def test_an_experiment_that_is_being_created_is_not_listed_yet(place: Place) -> None:
    await place.log("tooearly")

    assert await place.listed() == {}
