"""The dispatcher with real hosts while an experiment is handed over to another tuner."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from nni.hpo.registry import factory
from nni_proto.experiment.v1 import event_pb2
from nni_wire.values import from_value
from svc_dispatcher.converters.log_messages import events_of
from svc_dispatcher.domain.replay import recorded_generations
from svc_dispatcher.domain.values import generation_seed
from tests.integration.dispatcher.conftest import Dispatcher, soon
from tests.integration.dispatcher.host_processes import host_pid, pid_exists
from tests.support.scripted_manager import (
    ScriptedManager,
    ended,
    handed_over,
    metric,
    named,
    trial_of,
)

SPACE = {"x": {"_type": "uniform", "_value": [-5, 10]}}
SEED = 7
RESULTS = 24


async def experiment(manager: ScriptedManager, **config: Any) -> list[dict[str, Any]]:
    """Create an experiment and run trials of random search; return them as samples."""
    await manager.create(SPACE, tuner=named("Random"), seed=SEED, **config)
    samples = []
    for parameter_id, parameters in await manager.generate(RESULTS):
        value = (parameters["x"] - 1) ** 2
        await manager.finish(parameter_id, value)
        samples.append({"parameter": parameters, "value": value})
    return samples


def expected(*imports: list[dict[str, Any]]) -> Any:
    """Return the first suggestion of the second generation after these imports."""
    tuner = factory.create("tuner", "TPE", {"optimize_mode": "minimize"}, generation_seed(SEED, 2))
    tuner.update_search_space(SPACE)
    for samples in imports:
        tuner.import_data(samples)
    return tuner.generate_parameters(RESULTS)


TPE = named("TPE", optimize_mode="minimize")


async def test_next_suggestion_is_that_of_a_tuner_that_knows_all_results(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    samples = await experiment(manager)
    before = host_pid(manager)

    await manager.append(handed_over(2, TPE))
    started = await manager.received("algorithm_started", lambda m: m.generation == 2)
    answer = await manager.answer(await manager.ask(1))

    assert not started.lookahead
    assert from_value(answer.parameters[0].parameters) == expected(samples)
    provenance = from_value(answer.parameters[0].provenance)
    assert (provenance["algorithm"], provenance["results"]) == ("TPE", RESULTS)
    assert not pid_exists(before)


@pytest.mark.parametrize("meanwhile", ["nothing", "kill of the dispatcher", "kill of the host"])
async def test_trial_that_ran_is_learned_at_its_end(
    dispatcher: Dispatcher, manager: ScriptedManager, meanwhile: str
) -> None:
    samples = await experiment(manager)
    ((running, parameters),) = await manager.generate(1)
    await manager.append(handed_over(2, TPE))
    if meanwhile == "kill of the dispatcher":
        await dispatcher.restart()
    await manager.received("algorithm_started", lambda m: m.generation == 2)
    if meanwhile == "kill of the host":
        pid = host_pid(manager)
        os.kill(pid, signal.SIGKILL)
        await soon(lambda: host_pid(manager) not in {0, pid})

    await manager.finish(running, 0.25)
    ((_, suggestion),) = await manager.generate(1)

    assert suggestion == expected(samples, [{"parameter": parameters, "value": 0.25}])
    assert [m.generation for m in manager.all("algorithm_started")] == [1, 2]
    assert manager.all("algorithm_diverged") == []
    assert manager.all("algorithm_gave_up") == []


async def test_last_of_two_hand_overs_wins(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    await experiment(manager)

    await manager.append(handed_over(2, TPE))
    await manager.append(handed_over(3, named("Anneal")))
    await manager.received("algorithm_started", lambda m: m.generation == 3)
    answer = await manager.answer(await manager.ask(1))

    assert from_value(answer.parameters[0].provenance)["algorithm"] == "Anneal"
    assert not {m.generation for m in manager.all("algorithm_started")} - {1, 2, 3}


async def test_assessor_judges_by_the_trials_before_the_hand_over(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    await manager.create(
        SPACE, tuner=named("Random"), assessor=named("Medianstop", optimize_mode="maximize")
    )
    (good, _), (bad, _) = await manager.generate(2)
    await manager.finish(good, 1.0, 0.9, 0.95, 1.0)
    await manager.append(handed_over(2, named("TPE", optimize_mode="maximize")))
    await manager.received("algorithm_started", lambda m: m.generation == 2)

    await manager.append(metric(bad, 0.1, final=False))
    advice = await manager.received("stop_advice")

    assert advice.trial_id == trial_of(bad)
    await manager.append(ended(bad))


async def test_log_splits_into_one_generation_of_each_tuner(
    dispatcher: Dispatcher, manager: ScriptedManager
) -> None:
    await experiment(manager)
    ((running, _),) = await manager.generate(1)
    await manager.append(handed_over(2, TPE))
    await manager.generate(1)
    await manager.finish(running, 0.5)
    await manager.generate(1)

    log = [
        event
        async for message in manager.bus.events.read(manager.id)
        for event in events_of(message.sequence, event_pb2.EventBatch.FromString(message.payload))
    ]
    first, second = recorded_generations(log)

    assert first.setup.tuner is not None
    assert second.setup.tuner is not None
    assert [first.setup.tuner.name, second.setup.tuner.name] == ["Random", "TPE"]
    assert [len(first.recorded), len(second.recorded)] == [RESULTS + 1, 2]
