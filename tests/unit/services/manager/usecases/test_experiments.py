"""Use cases of the manager over the bus in memory."""

from __future__ import annotations

import asyncio
import json
import shutil
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from nni_proto.experiment.v1 import event_pb2, experiment_pb2, experiment_service_pb2
from nni_proto.runner.v1 import task_pb2
from nni_wire.values import from_value, to_value
from svc_common import subjects
from svc_common.access.current_call import serving
from svc_common.access.roles import SERVICES_NAME, Caller, Role
from svc_common.errors import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from svc_common.messaging.memory import InMemoryBus
from svc_manager.adapters.event_file import read_records
from svc_manager.domain.agent_limits import AgentLimits
from svc_manager.domain.inputs import ChangeRemarks, RecordedCommand, Update
from svc_manager.ports import PortTakenError
from svc_manager.usecases.activation import NewExperiment, ReopenRequest
from svc_manager.usecases.experiments import ConfigChange
from tests.unit.services.manager.world import (
    PATIENCE_S,
    InMemoryListeners,
    World,
    hold,
    manager_on,
    world_on,
)

DONE = experiment_pb2.EXPERIMENT_STATE_DONE
RUNNING = experiment_pb2.EXPERIMENT_STATE_RUNNING
STOPPED = experiment_pb2.EXPERIMENT_STATE_STOPPED
VIEWED = experiment_pb2.EXPERIMENT_STATE_VIEWED


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as made:
        yield made


@pytest.fixture
async def holding(tmp_path: Path) -> AsyncIterator[World]:
    """World whose trials run until a test ends them."""
    async with InMemoryBus() as bus, world_on(bus, tmp_path, hold) as made:
        yield made


async def test_limits_of_agents_are_changed_alone(world: World) -> None:
    experiment_id = await world.create()
    change = ConfigChange(trial_concurrency=4, agent_limits=AgentLimits(max_agents=2))

    with pytest.raises(InvalidArgumentError, match="agent_limits must be changed alone"):
        await world.experiments.update(experiment_id, change)


@pytest.mark.claim("platform", 17)
@pytest.mark.claim("platform", 27)
async def test_an_experiment_runs_to_its_end(world: World) -> None:
    experiment_id = await world.create()

    done = await world.wait_for_state(experiment_id, DONE)

    trials = (await world.manager.trials.list(experiment_id)).items
    assert [trial.sequence_id for trial in trials] == [0, 1, 2, 3, 4]
    assert all(
        from_value(trial.final_metric.value) == from_value(trial.parameters)["x"]
        for trial in trials
    )
    assert dict(done.trial_counts) == {"SUCCEEDED": 5}
    assert (done.best_value, done.next_sequence_id) == (0.0, 5)


@pytest.mark.claim("platform", 40)
async def test_the_folder_holds_what_the_specification_names(world: World) -> None:
    experiment_id = await world.create()
    await world.wait_for_state(experiment_id, DONE)
    folder = world.folder / "experiments" / experiment_id

    environment = folder / "environment.json"

    assert {"log", "checkpoint", "db", "trials"} <= {path.name for path in folder.iterdir()}
    assert stat.S_IMODE(environment.stat().st_mode) == 0o600
    assert json.loads(environment.read_text()) == {
        "environment": {"HOME": "/home/u"},
        "interpreter": "/usr/bin/python3",
    }
    assert "Experiment is DONE" in (folder / "log" / "nnimanager.log").read_text()


async def test_the_folder_log_is_the_log(world: World) -> None:
    experiment_id = await world.create()
    await world.wait_for_state(experiment_id, DONE)

    in_file = list(read_records(world.folder / "experiments" / experiment_id / "db/events.log"))

    on_bus = [
        (message.sequence, message.payload)
        async for message in world.bus.events.read(experiment_id)
    ]
    assert in_file == on_bus


async def test_remarks_on_a_stopped_experiment_survive_a_restart(tmp_path: Path) -> None:
    async with InMemoryBus() as bus:
        async with world_on(bus, tmp_path) as world:
            experiment_id = await world.create()
            await world.wait_for_state(experiment_id, DONE)
            trial_id = (await world.manager.trials.list(experiment_id)).items[0].id
            await world.experiments.stop(experiment_id)
            await world.experiments.change_remarks(
                experiment_id, ChangeRemarks(note="kept", tags=("a", "b"))
            )
            await world.experiments.change_remarks(
                experiment_id, ChangeRemarks(trial_id, starred=True)
            )
        async with world_on(bus, tmp_path) as world:
            view = (await world.experiments.get(experiment_id)).experiment
            trial = await world.manager.trials.get(experiment_id, trial_id)

    assert view.state == STOPPED
    assert (view.remarks.note, list(view.remarks.tags)) == ("kept", ["a", "b"])
    assert trial.remarks.starred


async def test_a_seed_is_drawn_and_recorded(world: World) -> None:
    experiment_id = await world.create()

    view = (await world.experiments.get(experiment_id)).experiment

    assert view.config.HasField("seed")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"trial_command": "  "}, "trial_command"),
        ({"trial_concurrency": 0}, "trial_concurrency"),
        ({"max_trial_number": 0}, "max_trial_number"),
        ({"trial_code_directory": "/does/not/exist"}, "trial_code_directory"),
        ({"trial_code_directory": "relative"}, "trial_code_directory"),
        ({"experiment_working_directory": "/proc/nowhere"}, "experiment_working_directory"),
        ({"log_level": "verbose"}, "log_level"),
        ({"trial_gpu_number": -1}, "trial_gpu_number"),
        ({"training_services": [{"platform": "moon"}]}, "training_service.platform"),
        ({"tuner": {"name": "Nope"}}, "tuner.name"),
    ],
)
async def test_a_wrong_configuration_is_refused_and_leaves_nothing(
    world: World, change: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        await world.create(port=8080, **change)

    assert refusal.value.field == field
    assert not (world.folder / "experiments").exists()
    assert world.listeners.open == {}
    assert await world.bus.events.experiments() == []


@pytest.mark.claim("platform", 28)
async def test_a_taken_port_is_refused_by_naming_its_holder(world: World) -> None:
    first = await world.create(port=8080)

    with pytest.raises(PortTakenError, match=f"8080 is in use by experiment {first}"):
        await world.create(port=8080)

    folders = [path.name for path in (world.folder / "experiments").iterdir()]
    assert folders == [first]


@pytest.mark.claim("platform", 28)
async def test_a_stopped_experiment_gives_its_port_back(world: World) -> None:
    first = await world.create(port=8080)

    await world.experiments.stop(first)

    assert world.listeners.open == {}
    assert await world.create(port=8080) != first


async def test_a_creation_that_is_sent_twice_creates_one_experiment(world: World) -> None:
    ids = await asyncio.gather(
        world.create(request_id="same"), world.create(request_id="same"), return_exceptions=False
    )

    assert ids[0] == ids[1]
    assert await world.bus.events.experiments() == [ids[0]]


@pytest.mark.claim("platform", 19)
async def test_raising_the_trial_number_revives_an_experiment_that_is_done(world: World) -> None:
    experiment_id = await world.create()
    await world.wait_for_state(experiment_id, DONE)

    view = await world.experiments.update(experiment_id, ConfigChange(max_trial_number=7))
    assert view.state == RUNNING
    assert (view.revision, view.config.max_trial_number) == (1, 7)
    done = await world.wait_for_state(experiment_id, DONE)

    assert dict(done.trial_counts) == {"SUCCEEDED": 7}


async def test_stopping_cancels_live_trials_and_returns_when_they_have_ended(
    holding: World,
) -> None:
    experiment_id = await holding.create()
    await holding.agent.holds(2)
    await holding.wait_for_state(experiment_id, RUNNING)

    view = await holding.experiments.stop(experiment_id)

    assert view.state == STOPPED
    assert view.ended_at.seconds > 0
    assert dict(view.trial_counts) == {"SYS_CANCELED": 2}


async def test_a_stop_that_is_repeated_after_a_resume_stops_nothing(holding: World) -> None:
    experiment_id = await holding.create()
    await holding.agent.holds(1)
    await holding.experiments.stop(experiment_id, "stop-1")
    await holding.experiments.resume(ReopenRequest(experiment_id))

    async with asyncio.timeout(PATIENCE_S):
        again = await holding.experiments.stop(experiment_id, "stop-1")

    assert again.state != STOPPED


@pytest.mark.claim("platform", 30)
async def test_a_resumed_experiment_goes_on_where_it_stopped(world: World) -> None:
    experiment_id = await world.create()
    await world.wait_for_state(experiment_id, DONE)
    await world.experiments.stop(experiment_id)

    await world.experiments.resume(ReopenRequest(experiment_id))
    await world.experiments.update(experiment_id, ConfigChange(max_trial_number=6))
    done = await world.wait_for_state(experiment_id, DONE)

    trials = (await world.manager.trials.list(experiment_id)).items
    assert [trial.sequence_id for trial in trials] == list(range(6))
    assert len({trial.parameter_id for trial in trials}) == 6
    assert done.next_sequence_id == 6


async def test_a_resume_that_tells_no_environment_keeps_the_old_one(world: World) -> None:
    experiment_id = await world.create()
    await world.experiments.stop(experiment_id)
    path = world.folder / "experiments" / experiment_id / "environment.json"

    await world.experiments.resume(ReopenRequest(experiment_id))
    kept = json.loads(path.read_text())
    await world.experiments.stop(experiment_id)
    await world.experiments.resume(ReopenRequest(experiment_id, environment={"A": "b"}))

    assert kept["environment"] == {"HOME": "/home/u"}
    assert json.loads(path.read_text()) == {
        "environment": {"A": "b"},
        "interpreter": "/usr/bin/python3",
    }


@pytest.mark.claim("platform", 31)
async def test_a_viewed_experiment_can_be_read_but_not_changed(world: World) -> None:
    experiment_id = await world.create()
    await world.wait_for_state(experiment_id, DONE)
    await world.experiments.stop(experiment_id)

    opened = await world.experiments.view(ReopenRequest(experiment_id, port=8081))

    assert opened.experiment.state == VIEWED
    assert opened.urls == ["http://127.0.0.1:8081/"]
    assert (await world.manager.trials.list(experiment_id)).total == 5
    with pytest.raises(FailedPreconditionError):
        await world.experiments.update(experiment_id, ConfigChange(trial_concurrency=1))
    with pytest.raises(FailedPreconditionError):
        await world.manager.trials.add(experiment_id, to_value({"x": 1}))


@pytest.mark.claim("platform", 69)
async def test_a_customised_trial_runs_and_a_repeated_request_adds_none(holding: World) -> None:
    experiment_id = await holding.create()
    first, _ = await holding.agent.holds(2)

    added = await holding.manager.trials.add(experiment_id, to_value({"x": 7}), "r0")
    again = await holding.manager.trials.add(experiment_id, to_value({"x": 7}), "r0")
    await holding.agent.exit(first)
    held = await holding.agent.holds(2)

    assert again == added
    assert held[-1].task.parameter_source == "customized"
    assert from_value(held[-1].task.parameters) == {"x": 7}


async def test_large_parameters_reach_the_trial_whole(holding: World) -> None:
    experiment_id = await holding.create(trial_concurrency=1)
    (first,) = await holding.agent.holds(1)
    large = {"x": ["a" * 50] * 20_000}

    await holding.manager.trials.add(experiment_id, to_value(large))
    await holding.agent.exit(first)
    (held,) = await holding.agent.holds(1)
    trial = await holding.manager.trials.get(experiment_id, held.task.trial_id)

    assert from_value(held.task.parameters) == large
    assert from_value(trial.parameters) == large


async def test_a_customised_trial_without_parameters_is_refused(holding: World) -> None:
    experiment_id = await holding.create()

    with pytest.raises(InvalidArgumentError, match="parameters"):
        await holding.manager.trials.add(experiment_id, to_value(None))


async def test_imported_data_reaches_the_algorithm(holding: World) -> None:
    experiment_id = await holding.create()
    await holding.agent.holds(2)
    data = [{"parameter": {"x": 1}, "value": 0.5}]

    await holding.experiments.import_data(experiment_id, to_value(data), "i1")
    await holding.experiments.import_data(experiment_id, to_value(data), "i1")

    events = [
        event
        async for message in holding.bus.events.read(experiment_id)
        for event in event_pb2.EventBatch.FromString(message.payload).events
        if event.HasField("data_imported")
    ]
    assert [from_value(event.data_imported.data) for event in events] == [data]


async def test_a_large_search_space_lies_in_the_byte_store_and_is_shown_whole(
    world: World,
) -> None:
    experiment_id = await world.create()
    space = {f"name-{n}": {"_type": "choice", "_value": ["a" * 50] * 20} for n in range(400)}

    await world.experiments.update(experiment_id, ConfigChange(search_space=to_value(space)))
    view = (await world.experiments.get(experiment_id)).experiment

    assert from_value(view.config.search_space) == space
    sizes = [len(m.payload) async for m in world.bus.events.read(experiment_id)]
    assert max(sizes) < 100_000


@pytest.mark.claim("platform", 25)
@pytest.mark.claim("platform", 61)
async def test_exports_hold_trials_with_a_result_and_their_intermediates(world: World) -> None:
    experiment_id = await world.create()
    await world.wait_for_state(experiment_id, DONE)

    page = await world.experiments.export(experiment_id, include_intermediates=True, page_size=3)

    assert (len(page.items), bool(page.next_token), page.total) == (3, True, 5)
    assert from_value(page.items[2].parameters) == {"x": 2}
    assert from_value(page.items[2].value) == 2
    assert [from_value(value) for value in page.items[2].intermediates] == [1.0]


async def test_metrics_are_those_of_the_log_and_grow_with_it(world: World) -> None:
    experiment_id = await world.create(max_trial_number=2)
    await world.wait_for_state(experiment_id, DONE)
    before = await world.manager.trials.metrics(experiment_id)

    await world.experiments.update(experiment_id, ConfigChange(max_trial_number=3))
    await world.wait_for_state(experiment_id, DONE)
    after = await world.manager.trials.metrics(experiment_id)

    assert (before.total, after.total) == (4, 6)


async def test_events_can_be_followed_from_any_place(world: World) -> None:
    experiment_id = await world.create()
    await world.wait_for_state(experiment_id, DONE)

    every = [x async for x in world.experiments.follow_events(experiment_id, follow=False)]
    middle = every[len(every) // 2].position
    rest = [x async for x in world.experiments.follow_events(experiment_id, middle, follow=False)]

    assert every[0].event.HasField("experiment_created")
    assert rest == every[len(every) // 2 + 1 :]


@pytest.mark.claim("platform", 84)
async def test_secrets_are_masked_wherever_the_configuration_is_shown(world: World) -> None:
    options = to_value(
        {"machines": [{"password": "hunter2", "port": 22}], "accessKeySecret": "hunter3"}
    )
    experiment_id = await world.create(
        training_services=[{"platform": "local", "options": options}]
    )

    view = (await world.experiments.get(experiment_id)).experiment
    events = [x async for x in world.experiments.follow_events(experiment_id, follow=False)]

    log = world.folder / "experiments" / experiment_id / "log" / "nnimanager.log"
    shown = str(view) + "".join(map(str, events)) + log.read_text()
    assert "hunter2" not in shown
    assert "hunter3" not in shown
    assert "22" in str(view)


async def test_a_log_is_followed_until_the_experiment_is_stopped(holding: World) -> None:
    experiment_id = await holding.create()
    await holding.agent.holds(2)
    source = experiment_service_pb2.LOG_SOURCE_MANAGER

    async def read() -> bytes:
        feed = holding.experiments.follow_logs(experiment_id, source, follow=True)
        return b"".join([chunk.data async for chunk in feed])

    reading = asyncio.ensure_future(read())
    await holding.experiments.stop(experiment_id)
    text = (await asyncio.wait_for(reading, 20)).decode()

    assert "Experiment is STOPPED" in text
    assert text.startswith("[")


@pytest.mark.parametrize("offset", [10_000_000, 2**53, 2**63 - 1])
async def test_behind_the_end_of_a_log_there_is_nothing(world: World, offset: int) -> None:
    experiment_id = await world.create()
    source = experiment_service_pb2.LOG_SOURCE_MANAGER
    await world.wait_for_state(experiment_id, DONE)

    feed = world.experiments.follow_logs(experiment_id, source, offset=offset)

    assert [piece async for piece in feed] == []


async def test_a_missing_log_is_a_clear_error(world: World) -> None:
    experiment_id = await world.create()
    feed = world.experiments.follow_logs(
        experiment_id, experiment_service_pb2.LOG_SOURCE_DISPATCHER
    )

    with pytest.raises(NotFoundError, match=r"dispatcher\.log"):
        await anext(feed)


@pytest.mark.claim("platform", 32)
async def test_a_folder_that_was_copied_from_a_running_experiment_is_stopped_elsewhere(
    holding: World, tmp_path: Path
) -> None:
    experiment_id = await holding.create(port=8080)
    await holding.agent.holds(2)
    await holding.wait_for_state(experiment_id, RUNNING)
    copy = tmp_path / "copy"
    shutil.copytree(holding.folder / "experiments" / experiment_id, copy)

    async with InMemoryBus() as bus, world_on(bus, tmp_path / "other") as elsewhere:
        reopening = ReopenRequest(experiment_id, experiment_directory=str(copy))
        with serving(Caller(SERVICES_NAME, Role.ADMIN, "token")):  # the copy is below no root
            opened = await elsewhere.experiments.resume(reopening)
        elsewhere.follow(experiment_id)
        done = await elsewhere.wait_for_state(experiment_id, DONE)

    assert opened.experiment.directory == str(copy)
    assert done.trial_counts["FAILED"] == 2
    assert sum(done.trial_counts.values()) == 5


async def test_the_folder_of_another_experiment_is_refused(world: World, tmp_path: Path) -> None:
    experiment_id = await world.create()
    folder = world.folder / "experiments" / experiment_id

    with pytest.raises(InvalidArgumentError, match=f"of experiment {experiment_id}"):
        await world.experiments.view(ReopenRequest("other123", experiment_directory=str(folder)))
    with pytest.raises(NotFoundError):
        await world.experiments.view(ReopenRequest("other123", experiment_directory=str(tmp_path)))
    with pytest.raises(InvalidArgumentError, match="absolute"):
        await world.experiments.view(ReopenRequest("other123", experiment_directory="here"))


@pytest.mark.claim("platform", 48)
async def test_lists_hide_stopped_experiments_unless_asked(world: World) -> None:
    first, second = await world.create(), await world.create()
    await world.experiments.stop(first)

    shown = [view.id for view in (await world.experiments.list()).items]
    every = [view.id for view in (await world.experiments.list(include_stopped=True)).items]

    assert shown == [second]
    assert sorted(every) == sorted([first, second])


async def test_pages_of_experiments_stay_right_when_new_ones_come(world: World) -> None:
    made = [await world.create() for _ in range(3)]
    first = await world.experiments.list(page_size=2)
    await world.create()

    second = await world.experiments.list(page_size=2, page_token=first.next_token)

    assert sorted(view.id for view in first.items + second.items) == sorted(made)
    assert second.next_token == ""
    with pytest.raises(InvalidArgumentError, match="page_token"):
        await world.experiments.list(page_token="x-y")


@pytest.mark.claim("platform", 51)
async def test_deleting_removes_log_and_folder_of_a_stopped_experiment_only(world: World) -> None:
    experiment_id = await world.create()
    with pytest.raises(FailedPreconditionError, match="stop it first"):
        await world.experiments.delete(experiment_id)
    await world.experiments.stop(experiment_id)

    await world.experiments.delete(experiment_id, "d1")
    await world.experiments.delete(experiment_id, "d1")

    assert not (world.folder / "experiments" / experiment_id).exists()
    assert await world.bus.events.experiments() == []
    with pytest.raises(NotFoundError):
        await world.experiments.get(experiment_id)


async def test_deleting_removes_the_copy_of_annotated_code_and_no_other_code(world: World) -> None:
    copy = world.folder / "nni" / "annotation" / "abc"
    copy.mkdir(parents=True)
    copied = await world.create(trial_code_directory=str(copy), use_annotation=True)
    plain = await world.create()

    for experiment_id in (copied, plain):
        await world.experiments.stop(experiment_id)
        await world.experiments.delete(experiment_id)

    assert not copy.exists()
    assert copy.parent.exists()
    assert world.folder.exists()


async def test_a_client_that_goes_away_finds_its_experiment_by_the_request(world: World) -> None:
    new = NewExperiment(world.config(), "lost-call", 0, "", {}, "")
    call = asyncio.ensure_future(world.experiments.create(new))
    for _ in range(3):  # some way into the call
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)

    opened = await world.experiments.create(new)

    known = [view.id for view in (await world.experiments.list()).items]
    assert known == [opened.experiment.id]


async def test_tasks_and_orders_tell_how_far_their_manager_has_read_the_log(holding: World) -> None:
    orders = await holding.bus.signals.subscribe(subjects.control_subject("agent-1"))
    experiment_id = await holding.create(trial_concurrency=1)
    (held,) = await holding.agent.holds(1)
    scheduled_at = held.task.log_sequence

    await holding.experiments.stop(experiment_id, "")

    async with asyncio.timeout(PATIENCE_S):
        control = task_pb2.RunnerControl.FromString((await anext(orders)).payload)
    assert control.HasField("stop_trial")
    assert 0 < scheduled_at < control.log_sequence
    await orders.aclose()


async def test_managers_of_one_epoch_do_not_take_each_others_appends_for_their_own(
    holding: World,
) -> None:
    experiment_id = await holding.create(trial_concurrency=1)
    await holding.agent.holds(1)
    async with (
        manager_on(holding.bus, holding.folder, InMemoryListeners()) as one,
        manager_on(holding.bus, holding.folder, InMemoryListeners()) as another,
    ):
        first = await one.registry.find(experiment_id)
        second = await another.registry.find(experiment_id)
        assert first.epoch == second.epoch
        await first.submit(RecordedCommand(Update(trial_concurrency=3), "", "Update"))

        with pytest.raises(AbortedError):
            await second.submit(RecordedCommand(Update(trial_concurrency=4), "", "Update"))
