"""Credentials of the fleet's agents at a real bus: issued, limited and revoked while it runs."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nni_wire.folders import AGENTS_ACCESS_FILE
from svc_common import subjects
from svc_common.access.audit import AuditTrail
from svc_common.access.authentication import Authenticator
from svc_common.access.delegation import effective_caller
from svc_common.access.keyring import Keyring
from svc_common.access.permissions import RULE_BY_METHOD
from svc_common.access.roles import Caller, Rule
from svc_common.agent_users import BUS_FILE, AgentUsers
from svc_common.credential_channel import CredentialChannel, CredentialServer
from svc_common.errors import PermissionDeniedError, UnauthenticatedError
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_connection import Connection
from svc_common.messaging.nats_reload import BusReloader
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.messaging.permissions import (
    RELOADER,
    fleet_user,
    manager_user,
    reloader_user,
    users_block,
)
from svc_standalone.credential_handler import CredentialHandler
from svc_trial_runner.fleet.adapters.credentials import FolderCredentials, SupervisorCredentials
from svc_trial_runner.fleet.domain.agents import AgentCredentials, AgentName
from svc_trial_runner.fleet.ports import CredentialStore
from tests.support.servers import NatsServer

SERVICES = [(manager_user(), "m-password"), (fleet_user(), "f-password")]
FIRST, SECOND = AgentName("abcd1234", "exp-e1", 1), AgentName("abcd1234", "exp-e1", 2)
OTHER = AgentName("abcd1234", "exp-e2", 1)
REFUSED = "forbids this user to publish"


@dataclass
class Installation:
    """Bus whose users change while it runs, with the fleet's way to change them."""

    folder: Path
    server: NatsServer = field(init=False)
    store: CredentialStore = field(init=False)

    @asynccontextmanager
    async def deployed(self) -> AsyncIterator["Installation"]:
        """Open a bus that includes a file of the fleet, and is reloaded by its system account."""
        (self.folder / "bus" / "agents").mkdir(parents=True)
        # The fleet's folder is mounted there.
        agents = self.folder / "bus" / "agents" / BUS_FILE
        shared = self.folder
        (shared / BUS_FILE).touch()
        agents.symlink_to(shared / BUS_FILE)
        self.server = NatsServer(self.folder / "bus", more="include users.conf\n")
        block = users_block([*SERVICES, (reloader_user(), "f-password")], f"agents/{BUS_FILE}")
        (self.folder / "bus" / "users.conf").write_text(block)
        await asyncio.to_thread(self.server.start)
        login = NatsSettings(
            self.server.url, user=RELOADER, password="f-password", owns_streams=False
        )
        try:
            async with asyncio.timeout(60), BusReloader(login) as reloader:
                self.store = FolderCredentials(shared, AgentUsers(shared), reloader.reload)
                yield self
        finally:
            self.server.stop()

    @asynccontextmanager
    async def supervised(self) -> AsyncIterator["Installation"]:
        """Open a bus that a supervisor reloads, with the fleet's end of the channel."""
        self.server = NatsServer(self.folder / "bus", more="include users.conf\n")
        (self.folder / "bus").mkdir()
        users, credentials = AgentUsers(self.folder), CredentialServer()

        def write() -> None:
            block = users_block([*SERVICES, *users.logins()])
            (self.folder / "bus" / "users.conf").write_text(block)

        handler = CredentialHandler(
            users,
            write,
            lambda: self.server.send_signal(signal.SIGHUP),
            lambda: NatsSettings(self.server.url),
        )
        write()
        await asyncio.to_thread(self.server.start)
        serving = asyncio.create_task(credentials.serve(handler.handle))
        channel = CredentialChannel(credentials.child_end)
        self.store = SupervisorCredentials(channel)
        try:
            async with asyncio.timeout(60):
                yield self
        finally:
            channel.close()
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving
            credentials.close()
            self.server.stop()

    def manager(self) -> NatsBus:
        return NatsBus(NatsSettings(self.server.url, user="manager", password="m-password"))

    def agent(self, of: AgentCredentials) -> NatsBus:
        return NatsBus(self.settings(of))

    def settings(self, of: AgentCredentials) -> NatsSettings:
        return NatsSettings(
            self.server.url, user=of.bus_user, password=of.bus_password, owns_streams=False
        )


@pytest.fixture(params=["supervised", "deployed"])
async def installation(
    tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Installation]:
    made = Installation(tmp_path)
    opening = made.supervised() if request.param == "supervised" else made.deployed()
    async with opening as opened:
        yield opened


def may_call(caller: Caller, rule: Rule) -> bool:
    try:
        caller.check(rule, "method")
    except PermissionDeniedError:
        return False
    return True


@asynccontextmanager
async def connected(settings: NatsSettings) -> AsyncIterator[Connection]:
    connection = Connection(settings)
    await connection.open()
    try:
        yield connection
    finally:
        await connection.aclose()


async def test_agent_runs_a_task_with_credentials_that_came_while_the_bus_ran(
    installation: Installation,
) -> None:
    async with asyncio.timeout(30), installation.manager() as manager:
        inbox = manager.inbox.follow("e1")
        credentials = await installation.store.issue(FIRST)
        async with installation.agent(credentials) as agent, aclosing(inbox):
            feed = await agent.tasks.pull(FIRST.pool)
            feed.grant(1)
            controls = await agent.signals.subscribe(subjects.control_subject(str(FIRST)))
            await manager.tasks.publish(FIRST.pool, b"task", message_id="1")
            task = await anext(aiter(feed))
            await agent.tasks.in_progress(task.ack_subject)
            await agent.inbox.publish("e1", str(FIRST), b"report", message_id="1")
            await agent.tasks.ack(task.ack_subject)
            await feed.aclose()
            manager.signals.publish(subjects.control_subject(str(FIRST)), b"stop")

            assert (await anext(inbox))[0].payload == b"report"
            assert (await anext(controls)).payload == b"stop"


async def test_other_connections_stay_when_users_change(installation: Installation) -> None:
    first = await installation.store.issue(FIRST)
    async with installation.manager() as manager, installation.agent(first) as agent:
        lost = [asyncio.create_task(bus.wait_connected(False)) for bus in (manager, agent)]
        controls = await agent.signals.subscribe(subjects.control_subject(str(FIRST)))
        presences = await manager.signals.subscribe(subjects.ALL_PRESENCES)

        second = await installation.store.issue(SECOND)
        await installation.store.revoke([SECOND])

        manager.signals.publish(subjects.control_subject(str(FIRST)), b"order")
        agent.signals.publish(subjects.presence_subject(str(FIRST)), b"here")
        assert (await anext(controls)).payload == b"order"
        assert (await anext(presences)).payload == b"here"
        assert not any(task.done() for task in lost)
        assert second.bus_user != first.bus_user
        for task in lost:
            task.cancel()
        await asyncio.gather(*lost, return_exceptions=True)


@pytest.mark.parametrize(
    "subject",
    [
        subjects.inbox_subject("e2", str(FIRST)),
        subjects.inbox_subject("e1", str(SECOND)),
        subjects.inbox_subject("e1", "dispatcher"),
        subjects.presence_subject(str(SECOND)),
        subjects.presence_subject(str(OTHER)),
        subjects.control_subject(str(FIRST)),
        subjects.log_subject("e2", "t1"),
        subjects.event_subject("e1"),
        subjects.task_subject("exp-e1"),
        subjects.pool_need_subject("exp-e1"),
        subjects.pool_state_subject("exp-e1"),
        "$JS.ACK.TASKS.pool-exp-e2.1.1.1.1.0",
        "$JS.API.CONSUMER.MSG.NEXT.TASKS.pool-exp-e2",
        "nni.api.CONSUMER.MSG.NEXT.TASKS.pool-exp-e2",
        "nni.api.DIRECT.GET.EXPERIMENTS",
        "nni.api.DIRECT.GET.POOLS",
        "$JS.API.CONSUMER.CREATE.TASKS",
        "$JS.API.STREAM.MSG.GET.INBOX",
        "$JS.API.STREAM.PURGE.LOGS",
        "$JS.API.INFO",
        "$SYS.REQ.SERVER.PING",
    ],
)
async def test_agent_publishes_nothing_that_is_not_its_own(
    installation: Installation, subject: str
) -> None:
    async with installation.manager() as manager:
        for pool in (FIRST.pool, OTHER.pool):
            await manager.tasks.open_pool(pool)
        credentials = await installation.store.issue(FIRST)
        async with connected(installation.settings(credentials)) as connection:
            with pytest.raises(PermissionDeniedError, match=REFUSED):
                await connection.request(subject, b"{}", timeout_s=30.0)


@pytest.mark.parametrize(
    "subject",
    [
        subjects.control_subject(str(SECOND)),
        subjects.ALL_CONTROLS,
        subjects.ALL_PRESENCES,
        subjects.ALL_LOGS,
        subjects.pool_copies(subjects.ALL_POOLS),
        subjects.ALL_COPIES,
        f"_INBOX.{SECOND}.>",
        "_INBOX.>",
        "nni.>",
        ">",
    ],
)
async def test_agent_listens_to_its_own_orders_only(
    installation: Installation, subject: str
) -> None:
    credentials = await installation.store.issue(FIRST)
    async with installation.agent(credentials) as agent:
        with pytest.raises(PermissionDeniedError, match="listen"):
            await agent.signals.subscribe(subject)


@pytest.mark.parametrize("again", [True, False])
async def test_earlier_credentials_are_refused_and_their_connection_is_closed(
    installation: Installation, again: bool
) -> None:
    first = await installation.store.issue(FIRST)
    async with installation.agent(first) as agent:
        closed = asyncio.create_task(agent.wait_connected(False))
        await asyncio.sleep(0)

        if again:
            second = await installation.store.issue(FIRST)
            async with installation.agent(second) as later:
                assert later.connected
        else:
            await installation.store.revoke([FIRST])

        await closed
        with pytest.raises(UnauthenticatedError):
            await Connection(installation.settings(first)).open()


async def test_pulls_that_an_agent_has_left_take_no_task_once_it_is_revoked(
    installation: Installation,
) -> None:
    credentials, second = [await installation.store.issue(name) for name in (FIRST, SECOND)]
    pull = f"{subjects.IMPORTED_API}.CONSUMER.MSG.NEXT.{subjects.STREAM_TASKS}"
    async with installation.manager() as manager:
        await manager.tasks.open_pool(FIRST.pool)
        async with connected(installation.settings(credentials)) as connection:
            # The bus itself listens there for its user, also when the user is gone.
            reply = subjects.presence_subject(str(FIRST))
            for _ in range(50):
                subject = f"{pull}.{subjects.pool_consumer(FIRST.pool)}"
                connection.publish(subject, b'{"batch": 1000}', reply=reply)
            await connection.flush()

        await installation.store.revoke([FIRST])

        async with installation.agent(second) as agent, asyncio.timeout(30):
            feed = await agent.tasks.pull(FIRST.pool)
            async with aclosing(feed):
                feed.grant(10)
                for number in range(10):
                    await manager.tasks.publish(FIRST.pool, b"task", message_id=f"{number}")
                for _ in range(10):
                    task = await anext(aiter(feed))
                    await agent.tasks.ack(task.ack_subject)
                    assert task.deliveries == 1


async def test_token_of_an_agent_uploads_and_downloads_and_nothing_else(
    installation: Installation,
) -> None:
    token = (await installation.store.issue(FIRST)).manager_token
    keyring = Keyring("token-of-the-installation", installation.folder / AGENTS_ACCESS_FILE)
    authenticator = Authenticator(keyring, AuditTrail())

    caller = authenticator.identify("127.0.0.1", token, "", "method")

    allowed = [method for method, rule in RULE_BY_METHOD.items() if may_call(caller, rule)]
    assert caller.name == str(FIRST)
    assert {method.rpartition("/")[2] for method in allowed} == {
        "PrepareUpload", "Upload", "CompleteUpload", "PrepareDownload", "Download",
    }  # fmt: skip
    assert effective_caller(caller, "admin token installation") is caller


@pytest.mark.parametrize("again", [True, False])
async def test_token_of_a_revoked_agent_is_refused(installation: Installation, again: bool) -> None:
    token = (await installation.store.issue(FIRST)).manager_token
    keyring = Keyring("token-of-the-installation", installation.folder / AGENTS_ACCESS_FILE)
    authenticator = Authenticator(keyring, AuditTrail())
    authenticator.identify("127.0.0.1", token, "", "method")

    if again:
        await installation.store.issue(FIRST)
    else:
        await installation.store.revoke([FIRST])

    with pytest.raises(UnauthenticatedError):
        authenticator.identify("127.0.0.1", token, "", "method")


async def test_users_are_there_again_after_the_bus_was_killed(installation: Installation) -> None:
    credentials = await installation.store.issue(FIRST)
    async with installation.agent(credentials) as agent:
        installation.server.kill()
        await agent.wait_connected(False)
        issued = asyncio.create_task(installation.store.issue(SECOND))
        await asyncio.to_thread(installation.server.start)

        await agent.wait_connected()
        async with installation.agent(await issued) as other:
            assert other.connected


async def test_agents_come_and_go_at_once(installation: Installation) -> None:
    names = [AgentName("abcd1234", "exp-e1", number) for number in range(20)]

    issued = await asyncio.gather(*(installation.store.issue(name) for name in names))
    await installation.store.revoke(names[:10])

    for credentials in issued[:10:9]:
        with pytest.raises(UnauthenticatedError):
            await Connection(installation.settings(credentials)).open()
    for credentials in issued[10::9]:
        async with installation.agent(credentials) as agent:
            assert agent.connected


async def test_no_secret_is_in_the_log_of_the_bus(installation: Installation) -> None:
    credentials = await installation.store.issue(FIRST)
    async with installation.agent(credentials) as agent:
        assert agent.connected

    log = (installation.folder / "bus" / "nats.log").read_text()
    kept = json.loads((installation.folder / "agents.json").read_text())

    assert credentials.bus_password not in log
    assert credentials.manager_token not in log + json.dumps(kept)


async def test_agent_notices_that_its_credentials_are_revoked(installation: Installation) -> None:
    credentials = await installation.store.issue(FIRST)
    async with asyncio.timeout(60), installation.agent(credentials) as agent:
        refused = asyncio.ensure_future(agent.wait_refused(0.0))

        await installation.store.revoke([FIRST])
        await refused

        assert not agent.connected
