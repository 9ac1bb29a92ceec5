"""Reload of real servers over the system account."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from svc_common.errors import PermissionDeniedError, UnauthenticatedError, UnavailableError
from svc_common.messaging.nats_connection import Connection
from svc_common.messaging.nats_reload import BusReloader
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.messaging.permissions import (
    RELOADER,
    agent_accounts,
    fleet_user,
    manager_user,
    reloader_user,
    runner_user,
    users_block,
)
from tests.support.ports import free_port
from tests.support.servers import NatsServer

AGENT = runner_user("box", "desks", "box")
USERS = users_block(
    [(manager_user(), "m"), (fleet_user(), "f"), (reloader_user(), "f")], "agents.conf"
)


def login(url: str, user: str = RELOADER, password: str = "f") -> NatsSettings:
    return NatsSettings(url, user=user, password=password, owns_streams=False)


def servers(folder: Path, count: int) -> list[NatsServer]:
    """Return servers, not started, whose configurations include one file of agents."""
    (folder / "agents.conf").touch()
    routes = [free_port() for _ in range(count)]
    made = []
    for number in range(count):
        own = folder / f"server-{number}"
        own.mkdir()
        (own / "agents.conf").symlink_to(folder / "agents.conf")
        (own / "users.conf").write_text(USERS)
        cluster = (
            f'server_name: s{number}\ncluster {{ name: nni, listen: "127.0.0.1:{routes[number]}"\n'
            f"routes: [{', '.join(f'nats://127.0.0.1:{port}' for port in routes)}] }}\n"
        )
        made.append(NatsServer(own, more=f"{cluster if count > 1 else ''}include users.conf\n"))
    return made


@asynccontextmanager
async def started(folder: Path, count: int = 1) -> AsyncIterator[list[NatsServer]]:
    made = servers(folder, count)
    async with AsyncExitStack() as stack, asyncio.timeout(60):
        for server in made:
            stack.callback(server.stop)
            await asyncio.to_thread(server.start)
        yield made


async def admits(server: NatsServer) -> bool:
    connection = Connection(login(server.url, "box", "b"))
    try:
        await connection.open()
    except UnauthenticatedError:
        return False
    await connection.aclose()
    return True


async def test_every_server_of_a_cluster_reads_its_users_again(tmp_path: Path) -> None:
    async with started(tmp_path, 2) as running:
        url = ",".join(server.url for server in running)
        async with BusReloader(login(url)) as reloader:
            before = [await admits(server) for server in running]
            (tmp_path / "agents.conf").write_text(agent_accounts([(AGENT, "b")]))

            while not all([await admits(server) for server in running]):
                # Two servers of a cluster that has just started may not know each other yet.
                await reloader.reload()

            (tmp_path / "agents.conf").write_text("")
            await reloader.reload()
            after = [await admits(server) for server in running]

    assert (before, after) == ([False, False], [False, False])


async def test_file_that_the_bus_cannot_read_is_an_error_with_its_words(tmp_path: Path) -> None:
    async with started(tmp_path) as (server,), BusReloader(login(server.url)) as reloader:
        (tmp_path / "agents.conf").write_text('"box" { users: [')

        with pytest.raises(UnavailableError, match=r"cannot read its users again.*agents\.conf"):
            await reloader.reload()

        assert not await admits(server)


async def test_reload_waits_for_a_bus_that_restarts(tmp_path: Path) -> None:
    async with started(tmp_path) as (server,), BusReloader(login(server.url)) as reloader:
        server.kill()
        (tmp_path / "agents.conf").write_text(agent_accounts([(AGENT, "b")]))
        reloading = asyncio.create_task(reloader.reload())
        await asyncio.to_thread(server.start)

        await reloading

        assert await admits(server)


@pytest.mark.parametrize(
    "subject",
    [
        "$SYS.REQ.SERVER.PING.CONNZ",
        "$SYS.REQ.ACCOUNT.NNI.CONNZ",
        "$SYS.REQ.SERVER.{server}.KICK",
        "$SYS.REQ.SERVER.{server}.SUBSZ",
        "nni.control.box",
        "$JS.API.INFO",
    ],
)
async def test_user_that_reloads_may_ask_servers_for_nothing_else(
    tmp_path: Path, subject: str
) -> None:
    async with started(tmp_path) as (server,):
        connection = Connection(login(server.url))
        await connection.open()
        try:
            with pytest.raises(PermissionDeniedError):
                await connection.request(subject.format(server="NX"), b"{}", timeout_s=30)
        finally:
            await connection.aclose()


async def test_user_that_reloads_hears_no_events_of_the_servers(tmp_path: Path) -> None:
    async with started(tmp_path) as (server,):
        connection = Connection(login(server.url))
        await connection.open()
        try:
            connection.subscribe("$SYS.ACCOUNT.>", lambda *_: None)
            await connection.flush()
            with pytest.raises(PermissionDeniedError):
                connection.check_allowed("$SYS.ACCOUNT.>")
        finally:
            await connection.aclose()
