"""Permissions of the bus users, checked at a real server."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from svc_common import subjects
from svc_common.bus_users import main, write_users
from svc_common.errors import PermissionDeniedError, UnauthenticatedError
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_connection import Connection
from svc_common.messaging.nats_settings import NatsSettings
from tests.support.bus_users import connected, login
from tests.support.servers import NatsServer, nats_server

RUNNERS = {"box-1": "local", "box-2": "local", "box-3": "gpu", "nni-1": "exp-e7"}
REFUSED = "forbids this user to publish"
ALGORITHMS = ("dispatcher", "compressor", "nas")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("users")
    write_users(made, ["shared"], RUNNERS)
    return made


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    place = tmp_path_factory.mktemp("bus")
    (place / "users.conf").write_text((folder / "users.conf").read_text())
    with nats_server(place, more="include users.conf\n") as started:
        yield started


@asynccontextmanager
async def bus(server: NatsServer, folder: Path, user: str) -> AsyncIterator[NatsBus]:
    settings = replace(login(folder, server.url, user), owns_streams=user == "manager")
    async with asyncio.timeout(60), NatsBus(settings) as opened:
        yield opened


@pytest.fixture
async def manager(server: NatsServer, folder: Path) -> AsyncIterator[NatsBus]:
    async with bus(server, folder, "manager") as opened:
        yield opened


async def test_a_trial_runs_from_start_to_end_with_the_rights_of_each(
    server: NatsServer, folder: Path, manager: NatsBus
) -> None:
    async with AsyncExitStack() as stack:
        dispatcher = await stack.enter_async_context(bus(server, folder, "dispatcher"))
        runner = await stack.enter_async_context(bus(server, folder, "box-1"))
        controls = await runner.signals.subscribe(subjects.control_subject("box-1"))
        presences = await manager.signals.subscribe(subjects.ALL_PRESENCES)
        assert runner.signals.publish(subjects.presence_subject("box-1"), b"here")
        assert (await anext(presences)).payload == b"here"
        followed = dispatcher.events.follow_all()
        await manager.events.append("e1", b"batch", expected_sequence=0, epoch=1, append_id="a")
        assert (await anext(followed)).payload == b"batch"
        last = await dispatcher.events.last("e1")
        await dispatcher.inbox.publish("e1", "dispatcher", b"parameters", message_id="d1")

        feed = await runner.tasks.pull("local")
        feed.grant(1)
        await manager.tasks.publish("local", b"task", message_id="t1")
        task = await anext(aiter(feed))
        await runner.tasks.in_progress(task.ack_subject)
        await runner.inbox.publish("e1", "box-1", b"started", message_id="r1")
        assert runner.log_lines.publish("e1", "t1", b"output")
        manager.signals.publish(subjects.control_subject("box-1"), b"stop")
        assert (await anext(controls)).payload == b"stop"
        await runner.tasks.ack(task.ack_subject)
        await feed.aclose()

        inbox = manager.inbox.follow("e1")
        got = [message.payload for message in await anext(inbox)]
        lines = manager.log_lines.follow("e1", "t1")

        assert last is not None
        assert set(got) <= {b"parameters", b"started"}
        assert (await anext(lines)).payload == b"output"


async def test_agent_that_comes_before_the_manager_gets_its_task(
    server: NatsServer, folder: Path, manager: NatsBus
) -> None:
    async with bus(server, folder, "box-3") as runner:
        feed = await runner.tasks.pull("gpu")
        feed.grant(1)
        await runner.wait_connected()
        await manager.tasks.publish("gpu", b"task", message_id="g1")

        task = await anext(aiter(feed))

        assert task.payload == b"task"
        await runner.tasks.ack(task.ack_subject)


async def test_dispatcher_that_comes_before_the_manager_waits_for_the_logs(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "users.conf").write_text((folder / "users.conf").read_text())
    with nats_server(tmp_path, more="include users.conf\n") as fresh:
        async with bus(fresh, folder, "dispatcher") as dispatcher:
            asked = asyncio.create_task(dispatcher.events.experiments())
            followed = dispatcher.events.follow_all()
            first = asyncio.ensure_future(anext(followed))
            async with bus(fresh, folder, "manager") as manager:
                await manager.events.append(
                    "e1", b"batch", expected_sequence=0, epoch=1, append_id="a"
                )
                assert (await first).payload == b"batch"
                assert await asked in ([], ["e1"])
                await followed.aclose()


@pytest.mark.parametrize(
    "subject",
    [
        subjects.control_subject("box-2"),
        subjects.ALL_CONTROLS,
        subjects.ALL_EVENTS,
        subjects.ALL_LOGS,
        subjects.log_subject("e1", "t1"),
        subjects.ALL_INBOXES,
        subjects.ALL_TASKS,
        subjects.ALL_PRESENCES,
        "nni.>",
        ">",
        "_INBOX.>",
        "_INBOX.manager.>",
        "_INBOX.box-2.>",
        "$JS.>",
        "$SYS.>",
    ],
)
async def test_agent_listens_to_its_own_orders_only(
    server: NatsServer, folder: Path, manager: NatsBus, subject: str
) -> None:
    async with bus(server, folder, "box-1") as runner:
        with pytest.raises(PermissionDeniedError, match="listen"):
            await runner.signals.subscribe(subject)


@pytest.mark.parametrize(
    "subject",
    [
        subjects.event_subject("e1"),
        subjects.inbox_subject("e1", "box-2"),
        subjects.inbox_subject("e1", "dispatcher"),
        subjects.task_subject("local"),
        "$JS.API.STREAM.CREATE.EXPERIMENTS",
        "$JS.API.STREAM.UPDATE.EXPERIMENTS",
        "$JS.API.STREAM.PURGE.EXPERIMENTS",
        "$JS.API.STREAM.DELETE.EXPERIMENTS",
        "$JS.API.STREAM.MSG.GET.EXPERIMENTS",
        "$JS.API.STREAM.MSG.GET.INBOX",
        "$JS.API.STREAM.MSG.DELETE.TASKS",
        "$JS.API.DIRECT.GET.LOGS",
        "$JS.API.STREAM.MSG.GET.LOGS",
        "$JS.API.CONSUMER.CREATE.LOGS",
        "$JS.API.CONSUMER.CREATE.TASKS",
        "$JS.API.CONSUMER.DURABLE.CREATE.TASKS.pool-local",
        "$JS.API.CONSUMER.DELETE.TASKS.pool-local",
        "$JS.API.CONSUMER.MSG.NEXT.TASKS.pool-gpu",
        "$JS.API.INFO",
    ],
)
async def test_agent_cannot_write_or_ask_what_is_not_its_own(
    server: NatsServer, folder: Path, manager: NatsBus, subject: str
) -> None:
    async with connected(server, folder, "box-1") as connection:
        with pytest.raises(PermissionDeniedError, match=REFUSED):
            await connection.request(subject, b"{}", timeout_s=60.0)


@pytest.mark.parametrize("source", ["dispatcher", "nas", "compressor"])
async def test_agents_that_share_a_user_cannot_speak_for_an_algorithm(
    server: NatsServer, folder: Path, manager: NatsBus, source: str
) -> None:
    async with bus(server, folder, "pool-shared") as agents:
        await agents.inbox.publish("e4", "any-box", b"report", message_id="1")
        with pytest.raises(PermissionDeniedError, match=REFUSED):
            await agents.inbox.publish("e4", source, b"forged", message_id="2")


@pytest.mark.parametrize("kind", ["control", "presence"])
async def test_agent_cannot_speak_in_the_name_of_another(
    server: NatsServer, folder: Path, manager: NatsBus, kind: str
) -> None:
    heard = await manager.signals.subscribe(f"nni.{kind}.box-2")
    async with bus(server, folder, "box-1") as intruder, bus(server, folder, "box-2") as other:
        intruder.signals.publish(f"nni.{kind}.box-2", b"forged")
        with pytest.raises(PermissionDeniedError):
            await intruder.signals.subscribe("nni.>")  # a round trip: the forgery has been handled
        if kind == "presence":
            other.signals.publish("nni.presence.box-2", b"mine")
        else:
            manager.signals.publish("nni.control.box-2", b"mine")

        assert (await anext(heard)).payload == b"mine"


async def test_a_refused_append_leaves_the_log_as_it_was(
    server: NatsServer, folder: Path, manager: NatsBus
) -> None:
    await manager.events.append("e2", b"batch", expected_sequence=0, epoch=1, append_id="a")
    before = await manager.events.last("e2")
    for user in ("box-1", *ALGORITHMS, "pool-shared"):
        async with bus(server, folder, user) as intruder:
            with pytest.raises(PermissionDeniedError, match=REFUSED):
                await intruder.events.append(
                    "e2",
                    b"forged",
                    expected_sequence=before.sequence if before else 0,
                    epoch=9,
                    append_id="f",
                )

    assert await manager.events.last("e2") == before


@pytest.mark.parametrize(
    "subject",
    ["$JS.API.STREAM.MSG.GET.INBOX", "$JS.API.CONSUMER.CREATE.TASKS", "$JS.API.STREAM.PURGE.INBOX"],
)
@pytest.mark.parametrize("user", ALGORITHMS)
async def test_service_reads_nothing_but_logs(
    server: NatsServer, folder: Path, manager: NatsBus, subject: str, user: str
) -> None:
    async with connected(server, folder, user) as connection:
        with pytest.raises(PermissionDeniedError, match=REFUSED):
            await connection.request(subject, b"{}", timeout_s=60.0)


@pytest.mark.parametrize("user", ALGORITHMS)
async def test_service_reads_logs_and_reports_in_its_own_name(
    server: NatsServer, folder: Path, manager: NatsBus, user: str
) -> None:
    experiment = f"read-by-{user}"
    await manager.events.append(experiment, b"batch", expected_sequence=0, epoch=1, append_id="a")
    async with bus(server, folder, user) as service:
        read = [message.payload async for message in service.events.read(experiment, 1)]
        await service.inbox.publish(experiment, user, b"parameters", message_id=f"own-{user}")
        for other in set(ALGORITHMS) - {user}:
            with pytest.raises(PermissionDeniedError, match=REFUSED):
                await service.inbox.publish(experiment, other, b"forged", message_id=f"not-{user}")

    assert read == [b"batch"]
    inbox = manager.inbox.follow(experiment)
    assert [message.payload for message in await anext(inbox)] == [b"parameters"]


async def test_agent_of_an_experiments_pool_reports_for_that_experiment_only(
    server: NatsServer, folder: Path, manager: NatsBus
) -> None:
    await manager.tasks.open_pool("exp-e7")
    async with bus(server, folder, "nni-1") as agent:
        await agent.inbox.publish("e7", "nni-1", b"report", message_id="own")
        assert agent.log_lines.publish("e7", "t1", b"output")
        with pytest.raises(PermissionDeniedError, match=REFUSED):
            await agent.inbox.publish("e1", "nni-1", b"forged", message_id="other")
        feed = await agent.tasks.pull("exp-e7")
        await feed.aclose()
    async with connected(server, folder, "nni-1") as connection:
        for foreign in (
            subjects.log_subject("e1", "t1"),
            subjects.inbox_subject("e7", "box-1"),
            "nni.api.CONSUMER.MSG.NEXT.TASKS.pool-local",
            "$JS.ACK.TASKS.pool-local.1.1.1.1.0",
        ):
            with pytest.raises(PermissionDeniedError, match=REFUSED):
                await connection.request(foreign, b"{}", timeout_s=60.0)


async def test_fleet_reads_needs_and_presences_and_publishes_states_and_orders(
    server: NatsServer, folder: Path, manager: NatsBus
) -> None:
    need, state = subjects.pool_need_subject("p"), subjects.pool_state_subject("p")
    await manager.last_values.publish(need, b"before")
    async with bus(server, folder, "fleet") as fleet, bus(server, folder, "box-1") as agent:
        needs = fleet.last_values.follow(subjects.ALL_POOL_NEEDS)
        assert (await anext(needs)).payload == b"before"
        await manager.last_values.publish(need, b"later")
        assert (await anext(needs)).payload == b"later"
        await fleet.last_values.publish(state, b"two agents")
        states = manager.last_values.follow(subjects.ALL_POOL_STATES)
        assert (await anext(states)).payload == b"two agents"
        presences = await fleet.signals.subscribe(subjects.ALL_PRESENCES)
        assert agent.signals.publish(subjects.presence_subject("box-1"), b"here")
        assert (await anext(presences)).subject == subjects.presence_subject("box-1")
        controls = await agent.signals.subscribe(subjects.control_subject("box-1"))
        assert fleet.signals.publish(subjects.control_subject("box-1"), b"drain")

        assert (await anext(controls)).payload == b"drain"

        await needs.aclose()


@pytest.mark.parametrize(
    "subject",
    [
        subjects.pool_need_subject("p"),
        subjects.event_subject("e1"),
        subjects.inbox_subject("e1", "fleet"),
        subjects.task_subject("local"),
        subjects.log_subject("e1", "t1"),
        subjects.presence_subject("box-1"),
        "$JS.API.STREAM.PURGE.POOLS",
        "nni.api.STREAM.PURGE.POOLS",
        "nni.api.DIRECT.GET.EXPERIMENTS",
    ],
)
async def test_fleet_publishes_nothing_else(
    server: NatsServer, folder: Path, manager: NatsBus, subject: str
) -> None:
    async with connected(server, folder, "fleet") as connection:
        with pytest.raises(PermissionDeniedError, match=REFUSED):
            await connection.request(subject, b"{}", timeout_s=60.0)


@pytest.mark.parametrize("user", ["box-1", "pool-shared", *ALGORITHMS])
async def test_pools_are_for_manager_and_fleet_only(
    server: NatsServer, folder: Path, manager: NatsBus, user: str
) -> None:
    await manager.last_values.publish(subjects.pool_need_subject("secret"), b"need")
    async with bus(server, folder, user) as intruder:
        for subject in (subjects.pool_need_subject("p"), subjects.pool_state_subject("p")):
            with pytest.raises(PermissionDeniedError, match=REFUSED):
                await intruder.last_values.publish(subject, b"forged")
        with pytest.raises(PermissionDeniedError, match="listen"):
            await intruder.signals.subscribe(subjects.pool_copies(subjects.ALL_POOLS))
    async with connected(server, folder, user) as connection:
        for prefix in (subjects.JETSTREAM_API, subjects.IMPORTED_API):
            with pytest.raises(PermissionDeniedError, match=REFUSED):
                await connection.request(f"{prefix}.DIRECT.GET.POOLS", b"{}", timeout_s=60.0)


@pytest.mark.parametrize(
    "shown",
    [
        NatsSettings(""),
        NatsSettings("", token="x"),
        NatsSettings("", user="manager", password="x"),
        NatsSettings("", user="root"),
    ],
)
async def test_strangers_are_turned_away(server: NatsServer, shown: NatsSettings) -> None:
    connection = Connection(replace(shown, url=server.url))

    with pytest.raises(UnauthenticatedError):
        async with asyncio.timeout(60):
            await connection.open()


def test_files_are_for_their_owner_and_passwords_are_kept(tmp_path: Path) -> None:
    assert main([str(tmp_path / "bus"), "--pool", "local", "--runner", "box=gpu"]) == 0
    files = {path.name: path for path in (tmp_path / "bus").iterdir()}
    before = files["box.env"].read_text()

    assert main([str(tmp_path / "bus"), "--runner", "box=gpu", "--runner", "new=gpu"]) == 0

    assert set(files) == {
        "users.conf",
        "manager.env",
        "dispatcher.env",
        "compressor.env",
        "nas.env",
        "fleet.env",
        "pool-local.env",
        "box.env",
    }
    assert {path.stat().st_mode & 0o777 for path in files.values()} == {0o600}
    assert files["box.env"].read_text() == before
    assert "NNI_RUNNER_ID=box" in before
    assert '"new"' in files["users.conf"].read_text()


@pytest.mark.parametrize(
    "word",
    ["box", "b.x=local", "box=a b", "*=local", ">=local", "dispatcher=local", "compressor=local"],
)
def test_names_that_could_widen_a_subject_are_refused(
    tmp_path: Path, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path), "--runner", word]) == 1
    assert "must" in capsys.readouterr().err
