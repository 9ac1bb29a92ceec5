"""Hand-over of an experiment to another tuner, over the bus in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nni_proto.experiment.v1 import config_pb2, event_pb2
from nni_wire.values import from_value, to_value
from svc_common.errors import FailedPreconditionError, InvalidArgumentError
from svc_common.messaging.memory import InMemoryBus
from svc_manager.usecases.activation import NewExperiment
from svc_manager.usecases.experiments import ConfigChange
from tests.unit.services.manager.world import World, hold, world_on


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """World whose trials run until a test ends them."""
    async with InMemoryBus() as bus, world_on(bus, tmp_path, hold) as made:
        yield made


def tuner(name: str = "Successor", **class_args: object) -> config_pb2.AlgorithmConfig:
    config = config_pb2.AlgorithmConfig(name=name)
    if class_args:
        config.class_args.CopyFrom(to_value(class_args))
    return config


async def hand_over(
    world: World, experiment_id: str, config: config_pb2.AlgorithmConfig, request_id: str = ""
) -> config_pb2.AlgorithmConfig:
    view = await world.experiments.update(experiment_id, ConfigChange(tuner=config), request_id)
    return view.config.tuner


async def requests(world: World, experiment_id: str) -> list[event_pb2.AlgorithmRequested]:
    return [
        event.algorithm_requested
        async for message in world.bus.events.read(experiment_id)
        for event in event_pb2.EventBatch.FromString(message.payload).events
        if event.HasField("algorithm_requested")
    ]


async def test_trials_that_run_go_on_and_later_ones_are_the_successors(world: World) -> None:
    experiment_id = await world.create(trial_concurrency=2)
    first, second = await world.agent.holds(2)

    shown = await hand_over(world, experiment_id, tuner(depth=3, optimize_mode="minimize"))
    await world.agent.result(first, 1.0)
    await world.agent.exit(first)
    await world.agent.exit(second)
    await world.agent.holds(2)

    assert from_value(shown.class_args)["depth"] == 3
    trials = (await world.manager.trials.list(experiment_id)).items
    assert len(trials) == 4
    assert trials[0].final_metric.value == to_value(1.0)
    assert [one.generation for one in await requests(world, experiment_id)] == [1, 2]


async def test_mode_of_the_experiment_is_set_where_the_tuner_has_none(world: World) -> None:
    experiment_id = await world.create()

    shown = await hand_over(world, experiment_id, tuner())

    assert from_value(shown.class_args) == {"optimize_mode": "minimize"}


async def test_repeated_request_hands_over_once(world: World) -> None:
    experiment_id = await world.create()

    for _ in range(2):
        await hand_over(world, experiment_id, tuner(), "r1")

    assert [one.generation for one in await requests(world, experiment_id)] == [1, 2]
    with pytest.raises(InvalidArgumentError, match="request_id"):
        await hand_over(world, experiment_id, tuner("Counter"), "r1")


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (tuner("Unknown"), "tuner.name"),
        (config_pb2.AlgorithmConfig(), "tuner"),
        (tuner(optimize_mode="maximize"), "tuner.classArgs.optimize_mode"),
        (tuner("Suc\0cessor"), "tuner.name"),
        (tuner("Forgetful"), "tuner.name"),
    ],
    ids=["unknown", "nothing", "other mode", "NUL", "learns no earlier results"],
)
async def test_refused_tuner_changes_nothing(
    world: World, config: config_pb2.AlgorithmConfig, field: str
) -> None:
    experiment_id = await world.create()

    with pytest.raises(InvalidArgumentError) as refusal:
        await hand_over(world, experiment_id, config)

    assert refusal.value.field == field
    assert len(await requests(world, experiment_id)) == 1


async def test_tuner_is_changed_alone(world: World) -> None:
    experiment_id = await world.create()

    with pytest.raises(InvalidArgumentError, match="must be changed alone"):
        await world.experiments.update(
            experiment_id, ConfigChange(trial_concurrency=3, tuner=tuner())
        )


async def test_job_is_not_handed_over(world: World) -> None:
    config = config_pb2.ExperimentConfig(
        trial_code_directory=str(world.folder),
        experiment_working_directory=str(world.folder / "experiments"),
        compression=config_pb2.CompressionConfig(job=to_value({})),
    )
    made = await world.experiments.create(NewExperiment(config))

    with pytest.raises(InvalidArgumentError, match="compression job"):
        await hand_over(world, made.experiment.id, tuner())


async def test_stopped_experiment_is_not_handed_over(world: World) -> None:
    experiment_id = await world.create()
    await world.experiments.stop(experiment_id)

    with pytest.raises(FailedPreconditionError, match="STOPPED"):
        await hand_over(world, experiment_id, tuner())
