"""A manager that dies at any moment and its successor, over a real bus."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from nni_proto.experiment.v1 import config_pb2, event_pb2, experiment_pb2
from nni_wire.values import from_value
from svc_common.errors import AbortedError, FailedPreconditionError
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.tasks import TaskOwner
from svc_manager.actors.experiment_actor import ExperimentActor
from svc_manager.domain.inputs import RecordedCommand, Update
from svc_manager.event_log.reader import load
from svc_manager.usecases.activation import ReopenRequest
from svc_manager.usecases.experiments import ConfigChange
from tests.support.servers import NatsServer
from tests.unit.services.manager.world import (
    CountingDispatcher,
    InMemoryListeners,
    ScriptedAgent,
    World,
    hold,
    manager_on,
    raise_failure,
    succeed,
)

DONE = experiment_pb2.EXPERIMENT_STATE_DONE
RUNNING = experiment_pb2.EXPERIMENT_STATE_RUNNING
STOPPED = experiment_pb2.EXPERIMENT_STATE_STOPPED


class Site:
    """A bus, a dispatcher and an agent that outlive managers."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.listeners = InMemoryListeners()
        self.tasks = TaskOwner(raise_failure)

    @asynccontextmanager
    async def manager(self, agent: ScriptedAgent) -> AsyncIterator[World]:
        """Run a manager on a connection of its own; leaving the block is its death."""
        async with (
            NatsBus(NatsSettings(self.url)) as bus,
            manager_on(bus, self.folder, self.listeners) as manager,
        ):
            dispatcher = CountingDispatcher(agent.bus)
            yield World(bus, self.folder, manager, self.listeners, dispatcher, agent, self.tasks)


@pytest.fixture
async def site(own_nats: NatsServer, tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(own_nats.url, tmp_path)
    yield made
    await made.tasks.aclose()


@pytest.fixture
async def agent(site: Site) -> AsyncIterator[ScriptedAgent]:
    async with NatsBus(NatsSettings(site.url)) as bus:
        made = ScriptedAgent(bus, succeed)
        site.tasks.start(made.run(), "agent")
        site.tasks.start(made.obey(), "orders")
        yield made
        await site.tasks.aclose()


async def test_the_next_manager_goes_on_where_the_last_one_died(
    site: Site, agent: ScriptedAgent
) -> None:
    experiment_id = ""
    for _ in range(4):
        async with site.manager(agent) as world:
            if not experiment_id:
                experiment_id = await world.create(max_trial_number=60, trial_concurrency=4)
            await asyncio.sleep(0.02)  # some way into the work: anywhere will do
    async with site.manager(agent) as world:
        done = await world.wait_for_state(experiment_id, DONE)
        trials = (await world.manager.trials.list(experiment_id)).items

    assert dict(done.trial_counts) == {"SUCCEEDED": 60}
    assert [trial.sequence_id for trial in trials] == list(range(60))
    assert all(
        from_value(trial.final_metric.value) == from_value(trial.parameters)["x"]
        for trial in trials
    )


async def test_manager_that_dies_in_a_hand_over_has_handed_over_once_or_not_at_all(
    site: Site, agent: ScriptedAgent
) -> None:
    tuner = config_pb2.AlgorithmConfig(name="Successor")
    async with site.manager(agent) as world:
        experiment_id = await world.create(max_trial_number=60, trial_concurrency=4)
        asking = asyncio.ensure_future(
            world.experiments.update(experiment_id, ConfigChange(tuner=tuner), "hand-over")
        )
        await world.wait_for_state(experiment_id, RUNNING, DONE)
        asking.cancel()  # the client sees no response
        await asyncio.gather(asking, return_exceptions=True)

    async with site.manager(agent) as world:
        for _ in range(2):
            await world.experiments.update(experiment_id, ConfigChange(tuner=tuner), "hand-over")
        done = await world.wait_for_state(experiment_id, DONE)
        generations = [
            event.algorithm_requested.generation
            async for message in world.bus.events.read(experiment_id)
            for event in event_pb2.EventBatch.FromString(message.payload).events
            if event.HasField("algorithm_requested")
        ]

    assert generations == [1, 2]
    assert done.config.tuner.name == "Successor"
    assert dict(done.trial_counts) == {"SUCCEEDED": 60}


async def test_an_experiment_that_cannot_be_loaded_costs_the_others_nothing(
    site: Site, agent: ScriptedAgent
) -> None:
    async with site.manager(agent) as world:
        good = await world.create(max_trial_number=4)
        await world.wait_for_state(good, DONE)
        await world.bus.events.append(
            "garbage1", b"\xff no batch", expected_sequence=0, epoch=1, append_id="0"
        )

    async with site.manager(agent) as world:
        view = await world.manager.experiments.get(good)
        with pytest.raises(FailedPreconditionError, match="garbage1 cannot be read at"):
            await world.manager.experiments.get("garbage1")

    assert view.experiment.state == DONE


async def test_what_was_reported_while_no_manager_lived_is_counted_once(
    site: Site, agent: ScriptedAgent
) -> None:
    agent.script = hold
    async with site.manager(agent) as world:
        experiment_id = await world.create(max_trial_number=2)
        held = await agent.holds(2)
    for trial in held:
        await agent.result(trial, 1.5)
        await agent.exit(trial)

    async with site.manager(agent) as world:
        done = await world.wait_for_state(experiment_id, DONE)
        metrics = await world.manager.trials.metrics(experiment_id)

    assert dict(done.trial_counts) == {"SUCCEEDED": 2}
    assert metrics.total == 2


async def test_a_trial_lost_while_no_manager_lived_is_delivered_again(
    site: Site, agent: ScriptedAgent
) -> None:
    agent.script = hold
    async with site.manager(agent) as world:
        experiment_id = await world.create(max_trial_number=1)
        (held,) = await agent.holds(1)
        await world.wait_for_state(experiment_id, experiment_pb2.EXPERIMENT_STATE_NO_MORE_TRIAL)
    await agent.lose_attempt(held)
    agent.script = succeed

    async with site.manager(agent) as world:
        await world.wait_for_state(experiment_id, DONE)

    assert agent.seen == [(held.task.trial_id, 1), (held.task.trial_id, 2)]


async def test_the_port_of_an_experiment_is_opened_again(site: Site, agent: ScriptedAgent) -> None:
    async with site.manager(agent) as world:
        experiment_id = await world.create(port=8080)
        await world.wait_for_state(experiment_id, DONE)
    site.listeners.open.clear()
    site.listeners.opened.clear()

    async with site.manager(agent) as world:
        await world.experiments.wait(experiment_id, [DONE])
        await asyncio.wait_for(site.listeners.opened.wait(), 60)

    assert site.listeners.open == {experiment_id: (8080, "")}


async def test_a_manager_that_lost_the_experiment_steps_back(
    site: Site, agent: ScriptedAgent
) -> None:
    agent.script = hold
    async with site.manager(agent) as old:
        experiment_id = await old.create()
        await agent.holds(2)
        await old.wait_for_state(experiment_id, RUNNING)
        async with site.manager(agent) as new:
            await new.experiments.update(experiment_id, ConfigChange(trial_concurrency=3))

            with pytest.raises(AbortedError, match="another manager"):
                await old.experiments.update(experiment_id, ConfigChange(trial_concurrency=4))

            view = (await new.experiments.get(experiment_id)).experiment
    assert view.config.trial_concurrency == 3


async def test_a_killed_bus_loses_and_doubles_nothing(
    site: Site, agent: ScriptedAgent, own_nats: NatsServer
) -> None:
    async with site.manager(agent) as world:
        experiment_id = await world.create(max_trial_number=60, trial_concurrency=4)
        for _ in range(3):
            await asyncio.sleep(0.03)  # some way into the work: anywhere will do
            await asyncio.to_thread(own_nats.kill)
            await asyncio.to_thread(own_nats.start)

        done = await world.wait_for_state(experiment_id, DONE)

    assert dict(done.trial_counts) == {"SUCCEEDED": 60}


async def test_a_stopped_experiment_is_listed_without_reading_its_log(
    site: Site, agent: ScriptedAgent
) -> None:
    async with site.manager(agent) as world:
        experiment_id = await world.create()
        await world.wait_for_state(experiment_id, DONE)
        await world.experiments.stop(experiment_id)
        actor = await world.manager.registry.find(experiment_id)
        await actor.wait_for_effects()

    async with site.manager(agent) as world:
        listed = (await world.experiments.list(include_stopped=True)).items
        loaded = [actor.id for actor in world.manager.registry.actors()]

    assert [(view.id, dict(view.trial_counts)) for view in listed] == [
        (experiment_id, {"SUCCEEDED": 5})
    ]
    assert loaded == []


@pytest.mark.claim("platform", 32)
async def test_an_experiment_in_a_copied_folder_is_the_same_experiment_elsewhere(
    site: Site, agent: ScriptedAgent, shared_nats: NatsServer, tmp_path: Path
) -> None:
    async with site.manager(agent) as world:
        experiment_id = await world.create()
        await world.wait_for_state(experiment_id, DONE)
        before = (await world.experiments.stop(experiment_id)).trial_counts
    folder = site.folder / "experiments" / experiment_id
    copy = tmp_path / "other" / "elsewhere"  # below the roots of the other manager
    copy.parent.mkdir()
    await asyncio.to_thread(folder.rename, copy)

    async with NatsBus(NatsSettings(shared_nats.url)) as bus:
        elsewhere = Site(shared_nats.url, tmp_path / "other")
        async with elsewhere.manager(ScriptedAgent(bus, succeed)) as world:
            opened = await world.experiments.view(
                ReopenRequest(experiment_id, experiment_directory=str(copy))
            )
            positions = [
                (message.sequence, event.parameters_generated.based_on.sequence)
                async for message in bus.events.read(experiment_id)
                for event in event_pb2.EventBatch.FromString(message.payload).events
                if event.HasField("parameters_generated")
            ]
            known = {message.sequence async for message in bus.events.read(experiment_id)}
            await world.experiments.stop(experiment_id)
            await world.experiments.delete(experiment_id)

    assert opened.experiment.trial_counts == before
    assert opened.experiment.directory == str(copy)
    assert all(based_on in known and based_on < own for own, based_on in positions)


async def test_two_managers_at_once_write_one_log(site: Site, agent: ScriptedAgent) -> None:
    """The second writer loses its ownership; the log stays one sequence of events."""
    agent.script = hold
    async with site.manager(agent) as one, site.manager(agent) as two:
        experiment_id = await one.create()
        actors: list[ExperimentActor] = [
            await world.manager.registry.find(experiment_id) for world in (one, two)
        ]
        commands = [RecordedCommand(Update(trial_concurrency=n), "", "Test") for n in (5, 6)]
        results = await asyncio.gather(
            *(actor.submit(command) for actor, command in zip(actors, commands, strict=True)),
            return_exceptions=True,
        )
        folded = await load(one.bus.events, experiment_id)

    assert any(result is None for result in results)
    assert folded.experiment.budget.trial_concurrency in {5, 6}
