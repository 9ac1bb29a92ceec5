"""Answers and deliveries of the bus server, which have rights of its own, cannot be misdirected."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from svc_common import subjects
from svc_common.bus_users import write_users
from svc_common.errors import PermissionDeniedError
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_connection import Connection
from svc_common.messaging.nats_jetstream import JetStream
from svc_common.messaging.permissions import (
    BusUser,
    compressor_user,
    dispatcher_user,
    fleet_user,
    manager_user,
    nas_user,
    runner_user,
)
from tests.support.bus_users import connected, login
from tests.support.servers import NatsServer, nats_server

STREAMS = (
    subjects.STREAM_EXPERIMENTS,
    subjects.STREAM_INBOX,
    subjects.STREAM_TASKS,
    subjects.STREAM_LOGS,
    subjects.STREAM_POOLS,
)
USERS = {
    "box-1": runner_user("box-1", "local", "box-1"),
    "nni-1": runner_user("nni-1", "exp-own", "nni-1"),
    "pool-shared": runner_user("pool-shared", "shared"),
    "dispatcher": dispatcher_user(),
    "compressor": compressor_user(),
    "nas": nas_user(),
    "fleet": fleet_user(),
}
POOLS = ("local", "shared", "gpu", "exp-own")
CONSUMERS = (
    *(subjects.pool_consumer(pool) for pool in POOLS),
    *(subjects.retry_consumer(pool) for pool in POOLS),
)
_OF_A_STREAM = [
    "STREAM.CREATE",
    "STREAM.UPDATE",
    "STREAM.DELETE",
    "STREAM.PURGE",
    "STREAM.INFO",
    "STREAM.SNAPSHOT",
    "STREAM.RESTORE",
    "STREAM.MSG.GET",
    "STREAM.MSG.DELETE",
    "STREAM.PEER.REMOVE",
    "STREAM.LEADER.STEPDOWN",
    "CONSUMER.CREATE",
    "CONSUMER.NAMES",
    "CONSUMER.LIST",
    "DIRECT.GET",
]
_OF_A_CONSUMER = [
    "CONSUMER.CREATE",
    "CONSUMER.DURABLE.CREATE",
    "CONSUMER.DELETE",
    "CONSUMER.INFO",
    "CONSUMER.PAUSE",
    "CONSUMER.RESET",
    "CONSUMER.UNPIN",
    "CONSUMER.LEADER.STEPDOWN",
    "CONSUMER.MSG.NEXT",
]
OPERATIONS = (
    "INFO",
    "STREAM.NAMES",
    "STREAM.LIST",
    "META.LEADER.STEPDOWN",
    "SERVER.REMOVE",
    "ACCOUNT.PURGE.NNI",
    "ACCOUNT.STREAM.MOVE.NNI.EXPERIMENTS",
    "ACCOUNT.STREAM.CANCEL_MOVE.NNI.EXPERIMENTS",
    *(f"{operation}.{stream}" for operation in _OF_A_STREAM for stream in STREAMS),
    *(
        f"{operation}.{stream}.{consumer}"
        for operation in _OF_A_CONSUMER
        for stream in STREAMS
        for consumer in CONSUMERS
    ),
    "CONSUMER.CREATE.EXPERIMENTS.x.nni.experiment.*.event",
    "CONSUMER.CREATE.TASKS.x.nni.task.local",
    "DIRECT.GET.EXPERIMENTS.nni.experiment.e.event",
    "DIRECT.GET.POOLS.nni.pool.local.state",
    "CONSUMER.CREATE.POOLS.x.nni.pool.*.need",
)
"""Every operation of the API of JetStream, applied to the streams and consumers that exist."""
TARGETS = (
    subjects.event_subject("e"),
    subjects.event_subject("forged"),
    subjects.inbox_subject("e", "dispatcher"),
    subjects.inbox_subject("e", "compressor"),
    subjects.inbox_subject("e", "nas"),
    subjects.inbox_subject("e", "box-2"),
    subjects.task_subject("local"),
    subjects.task_subject("gpu"),
    subjects.retry_subject("gpu"),
    subjects.log_subject("e", "t"),
    subjects.control_subject("box-1"),
    subjects.control_subject("box-2"),
    subjects.presence_subject("box-2"),
    subjects.live_subject("e"),
    subjects.copy_subject("e"),
    subjects.pool_need_subject("local"),
    subjects.pool_state_subject("local"),
    subjects.pool_copies("nni.pool.local.need"),
    subjects.manager_subject("m"),
    "_INBOX.manager.probe",
    "_INBOX.box-2.probe",
    "_INBOX.dispatcher.probe",
    "_INBOX.compressor.probe",
    "$JS.ACK.TASKS.pool-gpu.1.2.1.1.0",
    "$JS.ACK.TASKS.pool-local.1.1.1.1.0",
    "$JS.FC.EXPERIMENTS.x.y",
    "$JS.SNAPSHOT.RESTORE.EXPERIMENTS.x",
    "$SYS.REQ.SERVER.PING",
    "$SYS.REQ.ACCOUNT.NNI.CONNZ",
)
"""Subjects of the manager's account that no other user may make the server send to."""
LISTENERS = {
    "manager": ("nni.control.*", "nni.live.*", "nni.manager.*", "nni.presence.*"),
    "box-2": ("_INBOX.box-2.probe", "nni.control.box-2"),
}


class World:
    """Server with all users, and connections of those whose messages an attacker might forge."""

    def __init__(self, server: NatsServer, folder: Path, manager: NatsBus) -> None:
        self.server = server
        self.folder = folder
        self.manager = manager
        self.received: list[str] = []
        self.listeners: list[Connection] = []

    async def listen(self, stack: AsyncExitStack) -> None:
        for user, patterns in LISTENERS.items():
            opened = connected(self.server, self.folder, user)
            connection = await stack.enter_async_context(opened)
            for pattern in (*patterns, f"_INBOX.{user}.probe"):
                connection.subscribe(pattern, lambda subject, *_: self.received.append(subject))
            await connection.flush()
            self.listeners.append(connection)

    async def state(self) -> dict[str, object]:
        """Return all that an attacker must not change: configurations, messages, consumers."""
        stream_api = JetStream(self.listeners[0])
        found: dict[str, object] = {}
        for stream in STREAMS:
            info = await stream_api.api(f"STREAM.INFO.{stream}", {"subjects_filter": ">"})
            messages = info["state"].get("subjects") or {}
            found[stream] = (info["config"], info["state"]["consumer_count"])
            found[f"messages of {stream}"] = {
                subject: count for subject, count in messages.items() if subject not in OWN
            }
        for name in ("pool-gpu", "retry-gpu"):
            consumer = await stream_api.api(f"CONSUMER.INFO.TASKS.{name}")
            found[f"tasks of {name} held in another pool"] = consumer["num_ack_pending"]
        for connection in self.listeners:
            await connection.flush()
        return {**found, "received": sorted(self.received)}


OWN = {
    subjects.log_subject("own", "own"),
    subjects.pool_state_subject("own"),
    subjects.pool_problems_subject("own"),
    subjects.pool_front_subject("own"),
    *(subjects.inbox_subject("own", user) for user in USERS),
}
"""Subjects to which the attackers may publish."""


@pytest.fixture
async def world(folder: Path, server: NatsServer) -> AsyncIterator[World]:
    async with asyncio.timeout(60), AsyncExitStack() as stack:
        manager = NatsBus(login(folder, server.url, "manager"))
        await stack.enter_async_context(manager)
        made = World(server, folder, manager)
        await made.listen(stack)
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("users")
    write_users(
        made, ["shared"], {"box-1": "local", "box-2": "local", "box-3": "gpu", "nni-1": "exp-own"}
    )
    return made


@pytest.fixture
def server(folder: Path, tmp_path: Path) -> Iterator[NatsServer]:
    (tmp_path / "users.conf").write_text((folder / "users.conf").read_text())
    with nats_server(tmp_path, more="include users.conf\n") as started:
        yield started


async def fill(manager: NatsBus, world: World) -> None:
    """Give each stream a message, and an agent of another pool a task that it holds."""
    await manager.events.append("e", b"batch", expected_sequence=0, epoch=1, append_id="a")
    await manager.inbox.publish("e", "dispatcher", b"parameters", message_id="1")
    manager.log_lines.publish("e", "t", b"output")
    await manager.last_values.publish(subjects.pool_need_subject("local"), b"need")
    for ahead in (False, True):
        for pool in POOLS:
            await manager.tasks.publish(pool, b"", message_id=f"{pool} {ahead}", ahead=ahead)
    async with NatsBus(
        replace(login(world.folder, world.server.url, "box-3"), owns_streams=False)
    ) as agent:
        feed = await agent.tasks.pull("gpu")
        feed.grant(2)
        for _ in range(2):
            await anext(aiter(feed))


def requests_of(user: BusUser) -> Iterator[tuple[str, bytes]]:
    """Yield each kind of request that the user may make, with an answer that suits an attack."""
    last = json.dumps({"last_by_subj": subjects.event_subject("e")}).encode()
    nothing = json.dumps({"batch": 1, "no_wait": True, "seq": 10**9, "next_by_subj": ">"}).encode()
    for subject in user.publish:
        if "MSG.NEXT" in subject:
            yield subject, nothing  # the status has no payload, which suits STREAM.DELETE
        elif "DIRECT.GET" in subject:
            yield subject, nothing
            yield subject, last
        elif subject.startswith("$JS.ACK."):
            # An answer without payload, for the task that an attack before has pulled.
            sequence = CONSUMERS.index(subject.split(".")[3]) + 1
            yield subject.replace(">", f"1.{sequence}.1.1.0"), b"+WPI"
        elif "STREAM." in subject:
            yield subject, last
        elif subject.startswith("nni.inbox"):
            # Agents of a pool may use any id, so also that of this user.
            yield subjects.inbox_subject("own", user.name), b"report"
        elif subject.startswith(("nni.presence.", "nni.log.", "nni.pool.", "nni.control.")):
            yield subject.replace("*", "own"), b""


@pytest.mark.parametrize("name", USERS)
async def test_answer_goes_nowhere_but_to_the_user_that_asked(world: World, name: str) -> None:
    await fill(world.manager, world)
    user = USERS[name]
    replies = (*TARGETS, *(f"$JS.API.{operation}" for operation in OPERATIONS))
    before = await world.state()

    async with connected(world.server, world.folder, name) as attacker:
        for subject, payload in requests_of(user):
            if subject.startswith(("nni.presence.", "nni.control.")):
                continue  # it has no answer
            for reply in replies:
                attacker.publish(subject, payload, reply=reply)
            # The last answer comes after those of the attacks.
            await attacker.request(subject, payload, timeout_s=60.0)
        await attacker.flush()

    assert await world.state() == before


@pytest.mark.parametrize("name", USERS)
async def test_task_cannot_be_delivered_as_something_else(world: World, name: str) -> None:
    user = USERS[name]
    pulls = [subject for subject in user.publish if "MSG.NEXT" in subject]
    await fill(world.manager, world)
    before = await world.state()
    waiting = json.dumps({"batch": 1, "expires": 1_000_000_000}).encode()

    async with connected(world.server, world.folder, name) as attacker:
        for subject in pulls:
            for target in TARGETS:
                attacker.publish(subject, waiting, reply=target)
        await attacker.flush()
        after = await world.state()

    assert after == before


@pytest.mark.parametrize("name", USERS)
@pytest.mark.parametrize("prefix", [subjects.JETSTREAM_API, subjects.IMPORTED_API])
async def test_operation_that_is_not_the_users_is_refused(
    world: World, name: str, prefix: str
) -> None:
    allowed = set(USERS[name].publish)
    refused = [f"{prefix}.{one}" for one in OPERATIONS if f"{prefix}.{one}" not in allowed]

    async with connected(world.server, world.folder, name) as attacker:
        asked = [attacker.request(subject, b"", timeout_s=30.0) for subject in refused]
        answers = await asyncio.gather(*asked, return_exceptions=True)

    assert len(refused) > 100
    assert {type(answer) for answer in answers} == {PermissionDeniedError}


@pytest.mark.parametrize("name", USERS)
async def test_subject_of_another_user_is_refused(world: World, name: str) -> None:
    user = USERS[name]
    own = {subject for subject in TARGETS if _matches(user.publish, subject)}
    own -= {subject for subject in TARGETS if _matches(user.never_publish, subject)}

    async with connected(world.server, world.folder, name) as attacker:
        for target in TARGETS:
            if target not in own:
                with pytest.raises(PermissionDeniedError, match="to publish"):
                    await attacker.request(target, b"+ACK", timeout_s=30.0)

    never = ("nni.experiment", "$SYS", *(() if name == "fleet" else ("nni.control",)))
    assert not any(target.startswith(never) for target in own)


@pytest.mark.parametrize(
    "operation",
    [
        "CONSUMER.CREATE.EXPERIMENTS",
        "CONSUMER.CREATE.EXPERIMENTS.x",
        "CONSUMER.CREATE.EXPERIMENTS.x.nni.experiment.*.event",
        "CONSUMER.DURABLE.CREATE.EXPERIMENTS.x",
    ],
)
@pytest.mark.parametrize("name", ["dispatcher", "compressor", "nas", "fleet"])
async def test_consumer_of_a_service_cannot_be_aimed_at_a_log(
    world: World, operation: str, name: str
) -> None:
    config = {"durable_name": "x", "filter_subject": subjects.ALL_EVENTS, "ack_policy": "none"}
    async with connected(world.server, world.folder, name) as connection:
        for deliver, confined in itertools.product(TARGETS, (False, True)):
            with pytest.raises(PermissionDeniedError, match="to publish"):
                await JetStream(connection, confined=confined).api(
                    operation,
                    {
                        "stream_name": "EXPERIMENTS",
                        "config": config | {"deliver_subject": deliver},
                    },
                )


async def test_agent_cannot_use_up_the_message_ids_of_a_service(world: World) -> None:
    async with (
        connected(world.server, world.folder, "box-1") as attacker,
        NatsBus(
            replace(login(world.folder, world.server.url, "dispatcher"), owns_streams=False)
        ) as dispatcher,
    ):
        await JetStream(attacker).publish(
            subjects.inbox_subject("e", "box-1"), b"forged", {"Nats-Msg-Id": "e.1.parameters.r"}
        )
        await dispatcher.inbox.publish(
            "e", "dispatcher", b"parameters", message_id="e.1.parameters.r"
        )

    async with aclosing(world.manager.inbox.follow("e")) as feed:
        stored: list[bytes] = []
        while len(stored) < 2:
            stored += [message.payload for message in await anext(feed)]
    assert stored == [b"forged", b"parameters"]


async def test_only_the_manager_is_in_the_account_of_the_streams() -> None:
    assert manager_user().account == manager_user("operator").account
    accounts = [user.account for user in USERS.values()]
    assert len({manager_user().account, *accounts}) == len(accounts) + 1


async def test_recovery_after_a_kill_of_the_server_needs_no_manager(world: World) -> None:
    async with AsyncExitStack() as stack:
        dispatcher, agent = [
            await stack.enter_async_context(
                NatsBus(replace(login(world.folder, world.server.url, name), owns_streams=False))
            )
            for name in ("dispatcher", "box-1")
        ]
        feed = await agent.tasks.pull("local")
        feed.grant(2)
        followed = dispatcher.events.follow_all()
        sequence = 0
        for number in range(3):
            batch = b"%d" % number
            sequence = await world.manager.events.append(
                "e", batch, expected_sequence=sequence, epoch=1, append_id=f"{number}"
            )
            assert (await anext(followed)).payload == batch
            await world.manager.tasks.publish("local", batch, message_id=f"t{number}")
            task = await anext(feed)
            await agent.tasks.ack(task.ack_subject)
            feed.grant(1)

            world.server.kill()
            await asyncio.to_thread(world.server.start)

        await dispatcher.inbox.publish("e", "dispatcher", b"parameters", message_id="d")
        await agent.inbox.publish("e", "box-1", b"report", message_id="r")
        assert (await dispatcher.events.last("e")) is not None
        await followed.aclose()


async def test_dispatcher_reads_long_logs_and_large_messages(world: World) -> None:
    large, sequence = bytes(8_000_000), 0
    for number in range(1_100):  # more than one batch has
        sequence = await world.manager.events.append(
            "e", b"x", expected_sequence=sequence, epoch=1, append_id=f"{number}"
        )
    for number in range(2):
        sequence = await world.manager.events.append(
            "e", large, expected_sequence=sequence, epoch=2, append_id=f"{number}"
        )
    settings = replace(login(world.folder, world.server.url, "dispatcher"), owns_streams=False)

    async with NatsBus(settings) as dispatcher:
        read = [message async for message in dispatcher.events.read("e", 1)]
        written = [message async for message in world.manager.events.read("e", 1)]

    assert [len(message.payload) for message in read] == [1] * 1_099 + [8_000_000] * 2
    assert [message.sequence for message in read] == [message.sequence for message in written]
    assert [message.append_id for message in read] == [message.append_id for message in written]


def _matches(patterns: tuple[str, ...], subject: str) -> bool:
    parts = subject.split(".")
    for pattern in patterns:
        wanted = pattern.split(".")
        length = len(wanted) - 1 if wanted[-1] == ">" else len(wanted)
        whole = len(parts) > length if wanted[-1] == ">" else len(parts) == length
        pairs = zip(wanted[:length], parts, strict=False)
        if whole and all(one in ("*", part) for one, part in pairs):
            return True
    return False
