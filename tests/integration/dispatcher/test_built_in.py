"""The dispatcher with built-in algorithms: suggestions, assessment, restarts, resumes."""

import os
import signal
from typing import Any

import pytest

from nni.hpo.registry import factory
from nni_proto.experiment.v1 import event_pb2
from nni_wire.values import from_value, to_value
from svc_common.messaging.nats_bus import NatsBus
from tests.integration.dispatcher.conftest import Dispatcher, soon
from tests.integration.dispatcher.host_processes import host_pid, pid_exists
from tests.support.scripted_manager import (
    ScriptedManager,
    ended,
    experiment_ended,
    metric,
    named,
    requested,
    trial_of,
)

SPACE = {
    "x": {"_type": "uniform", "_value": [-5, 10]},
    "y": {"_type": "choice", "_value": [1, 2, "three"]},
}
GRID = {"x": {"_type": "choice", "_value": [1, 2]}, "y": {"_type": "choice", "_value": [1, 2]}}


async def test_algorithm_is_started_and_answers(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    await manager.create(SPACE, tuner=named("TPE"))

    started = await manager.received("algorithm_started")
    answer = await manager.answer(await manager.ask(2))

    assert started.generation == 1
    assert not started.lookahead
    assert started.provenance["python"]
    assert [item.parameter_id for item in answer.parameters] == [0, 1]
    assert answer.based_on.sequence > 0


async def test_algorithms_that_never_learn_report_it(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    await manager.create(SPACE, tuner=named("Random"))

    started = await manager.received("algorithm_started")

    assert started.lookahead


async def test_finite_tuner_is_exhausted(dispatcher: Dispatcher, manager: ScriptedManager) -> None:
    await manager.create(GRID, tuner=named("GridSearch"))

    answer = await manager.answer(await manager.ask(6))

    assert len(answer.parameters) == 4
    assert answer.exhausted
    assert answer.deferred == 0


async def test_every_suggestion_has_its_provenance(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    await manager.create(SPACE, tuner=named("Random"), seed=11)

    answer = await manager.answer(await manager.ask(1))

    provenance = from_value(answer.parameters[0].provenance)
    assert provenance["algorithm"] == "Random"
    assert provenance["seed"] == 11


async def test_assessor_advises_to_stop_a_bad_trial(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    await manager.create(
        SPACE, tuner=named("Random"), assessor=named("Medianstop", optimize_mode="maximize")
    )
    (good, _), (bad, _) = await manager.generate(2)
    await manager.finish(good, 1.0, 0.9, 0.95, 1.0)

    await manager.append(metric(bad, 0.1, final=False))
    advice = await manager.received("stop_advice")

    assert advice.trial_id == trial_of(bad)


async def test_restarted_dispatcher_draws_nothing_twice(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    await manager.create(SPACE, tuner=named("TPE", optimize_mode="minimize"))
    for parameter_id, parameters in await manager.generate(25):
        await manager.finish(parameter_id, parameters["x"] ** 2)
    unanswered = await manager.ask(1)
    answer = await manager.answer(unanswered)
    expected = undisturbed(26, SPACE, seed=7, finished=25)

    await dispatcher.restart()
    await manager.schedule(answer)
    ((_, parameters),) = await manager.generate(1)

    assert parameters == expected
    assert len(manager.all("algorithm_started")) == 1
    assert manager.all("algorithm_diverged") == []


@pytest.mark.claim("hpo", 49)
async def test_resumed_tuner_learns_the_finished_trials(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    await manager.create(GRID, tuner=named("GridSearch"))
    first = await manager.generate(2)
    for parameter_id, _ in first:
        await manager.finish(parameter_id, 1.0)
    await manager.append(experiment_ended())

    await manager.append(requested(2))
    await manager.received("algorithm_started", lambda m: m.generation == 2)
    second = await manager.generate(4)

    every = [tuple(parameters.values()) for _, parameters in first + second]
    assert sorted(every) == [(1, 1), (1, 2), (2, 1), (2, 2)]


async def test_resumed_random_search_does_not_repeat_itself(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    await manager.create(SPACE, tuner=named("Random"))
    ((_, first),) = await manager.generate(1)
    await manager.append(ended(0), experiment_ended())

    await manager.append(requested(2))
    ((_, second),) = await manager.generate(1)

    assert first["x"] != second["x"]


async def test_host_ends_with_its_experiment(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    await manager.create(SPACE, tuner=named("Random"))
    await manager.received("algorithm_started")
    pid = host_pid(manager)
    assert pid

    await manager.append(experiment_ended())

    await soon(lambda: not pid_exists(pid))
    assert not pid_exists(pid)


@pytest.mark.parametrize("kills", [1, 3])
async def test_killed_host_comes_back_with_the_same_suggestions(
    dispatcher: Dispatcher, manager: ScriptedManager, kills: int
) -> None:
    await manager.create(SPACE, tuner=named("TPE", optimize_mode="minimize"))
    for parameter_id, parameters in await manager.generate(22):
        await manager.finish(parameter_id, parameters["x"] ** 2)
    expected = undisturbed(22, SPACE, seed=7)

    for _ in range(kills):
        await kill_host(manager)
    ((_, parameters),) = await manager.generate(1)

    assert parameters == expected
    assert manager.all("algorithm_diverged") == []
    assert manager.all("algorithm_gave_up") == []
    assert "was killed by SIGKILL" in manager.dispatcher_log()


async def test_changed_search_space_holds_for_later_suggestions(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    await manager.create(SPACE, tuner=named("Random"))
    await manager.generate(1)
    changed = event_pb2.SearchSpaceChanged(
        search_space=to_value({"z": {"_type": "choice", "_value": [9]}})
    )

    await manager.append(event_pb2.Event(search_space_changed=changed))
    ((_, parameters),) = await manager.generate(1)

    assert parameters == {"z": 9}


async def test_large_parameters_go_through_the_byte_store(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    large = "x" * 300_000
    await manager.create({"z": {"_type": "choice", "_value": [large]}}, tuner=named("Random"))

    answer = await manager.answer(await manager.ask(1))
    value = answer.parameters[0].parameters

    assert value.blob_value.size_bytes > len(large)
    await dispatcher.blobs.get(f"sha256/{value.blob_value.sha256}")


@pytest.mark.claim("platform", 11)
async def test_debug_experiment_has_debug_lines_in_its_dispatcher_log(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    await manager.create(SPACE, tuner=named("Random"), debug=True)

    await manager.generate(1)

    assert "] DEBUG (" in manager.dispatcher_log()


@pytest.mark.claim("platform", 23)
async def test_search_space_that_the_tuner_refuses_ends_the_experiment(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    await manager.create({"x": {"_type": "nonsense", "_value": [1]}}, tuner=named("TPE"))

    gave_up = await manager.received("algorithm_gave_up")

    assert gave_up.generation == 1
    assert "nonsense" in gave_up.reason


async def kill_host(manager: ScriptedManager) -> None:
    """Kill the host and wait for the next one."""
    pid = host_pid(manager)
    assert pid, "0 would be this process and its group"
    os.kill(pid, signal.SIGKILL)
    await soon(lambda: host_pid(manager) not in {0, pid})


def undisturbed(count: int, space: dict[str, Any], seed: int, finished: int = 22) -> Any:
    """Return the suggestions of TPE after this history, in one process without kills."""
    tuner = factory.create("tuner", "TPE", {"optimize_mode": "minimize"}, seed)
    tuner.update_search_space(space)
    configurations = tuner.generate_multiple_parameters(list(range(finished)))
    for parameter_id, parameters in enumerate(configurations):
        tuner.receive_trial_result(parameter_id, parameters, parameters["x"] ** 2)
        tuner.trial_end(parameter_id, True)
    for parameter_id in range(finished, count):
        tuner.generate_parameters(parameter_id)
    return tuner.generate_parameters(count)


async def test_log_that_cannot_be_read_costs_that_experiment_only(
    bus: NatsBus, dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    await bus.events.append(
        "garbage1", b"\xff no batch", expected_sequence=0, epoch=1, append_id="0"
    )
    await dispatcher.restart()

    await manager.create(SPACE, tuner=named("Random"))

    assert (await manager.received("algorithm_started")).generation == 1
