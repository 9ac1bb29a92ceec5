"""Requests that create an experiment again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nni_proto.experiment.v1 import experiment_pb2
from nni_wire.values import from_value
from svc_common.errors import FailedPreconditionError
from svc_common.messaging.memory import InMemoryBus
from svc_manager.usecases.activation import NewExperiment
from tests.unit.services.manager.world import World, world_on

DONE = experiment_pb2.EXPERIMENT_STATE_DONE


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as made:
        yield made


async def test_an_experiment_is_repeated_with_its_seed_environment_and_interpreter(
    world: World,
) -> None:
    old = await world.create()
    await world.wait_for_state(old, DONE)

    new = (await world.experiments.run_again(old, "key")).experiment
    repeated = (await world.experiments.run_again(old, "key")).experiment

    before = (await world.experiments.get(old)).experiment
    files = [Path(one.directory, "environment.json").read_text() for one in (before, new)]
    assert new.id != old
    assert repeated.id == new.id
    assert new.config == before.config
    assert files[0] == files[1]


async def test_a_new_seed_is_drawn_on_request(world: World) -> None:
    old = await world.create(seed=7)

    new = (await world.experiments.run_again(old, new_seed=True)).experiment

    assert new.config.HasField("seed")
    assert new.config.seed != 7


async def test_secret_values_of_the_platform_are_taken_over(world: World) -> None:
    machine = {"host": "a", "sshKeyFile": "/home/u/key", "password": "hush"}
    options = {"machineList": [machine]}
    old = await world.create_on("remote", options=options)
    actor = await world.experiments._registry.find(old)

    new: NewExperiment = await world.experiments._reruns.request(actor.experiment)

    assert b"hush" not in actor.experiment.config
    assert from_value(new.config.training_services[0].options) == options


async def test_a_missing_environment_is_refused_with_the_remedy(world: World) -> None:
    old = await world.create()
    await world.wait_for_state(old, DONE)
    view = (await world.experiments.get(old)).experiment
    Path(view.directory, "environment.json").unlink()

    with pytest.raises(FailedPreconditionError, match="nnictl create --config"):
        await world.experiments.run_again(old)
