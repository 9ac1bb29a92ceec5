"""The dispatcher with an algorithm on an external server."""

from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import to_value
from tests.integration.dispatcher.conftest import Dispatcher
from tests.support.scripted_manager import (
    ScriptedManager,
    experiment_ended,
    metric,
    requested,
    trial_of,
)
from tests.support.tuning_server import tuning_server

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


def served_at(address: str, **class_args: object) -> config_pb2.AlgorithmConfig:
    return config_pb2.AlgorithmConfig(server_address=address, class_args=to_value(class_args))


async def test_external_algorithm_is_called_for_suggestions_and_results(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    async with tuning_server() as (server, address):
        await manager.create(SPACE, tuner=served_at(address))
        started = await manager.received("algorithm_started")
        (first, _), (second, _) = await manager.generate(2)

        await manager.finish(first, 0.25, 0.5)
        await manager.append(metric(second, -1.0, final=False))
        advice = await manager.received("stop_advice")

    assert started.lookahead
    assert advice.trial_id == trial_of(second)
    assert server.calls[1:4] == [
        ("metric", trial_of(first), 0.5, False),
        ("metric", trial_of(first), 0.25, True),
        ("end", trial_of(first), "SUCCEEDED"),
    ]


async def test_resumed_external_algorithm_gets_the_finished_trials(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    async with tuning_server() as (server, address):
        await manager.create(SPACE, tuner=served_at(address))
        ((parameter_id, parameters),) = await manager.generate(1)
        await manager.finish(parameter_id, 0.5)
        await manager.append(experiment_ended())

        await manager.append(requested(2))
        await manager.received("algorithm_started", lambda message: message.generation == 2)
        await manager.generate(1)

    assert ("import", [{"parameter": parameters, "value": 0.5}]) in server.calls
    assert ("close", "session-0") in server.calls


async def test_session_that_is_refused_ends_the_experiment(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    async with tuning_server() as (_, address):
        await manager.create(SPACE, tuner=served_at(address, bad=1))

        gave_up = await manager.received("algorithm_gave_up")

    assert gave_up.reason == "bad is no argument"


async def test_server_that_fails_thrice_ends_the_experiment(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    async with tuning_server() as (server, address):
        server.broken = True
        await manager.create(SPACE, tuner=served_at(address))

        await manager.ask(1)
        gave_up = await manager.received("algorithm_gave_up")

    assert "broken; it failed 3 times" in gave_up.reason


async def test_server_with_an_invalid_value_ends_the_experiment(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    async with tuning_server() as (server, address):
        server.garbled = True
        await manager.create(SPACE, tuner=served_at(address))

        await manager.ask(1)
        gave_up = await manager.received("algorithm_gave_up")

    assert "made an unreadable suggestion, number 0" in gave_up.reason
