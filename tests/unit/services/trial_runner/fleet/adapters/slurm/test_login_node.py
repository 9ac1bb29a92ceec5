"""Commands and relay of a login node, over a real SSH server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

pytest.importorskip("asyncssh", reason="the extra remote is not installed")

from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.adapters.remote.machines import Machine
from svc_trial_runner.fleet.adapters.slurm.login_node import PORT_FILE, LoginNode
from svc_trial_runner.fleet.adapters.stored_port import read_port
from svc_trial_runner.fleet.domain.agents import PlatformSection
from svc_trial_runner.fleet.ports import AdapterContext, PlatformError
from tests.support.greeters import open_greeters
from tests.support.remote_machines import PASSWORD, USER, Machines

LIMIT_S = 30.0


@pytest.fixture
def machines(tmp_path: Path) -> Machines:
    """One machine, whose server is not started."""
    return Machines(tmp_path)


@asynccontextmanager
async def login_node(
    machines: Machines, password: str = PASSWORD, changed: asyncio.Event | None = None
) -> AsyncIterator[tuple[LoginNode, int]]:
    """Yield a login node on the machine, and a port here whose server greets; all are closed."""
    on_change = (changed or asyncio.Event()).set
    machines.start()
    folder = machines.folder / "pool"
    folder.mkdir(exist_ok=True)
    machine = Machine(None, "127.0.0.1", USER, machines.servers[0].port, password=password)
    async with open_greeters() as endpoints:
        context = AdapterContext(
            "0123abcd",
            "pool",
            PlatformSection("slurm", {}),
            endpoints,
            machines.bundles,
            folder,
            NoFront(),
        )
        node = LoginNode(machine, context, on_change, machines.known_hosts, config_files=[])
        try:
            async with asyncio.timeout(60):
                yield node, int(endpoints.manager_grpc.rpartition(":")[2])
        finally:
            await node.aclose()
            machines.close()


async def greeting(address: str) -> bytes:
    """Return what the relay leads to."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    word = await reader.read()
    writer.close()
    return word


async def test_command_has_status_output_and_errors(machines: Machines) -> None:
    async with login_node(machines) as (node, _):
        result = await node.run(
            ["sh", "-c", "cat; echo oh >&2; exit 3"], content=[b"i", b"n"], limit_s=LIMIT_S
        )

    assert (result.exit_status, result.output, result.error_output) == (3, b"in", b"oh\n")


async def test_arguments_are_not_read_by_the_shell_of_the_login(machines: Machines) -> None:
    async with login_node(machines) as (node, _):
        result = await node.run(["echo", "$HOME; `ls` 'x'"], limit_s=LIMIT_S)

    assert result.output == b"$HOME; `ls` 'x'\n"


async def test_wrong_password_names_the_field_of_the_section(machines: Machines) -> None:
    async with login_node(machines, password="wrong") as (node, _):
        with pytest.raises(PlatformError, match=r": password was refused") as caught:
            await node.connect()

    assert caught.value.permanent


async def test_relay_leads_to_the_front_and_keeps_its_port_in_the_pool(machines: Machines) -> None:
    async with login_node(machines) as (node, front_port):
        address = await node.open_relay("python3", front_port, ["127.0.0.1"])
        again = await node.open_relay("python3", front_port, ["127.0.0.1"])
        word = await greeting(address)
        kept = read_port(machines.folder / "pool" / PORT_FILE)

    assert (word, again, node.relay_address) == (b"manager", address, address)
    assert address == f"127.0.0.1:{kept}"


async def test_relay_is_opened_again_at_its_port_after_a_cut(machines: Machines) -> None:
    changed = asyncio.Event()
    async with login_node(machines, changed=changed) as (node, front_port):
        address = await node.open_relay("python3", front_port, ["127.0.0.1"])
        changed.clear()
        machines.servers[0].kill()
        await changed.wait()
        machines.servers[0].start()
        await node.connect()
        word = await greeting(node.relay_address)

    assert (word, node.relay_address) == (b"manager", address)


async def test_relay_is_opened_on_a_login_node_that_was_away(machines: Machines) -> None:
    async with login_node(machines) as (node, front_port):
        machines.servers[0].kill()
        with pytest.raises(PlatformError):
            await node.connect()
        machines.servers[0].start()

        address = await node.open_relay("python3", front_port, ["127.0.0.1"])

        assert await greeting(address) == b"manager"


async def test_relay_leads_to_another_port_of_the_front_when_that_has_moved(
    machines: Machines,
) -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"moved")
        writer.close()

    async with login_node(machines) as (node, front_port):
        before = (node.is_here, node.relay_address)
        await node.open_relay("python3", front_port, ["127.0.0.1"])
        moved = await asyncio.start_server(greet, "127.0.0.1", 0)
        new_port = moved.sockets[0].getsockname()[1]

        address = await node.open_relay("python3", new_port, ["127.0.0.1"])

        assert await greeting(address) == b"moved"
        assert (before, node.relay_address) == ((False, ""), address)
        moved.close()
