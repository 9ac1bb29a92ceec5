"""Creation and reopening: what a refusal leaves behind, and what a repetition finds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from nni_proto.experiment.v1 import config_pb2, event_pb2, experiment_pb2
from nni_proto.runner.v1 import pool_pb2, task_pb2
from nni_wire.values import to_value
from svc_common import subjects
from svc_common.access.current_call import serving
from svc_common.access.roles import SERVICES_NAME, Caller, Role
from svc_common.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from svc_common.messaging.memory import InMemoryBus
from svc_common.pool_secrets import POOL_SECRETS_FOLDER, PoolSecrets
from svc_manager.ports import PortTakenError
from svc_manager.usecases.activation import NewExperiment, ReopenRequest
from svc_manager.usecases.experiments import ConfigChange
from tests.unit.services.manager.world import PATIENCE_S, World, world_on

DONE = experiment_pb2.EXPERIMENT_STATE_DONE
VIEWED = experiment_pb2.EXPERIMENT_STATE_VIEWED


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as made:
        yield made


async def stopped(world: World) -> str:
    """Run an experiment to its end and stop it; return its id."""
    experiment_id = await world.create()
    await world.wait_for_state(experiment_id, DONE)
    await world.experiments.stop(experiment_id)
    return experiment_id


def left_behind(world: World) -> list[str]:
    folder = world.folder / "experiments"
    return [one.name for one in folder.iterdir()] if folder.is_dir() else []


async def test_omitted_settings_get_their_defaults(world: World) -> None:
    experiment_id = await world.create(experiment_working_directory=None)

    config = (await world.experiments.get(experiment_id)).experiment.config

    assert config.experiment_working_directory == str(world.folder / "experiments")
    assert config.seed == 7 or config.HasField("seed")
    assert [one.platform for one in config.training_services] == ["local"]


async def test_the_environment_of_the_client_is_kept_in_the_folder(world: World) -> None:
    experiment_id = await world.create()

    path = world.folder / "experiments" / experiment_id / "environment.json"
    assert json.loads(path.read_text()) == {
        "environment": {"HOME": "/home/u"},
        "interpreter": "/usr/bin/python3",
    }


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"trial_command": " "}, "trial_command"),
        ({"trial_code_directory": "/does/not/exist"}, "trial_code_directory"),
        ({"trial_concurrency": 0}, "trial_concurrency"),
    ],
)
async def test_a_refused_configuration_leaves_nothing_behind(
    world: World, fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=field):
        await world.create(port=8080, **fields)

    assert left_behind(world) == []
    assert world.listeners.open == {}
    assert await world.bus.events.experiments() == []


async def test_a_port_in_use_leaves_no_folder(world: World) -> None:
    world.listeners.taken[8080] = "program nginx"

    with pytest.raises(PortTakenError, match="nginx"):
        await world.create(port=8080)

    assert left_behind(world) == []


@pytest.mark.parametrize("port", [-1, 65536])
async def test_a_port_out_of_range_is_refused(world: World, port: int) -> None:
    with pytest.raises(InvalidArgumentError, match="port must be 1 to 65535"):
        await world.create(port=port)


async def test_an_environment_that_no_process_can_have_is_refused(world: World) -> None:
    new = NewExperiment(world.config(), environment={"A=B": "secret"})

    with pytest.raises(InvalidArgumentError, match="environment") as caught:
        await world.experiments.create(new)

    assert "secret" not in str(caught.value)


async def test_a_repeated_creation_returns_the_same_experiment(world: World) -> None:
    first = await world.create(request_id="r1")
    second = await world.create(request_id="r1")

    assert first == second
    assert await world.bus.events.experiments() == [first]


async def test_another_creation_with_the_same_request_id_is_refused(world: World) -> None:
    await world.create(request_id="r1")

    with pytest.raises(InvalidArgumentError, match="must name one request only"):
        await world.create(request_id="r1", max_trial_number=7)


async def test_a_running_experiment_cannot_be_resumed(world: World) -> None:
    experiment_id = await world.create()

    with pytest.raises(FailedPreconditionError, match="stop it first"):
        await world.experiments.resume(ReopenRequest(experiment_id, port=8080))

    assert world.listeners.open == {}


async def test_a_resumed_experiment_has_its_port_and_new_environment(world: World) -> None:
    experiment_id = await stopped(world)
    request = ReopenRequest(experiment_id, port=8080, environment={"NEW": "1"})

    activated = await world.experiments.resume(request)

    path = world.folder / "experiments" / experiment_id / "environment.json"
    assert activated.urls == ["http://127.0.0.1:8080/"]
    assert json.loads(path.read_text())["environment"] == {"NEW": "1"}
    assert json.loads(path.read_text())["interpreter"] == "/usr/bin/python3"


async def test_a_repeated_resumption_has_no_further_effect(world: World) -> None:
    experiment_id = await stopped(world)
    actor = await world.manager.registry.find(experiment_id)

    for _ in range(2):
        await world.experiments.resume(ReopenRequest(experiment_id, request_id="r1"))

    assert actor.experiment.algorithm.generation == 2


async def test_a_viewed_experiment_is_open_for_reading_only(world: World) -> None:
    experiment_id = await stopped(world)

    activated = await world.experiments.view(ReopenRequest(experiment_id))

    assert activated.experiment.state == VIEWED
    with pytest.raises(FailedPreconditionError):
        await world.manager.trials.add(experiment_id, to_value({"x": 1}))


async def test_an_unknown_experiment_needs_its_folder(world: World) -> None:
    with pytest.raises(NotFoundError):
        await world.experiments.resume(ReopenRequest("unknown1"))
    with pytest.raises(InvalidArgumentError, match="must be an absolute path"):
        await world.experiments.view(ReopenRequest("unknown1", experiment_directory="relative"))


def job_config(world: World, job: object) -> config_pb2.ExperimentConfig:
    config = config_pb2.ExperimentConfig(
        trial_code_directory=str(world.folder),
        experiment_working_directory=str(world.folder / "experiments"),
    )
    config.compression.job.CopyFrom(to_value(job))
    return config


async def test_job_is_checked_by_the_compressor(world: World) -> None:
    with pytest.raises(InvalidArgumentError, match=r"job\.model is missing"):
        await world.experiments.create(NewExperiment(job_config(world, {"no": "job"})))
    assert left_behind(world) == []

    made = (await world.experiments.create(NewExperiment(job_config(world, {})))).experiment

    assert made.config.trial_concurrency == 1
    batch = event_pb2.EventBatch.FromString(await first_batch(world, made.id))
    requested = [one.algorithm_requested for one in batch.events]
    assert "compressor" in [one.service for one in requested]


async def test_exploration_is_checked_by_the_nas_service_and_answered_by_it(world: World) -> None:
    config = job_config(world, {})
    config.nas.strategy = "Random"
    config.ClearField("compression")

    made = (await world.experiments.create(NewExperiment(config))).experiment

    batch = event_pb2.EventBatch.FromString(await first_batch(world, made.id))
    assert "nas" in [one.algorithm_requested.service for one in batch.events]
    assert world.jobs.asked == 1
    assert made.algorithm == "Random"


async def first_batch(world: World, experiment_id: str) -> bytes:
    async with aclosing(world.bus.events.read(experiment_id)) as log:
        return (await anext(log)).payload


async def test_steps_of_a_job_cannot_be_changed_but_its_time_can(world: World) -> None:
    made = (await world.experiments.create(NewExperiment(job_config(world, {})))).experiment

    with pytest.raises(InvalidArgumentError) as refusal:
        await world.experiments.update(made.id, ConfigChange(trial_concurrency=2))
    changed = await world.experiments.update(made.id, ConfigChange(max_experiment_duration_s=60))

    assert refusal.value.field == "trial_concurrency"
    assert changed.config.max_experiment_duration.seconds == 60


async def test_resumed_job_starts_the_compressor(world: World) -> None:
    made = (await world.experiments.create(NewExperiment(job_config(world, {})))).experiment
    await world.experiments.stop(made.id)

    await world.experiments.resume(ReopenRequest(made.id))

    assert world.jobs.asked == 2


async def test_jobs_that_run_start_the_compressor_after_a_restart(world: World) -> None:
    await world.experiments.create(NewExperiment(job_config(world, {})))
    await world.create()

    await world.experiments.start_job_services()

    assert world.jobs.asked == 2


async def test_platform_elsewhere_needs_an_archive_of_the_code(tmp_path: Path) -> None:
    services = [config_pb2.TrainingServiceConfig(platform="elsewhere")]
    async with (
        InMemoryBus() as bus,
        world_on(bus, tmp_path, platforms=["local", "elsewhere"]) as world,
    ):
        with pytest.raises(InvalidArgumentError, match="code_archive must be given"):
            await world.create(training_services=services)

    assert left_behind(world) == []


async def test_platform_that_is_not_there_is_refused(world: World) -> None:
    services = [config_pb2.TrainingServiceConfig(platform="elsewhere")]

    with pytest.raises(InvalidArgumentError, match=r"must be one of local.* in this version"):
        await world.create(training_services=services)


async def test_trials_of_a_platform_elsewhere_are_queued_for_the_pool_of_their_experiment(
    tmp_path: Path,
) -> None:
    async with (
        InMemoryBus() as bus,
        world_on(bus, tmp_path, platforms=["local", "elsewhere"]) as world,
    ):
        experiment_id = await world.create_on("elsewhere")
        feed = await bus.tasks.pull(f"exp-{experiment_id}")
        async with aclosing(feed):
            feed.grant(1)
            task = task_pb2.TrialTask.FromString((await anext(feed)).payload)

    assert task.spec.code_archive.sha256
    assert task.spec.outputs_travel
    assert world.agent.seen == []


SECRET = "s3cret-of-ann"
MACHINES = {"machineList": [{"host": "a", "user": "ann", "password": SECRET}]}


@pytest.fixture
async def remote_world(tmp_path: Path) -> AsyncIterator[World]:
    """World with a platform besides local."""
    async with (
        InMemoryBus() as bus,
        world_on(bus, tmp_path, platforms=["local", "elsewhere"]) as made,
    ):
        yield made


async def test_secrets_of_platforms_are_in_their_file_alone(remote_world: World) -> None:
    world = remote_world
    experiment_id = await world.create_on("elsewhere", options=MACHINES, request_id="r1")
    answers: list[Any] = [
        await world.experiments.get(experiment_id),
        await world.experiments.list(),
        await world.experiments.stop(experiment_id),
    ]
    async with aclosing(world.experiments.follow_events(experiment_id, follow=False)) as feed:
        answers += [event async for event in feed]
    actor = await world.manager.registry.find(experiment_id)
    async with asyncio.timeout(PATIENCE_S):
        await actor.wait_for_effects()
    answers += await world.bus.last_values.read(subjects.ALL_POOLS)
    async with aclosing(world.bus.events.read(experiment_id)) as log:
        answers += [message async for message in log]

    holders = [
        str(path.relative_to(world.folder))
        for path in world.folder.rglob("*")
        if path.is_file() and SECRET.encode() in path.read_bytes()
    ]
    assert holders == [f"nni/pool-secrets/exp-{experiment_id}.json"]
    assert SECRET not in repr(answers)


async def test_fingerprint_of_a_creation_does_not_depend_on_its_secrets(
    remote_world: World,
) -> None:
    first = await remote_world.create_on("elsewhere", options=MACHINES, request_id="r1")
    other = {"machineList": [{"host": "a", "user": "ann", "password": "other"}]}

    again = await remote_world.create_on("elsewhere", options=other, request_id="r1")

    assert again == first


async def test_resumption_without_a_secret_names_its_field(remote_world: World) -> None:
    world = remote_world
    experiment_id = await world.create_on("elsewhere", options=MACHINES)
    await world.experiments.stop(experiment_id)
    secrets = PoolSecrets(world.folder / "nni")
    secrets.remove_pool(f"exp-{experiment_id}")

    with pytest.raises(
        FailedPreconditionError, match=r"trainingService\.machineList\[0\]\.password is secret"
    ):
        await world.experiments.resume(ReopenRequest(experiment_id))
    await world.experiments.view(ReopenRequest(experiment_id))
    await world.experiments.stop(experiment_id)
    secrets.write(f"exp-{experiment_id}", {"machineList[0].password": SECRET})
    resumed = await world.experiments.resume(ReopenRequest(experiment_id))

    assert resumed.experiment.id == experiment_id


async def test_deletion_removes_need_and_secrets(remote_world: World) -> None:
    world = remote_world
    experiment_id = await world.create_on("elsewhere", options=MACHINES)
    await world.experiments.stop(experiment_id)

    await world.experiments.delete(experiment_id)

    assert await world.bus.last_values.read(subjects.ALL_POOLS) == []
    assert PoolSecrets(world.folder / "nni").read(f"exp-{experiment_id}") == {}


async def test_refused_creation_leaves_no_secrets(remote_world: World) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        await remote_world.create_on("elsewhere", options=MACHINES, trial_command="")

    assert SECRET not in str(raised.value)
    assert not (remote_world.folder / "nni" / POOL_SECRETS_FOLDER).exists()


async def test_storage_that_cannot_be_used_leaves_neither_folder_nor_secrets(world: World) -> None:
    section = {
        "storageType": "NFS",
        "localMountPoint": str(world.folder / "missing"),
        "remoteMountPoint": "data",
        "localMounted": "usermount",
        "nfsServer": "10.0.0.9",
        "exportedDirectory": "/data",
    }
    caller = Caller(SERVICES_NAME, Role.ADMIN, "token")

    with serving(caller), pytest.raises(FailedPreconditionError, match="cannot be written"):
        await world.create_on("remote", options={**MACHINES, "sharedStorage": section})

    assert left_behind(world) == []
    assert not (world.folder / "nni" / POOL_SECRETS_FOLDER).exists()


async def test_experiment_uses_a_pool_of_the_installation_that_exists(tmp_path: Path) -> None:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as world:
        pool = {"name": "gpus"}
        with pytest.raises(InvalidArgumentError, match="must be a pool of this installation"):
            await world.create_on("pool", options=pool)
        await world.manager.installation_pools.create(pool_pb2.PoolDefinition(pool="gpus"))

        experiment_id = await world.create_on("pool", options=pool)
        subject = subjects.pool_need_subject(f"exp-{experiment_id}")
        async with asyncio.timeout(PATIENCE_S), aclosing(bus.last_values.follow(subject)) as needs:
            await anext(needs)
        view = await world.manager.installation_pools.get("gpus")

        assert [user.experiment_id for user in view.users] == [experiment_id]


@pytest.mark.parametrize("request_id", ["", "call"])
async def test_experiment_has_the_id_that_was_chosen(world: World, request_id: str) -> None:
    new = NewExperiment(world.config(), request_id, experiment_id="mine0001")

    opened = await world.experiments.create(new)

    assert opened.experiment.id == "mine0001"


@pytest.mark.parametrize("request_id", ["", "another"])
async def test_chosen_id_that_another_experiment_has_is_refused(
    world: World, request_id: str
) -> None:
    await world.experiments.create(NewExperiment(world.config(), "first", experiment_id="mine0001"))

    with pytest.raises(AlreadyExistsError, match="mine0001"):
        await world.experiments.create(
            NewExperiment(world.config(), request_id, experiment_id="mine0001")
        )


async def test_repeated_creation_with_a_chosen_id_returns_the_experiment(world: World) -> None:
    new = NewExperiment(world.config(), "call", experiment_id="mine0001")

    opened = [await world.experiments.create(new) for _ in range(2)]

    assert [one.experiment.id for one in opened] == ["mine0001", "mine0001"]


@pytest.mark.parametrize("chosen", ["abc", "Mine0001", "a.b.c", "../mine0001", "x" * 33])
async def test_id_that_no_subject_or_folder_can_have_is_refused(world: World, chosen: str) -> None:
    with pytest.raises(InvalidArgumentError, match="experiment_id must be 4 to 32"):
        await world.experiments.create(NewExperiment(world.config(), experiment_id=chosen))
