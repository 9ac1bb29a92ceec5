"""Sessions: facts, forwards and watch, over real SSH servers."""

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import psutil
import pytest

pytest.importorskip("asyncssh", reason="the extra remote is not installed")

from svc_trial_runner.fleet.adapters.remote.connections import open_connection
from svc_trial_runner.fleet.adapters.remote.errors import MachineError
from svc_trial_runner.fleet.adapters.remote.machines import Machine
from svc_trial_runner.fleet.adapters.remote.sessions import Session
from tests.support import processes
from tests.support.greeters import greetings, open_greeters
from tests.support.remote_machines import PASSWORD, USER, Machines
from tests.support.ssh_server import ServerOptions, SshServer

if TYPE_CHECKING:
    import asyncssh

T = TypeVar("T")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """One machine."""
    machines = Machines(tmp_path_factory.mktemp("machines"))
    machines.start()
    yield machines
    machines.close()


@pytest.fixture
def machine(world: Machines) -> Machine:
    """Entry of the machine."""
    return Machine(0, "127.0.0.1", USER, world.servers[0].port, password=PASSWORD)


@pytest.fixture
def key() -> str:
    """Key of a folder of sockets that no other test has."""
    return os.urandom(4).hex()


def on(
    world: Machines,
    machine: Machine,
    key: str,
    work: Callable[[Session, asyncio.Event], Awaitable[T]],
) -> T:
    """Return the result of work on a session; its folder is removed."""

    async def run() -> T:
        ended = asyncio.Event()
        async with asyncio.timeout(60):
            connection = await open_connection(machine, world.known_hosts, [])
            session = Session(machine, connection, key, ended.set)
            try:
                result = await work(session, ended)
                await session.close_folder()
                return result
            finally:
                await session.aclose()

    return asyncio.run(run())


async def greeted(session: Session, _: asyncio.Event) -> tuple[list[str], str]:
    """Return what an agent gets over the forwards, and their folder."""
    async with open_greeters() as endpoints:
        folder = await session.open_forwards(endpoints)
        assert await session.open_forwards(endpoints) == folder
        return await greetings(folder), folder


def test_agents_that_are_launched_at_once_share_the_forwards(
    world: Machines, machine: Machine, key: str
) -> None:
    async def open_together(session: Session, _: asyncio.Event) -> tuple[int, list[str]]:
        async with open_greeters() as endpoints:
            folders = await asyncio.gather(*(session.open_forwards(endpoints) for _ in range(3)))
            names = [path for path in Path(folders[0]).iterdir() if path.is_dir()]
            assert len({*folders}) == 1
            return len(names), await greetings(folders[0])

    assert on(world, machine, key, open_together) == (1, ["bus", "manager"])


def other_server(world: Machines, **changes: object) -> SshServer:
    fields = {name: getattr(world.servers[0].options, name) for name in ServerOptions.__slots__}
    server = SshServer(ServerOptions(**{**fields, "port": 0, **changes}))
    server.start()
    world.trust(server.port)
    return server


def test_facts_are_those_of_the_machine(world: Machines, machine: Machine, key: str) -> None:
    async def facts(session: Session, _: asyncio.Event) -> tuple[str, str, str]:
        found = await session.facts()
        assert await session.facts() is found
        return found.system, found.folder, session.commands.interpreter

    system, folder, interpreter = on(world, machine, key, facts)

    assert (system, folder) == ("Linux", str(world.homes[0] / ".nni"))
    assert Path(interpreter).is_absolute()


def test_machine_that_runs_no_commands_is_a_problem_with_its_words(
    world: Machines, machine: Machine, key: str
) -> None:
    server = other_server(world, environment={"PATH": "/nonexistent"})
    try:
        with pytest.raises(MachineError, match="not found") as caught:
            on(world, replace(machine, port=server.port), key, lambda one, _: one.facts())
    finally:
        server.kill()

    assert caught.value.field == "machineList[0].host"


def test_windows_is_refused_with_that_word(world: Machines, machine: Machine, key: str) -> None:
    server = other_server(world, version="OpenSSH_for_Windows_9.5")
    try:
        with pytest.raises(MachineError, match="Windows") as caught:
            on(world, replace(machine, port=server.port), key, lambda one, _: one.facts())
    finally:
        server.kill()

    assert caught.value.permanent


def test_agents_reach_bus_and_manager_over_sockets(
    world: Machines, machine: Machine, key: str
) -> None:
    words, folder = on(world, machine, key, greeted)

    assert words == ["bus", "manager"]
    assert not Path(folder).exists()


def test_ports_of_loopback_are_used_where_sockets_are_refused(
    world: Machines, machine: Machine, key: str
) -> None:
    server = other_server(world, forwards_sockets=False)
    try:
        words, _ = on(world, replace(machine, port=server.port), key, greeted)
    finally:
        server.kill()

    assert words == ["bus", "manager"]


def test_server_that_forwards_nothing_is_a_problem(
    world: Machines, machine: Machine, key: str
) -> None:
    server = other_server(world, forwards_sockets=False, forwards_ports=False)
    try:
        with pytest.raises(MachineError, match="refuses to forward") as caught:
            on(world, replace(machine, port=server.port), key, greeted)
    finally:
        server.kill()

    assert "AllowStreamLocalForwarding" in caught.value.remedy


def test_end_of_a_watched_process_is_noticed(world: Machines, machine: Machine, key: str) -> None:
    children = [subprocess.Popen(["sleep", "600"]) for _ in range(2)]

    async def watch(session: Session, ended: asyncio.Event) -> None:
        for child in children:
            await session.watch([child.pid])
        for child in children:
            child.kill()
            assert await ended.wait()
            ended.clear()

    try:
        on(world, machine, key, watch)
    finally:
        for child in children:
            child.kill()
            child.wait()


def kill_watcher(folder: str) -> None:
    """Kill the process on the machine that watches for a session with this folder of sockets."""
    for one in processes.named(os.getpid(), f"watch {folder}"):
        one.kill()


def test_processes_of_a_killed_watcher_are_watched_again(
    world: Machines, machine: Machine, key: str
) -> None:
    child = subprocess.Popen(["sleep", "600"])

    async def watch(session: Session, ended: asyncio.Event) -> None:
        async with open_greeters() as endpoints:
            folder = await session.open_forwards(endpoints)
        await session.watch([child.pid])
        kill_watcher(folder)
        await ended.wait()  # the watch was cut
        ended.clear()
        await session.watch([child.pid])
        child.kill()
        assert await ended.wait()

    try:
        on(world, machine, key, watch)
    finally:
        child.kill()
        child.wait()


async def greeted_by(port: int) -> bytes:
    """Return what a relay's port passes on; empty: nothing listens there."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return b""
    word = await reader.read()
    writer.close()
    return word


def test_relay_leads_to_an_address_here(world: Machines, machine: Machine, key: str) -> None:
    async def relayed(session: Session, _: asyncio.Event) -> tuple[str, bytes, int, bytes]:
        async with open_greeters() as endpoints:
            python = (await session.facts()).interpreter
            target = ("127.0.0.1", int(endpoints.manager_grpc.rpartition(":")[2]))
            address, port = await session.open_relay(python, target, 0, ["127.0.0.1"])
            first = await greeted_by(port)
            again = await session.open_relay(python, target, port, ["127.0.0.1"])
            return address, first, again[1] - port, await greeted_by(again[1])

    # The second relay takes over the port of the first one.
    assert on(world, machine, key, relayed) == ("127.0.0.1", b"manager", 0, b"manager")


def test_relay_that_ends_cuts_the_connection(world: Machines, machine: Machine) -> None:
    async def run() -> list[str]:
        async with asyncio.timeout(60):
            connection = await open_connection(machine, world.known_hosts, [])
            session = Session(machine, connection, "", lambda: None)
            try:
                python = (await session.facts()).interpreter
                _, port = await session.open_relay(python, ("127.0.0.1", 9), 0, ["127.0.0.1"])
                ended = kill_listeners(port)
                await session.wait_closed()
                return ended
            finally:
                await session.aclose()

    assert len(asyncio.run(run())) == 1


def kill_listeners(port: int) -> list[str]:
    """Kill the programs that listen on a port; return their names."""
    names = []
    for one in psutil.net_connections("tcp"):
        if one.status == psutil.CONN_LISTEN and tuple(one.laddr)[1:2] == (port,) and one.pid:
            process = psutil.Process(one.pid)
            names.append(process.name())
            process.kill()
    return names


class CountingConnection:
    """SSH connection that keeps the programs that were started over it."""

    def __init__(self, connection: "asyncssh.SSHClientConnection") -> None:
        self._connection = connection
        self.programs: list[Any] = []
        self.written: list[bytes] = []
        """What was sent to them, their code included."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def create_process(self, line: str, **options: Any) -> Any:
        program: Any = await self._connection.create_process(line, **options)
        self.programs.append(program)
        write = program.stdin.write

        def note(data: bytes) -> None:
            self.written.append(data)
            write(data)

        program.stdin.write = note
        return program


def counted(
    world: Machines,
    machine: Machine,
    work: Callable[[Session, CountingConnection, asyncio.Event], Awaitable[T]],
) -> T:
    """Return the result of work on a session whose programs are counted once facts are known."""

    async def run() -> T:
        ended = asyncio.Event()
        async with asyncio.timeout(60):
            connection = CountingConnection(await open_connection(machine, world.known_hosts, []))
            session = Session(machine, cast(Any, connection), "", ended.set)
            try:
                await session.facts()
                connection.programs.clear()
                connection.written.clear()
                return await work(session, connection, ended)
            finally:
                await session.aclose()

    return asyncio.run(run())


@pytest.fixture
def sleeper() -> Iterator[int]:
    """Process that ends with the test; its number."""
    child = subprocess.Popen(["sleep", "600"])
    yield child.pid
    child.kill()
    child.wait()


def test_processes_are_watched_by_one_program(
    world: Machines, machine: Machine, sleeper: int
) -> None:
    async def watch(session: Session, connection: CountingConnection, _: asyncio.Event) -> int:
        await session.watch([])
        none = len(connection.programs)
        for some in ([sleeper], [sleeper], [sleeper, os.getpid()]):
            await session.watch(some)
        assert none == 0
        # The code of the program comes first.
        assert connection.written[1:] == [b"%d\n" % one for one in (sleeper, os.getpid())]
        return len(connection.programs)

    assert counted(world, machine, watch) == 1


def test_end_of_a_watch_that_was_replaced_keeps_the_new_one(
    world: Machines, machine: Machine, sleeper: int
) -> None:
    async def watch(session: Session, connection: CountingConnection, ended: asyncio.Event) -> int:
        await session.watch([sleeper])
        (old,) = connection.programs
        old.is_closing = lambda: True  # its output has not ended yet
        await session.watch([sleeper])
        old.close()
        await ended.wait()
        await session.watch([sleeper])
        return len(connection.programs)

    assert counted(world, machine, watch) == 2


def test_machine_that_cuts_each_watch_is_reported_once_in_half_a_minute(
    world: Machines, machine: Machine, sleeper: int
) -> None:
    async def watch(session: Session, connection: CountingConnection, ended: asyncio.Event) -> bool:
        await session.watch([sleeper])
        connection.programs[0].close()
        await ended.wait()
        ended.clear()
        await session.watch([sleeper])
        connection.programs[1].close()
        while len(connection.programs) < 3:
            await session.watch([sleeper])
            await asyncio.sleep(0)
        # Both ends of the second program have been handled once the third one has started.
        return ended.is_set()

    assert not counted(world, machine, watch)


def test_closed_session_leaves_no_task_behind(
    world: Machines, machine: Machine, sleeper: int
) -> None:
    async def work(session: Session, _: CountingConnection, ended: asyncio.Event) -> set[str]:
        del ended
        python = (await session.facts()).interpreter
        await session.watch([sleeper])
        await session.open_relay(python, ("127.0.0.1", 9), 0, ["127.0.0.1"])
        names = {"watch of a machine", "relay of a machine"}
        assert names <= {task.get_name() for task in asyncio.all_tasks()}
        await session.aclose()
        return names & {task.get_name() for task in asyncio.all_tasks()}

    assert counted(world, machine, work) == set()


def test_forwards_that_were_closed_are_opened_again(
    world: Machines, machine: Machine, key: str
) -> None:
    async def twice(session: Session, ended: asyncio.Event) -> list[str]:
        await greeted(session, ended)
        await session.close_folder()
        words, _ = await greeted(session, ended)
        return words

    assert on(world, machine, key, twice) == ["bus", "manager"]


def test_program_that_cannot_be_started_is_named_with_its_words(
    world: Machines, machine: Machine
) -> None:
    async def work(session: Session, _: CountingConnection, ended: asyncio.Event) -> None:
        del ended
        await session.open_relay("/nonexistent/python", ("127.0.0.1", 9), 0, ["127.0.0.1"])

    with pytest.raises(MachineError, match=r"cannot run listen: .*/nonexistent/python"):
        counted(world, machine, work)
