"""Warm start of a new experiment from earlier results."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import config_pb2, experiment_pb2
from nni_wire.values import from_value, to_value
from svc_common.errors import InvalidArgumentError
from svc_common.messaging.memory import InMemoryBus
from svc_common.storage.directory import DirectoryBlobStore
from svc_manager.blobs.large_values import LargeValues
from svc_manager.usecases.warm_start import WarmStart
from tests.unit.services.manager.world import World, world_on


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as made:
        yield made


async def test_results_of_earlier_experiments_follow_the_samples(world: World) -> None:
    experiment_id = await world.create()
    await world.wait_for_state(experiment_id, experiment_pb2.EXPERIMENT_STATE_DONE)
    values = LargeValues(DirectoryBlobStore(world.folder / "nni" / "blobs"))
    search = config_pb2.SearchConfig(
        warm_start_from=[experiment_id], known=to_value([{"parameter": {"x": 9}, "value": 1}])
    )

    await WarmStart(world.manager.registry, values).add_samples(search)

    known = from_value(search.known)
    assert known[0] == {"parameter": {"x": 9}, "value": 1}
    assert [sample["parameter"]["x"] for sample in known[1:]] == [0, 1, 2, 3, 4]
    assert all(sample["value"] == sample["parameter"]["x"] for sample in known[1:])


async def test_results_that_enter_by_rank_are_a_list_for_each_experiment(world: World) -> None:
    experiment_id = await world.create()
    await world.wait_for_state(experiment_id, experiment_pb2.EXPERIMENT_STATE_DONE)
    values = LargeValues(DirectoryBlobStore(world.folder / "nni" / "blobs"))
    search = config_pb2.SearchConfig(
        warm_start_from=[experiment_id, experiment_id],
        warm_start_by="rank",
        earlier=to_value([[{"parameter": {"x": 9}, "value": 1}]]),
    )

    await WarmStart(world.manager.registry, values).add_samples(search)

    first, *others = from_value(search.earlier)
    assert first == [{"parameter": {"x": 9}, "value": 1}]
    assert len(others) == 2
    for samples in others:
        assert [sample["value"] for sample in samples] == [0, 1, 2, 3, 4]
    assert not search.HasField("known")


@pytest.mark.parametrize("way", ["size", "rank"])
async def test_ways_that_cannot_be_are_refused(world: World, way: str) -> None:
    several = [metric_pb2.Objective(metric=name) for name in ("a", "b")]
    for objective in several:
        objective.mode = metric_pb2.OPTIMIZE_MODE_MINIMIZE

    with pytest.raises(InvalidArgumentError, match=r"search\.warm_start_by"):
        await world.create(search=config_pb2.SearchConfig(warm_start_by=way), objectives=several)


async def test_unknown_experiments_are_refused_before_anything_is_created(world: World) -> None:
    with pytest.raises(InvalidArgumentError, match="known here"):
        await world.create(search=config_pb2.SearchConfig(warm_start_from=["nothere1"]))

    assert await world.bus.events.experiments() == []
