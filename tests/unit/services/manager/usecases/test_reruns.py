"""Requests that create an experiment again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nni_proto.experiment.v1 import experiment_pb2
from nni_wire.values import from_value
from svc_common.access.current_call import serving
from svc_common.access.roles import SERVICES_NAME, Caller, Role
from svc_common.errors import FailedPreconditionError, PermissionDeniedError
from svc_common.messaging.memory import InMemoryBus
from svc_manager.usecases.activation import NewExperiment
from tests.unit.services.manager.world import World, world_on

DONE = experiment_pb2.EXPERIMENT_STATE_DONE
UMA, BOB = Caller("uma", Role.USER, "token"), Caller("bob", Role.USER, "token")
OPERATOR = Caller(SERVICES_NAME, Role.ADMIN, "token")


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


async def test_an_environment_that_is_nested_too_deeply_is_refused(world: World) -> None:
    old = await world.create()
    await world.wait_for_state(old, DONE)
    view = (await world.experiments.get(old)).experiment
    Path(view.directory, "environment.json").write_text("[" * 100_000)

    with pytest.raises(FailedPreconditionError, match="nnictl create --config"):
        await world.experiments.run_again(old)


async def test_environment_is_taken_over_by_its_creator_and_administrators_only(
    world: World,
) -> None:
    with serving(UMA):
        old = await world.create(request_id="q")
    await world.wait_for_state(old, DONE)

    with serving(BOB), pytest.raises(PermissionDeniedError, match=r"its creator \(uma\)"):
        await world.experiments.run_again(old)

    for caller in (UMA, OPERATOR):
        with serving(caller):
            assert (await world.experiments.run_again(old)).experiment.id != old


async def test_experiment_without_a_known_creator_is_run_again_by_administrators_only(
    world: World,
) -> None:
    old = await world.create()
    await world.wait_for_state(old, DONE)

    with serving(UMA), pytest.raises(PermissionDeniedError, match="who is not known"):
        await world.experiments.run_again(old)


async def test_secret_values_are_taken_over_by_their_creator_only(world: World) -> None:
    machine = {"host": "a", "password": "hush"}
    with serving(UMA):
        old = await world.create_on("remote", options={"machineList": [machine]}, request_id="q")
    actor = await world.experiments._registry.find(old)

    with serving(BOB), pytest.raises(PermissionDeniedError):
        await world.experiments._reruns.request(actor.experiment)


async def test_experiment_whose_code_travels_and_that_has_no_secrets_is_run_again_by_others(
    world: World,
) -> None:
    with serving(UMA):
        old = await world.create_on("slurm", request_id="q")
    actor = await world.experiments._registry.find(old)

    with serving(BOB):
        new = await world.experiments._reruns.request(actor.experiment)

    assert new.environment == {}
