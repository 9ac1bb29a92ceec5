"""Commands over a real SSH server."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

pytest.importorskip("asyncssh", reason="the extra remote is not installed")

import asyncssh

from svc_trial_runner.fleet.adapters.bundles.worker_commands import (
    WorkerCommand,
    WorkerCommands,
    WorkerFailure,
)
from svc_trial_runner.fleet.adapters.remote.commands import (
    call_channel,
    call_worker,
    channel_line,
    run_command,
    worker_error,
)
from svc_trial_runner.fleet.adapters.remote.connections import open_connection
from svc_trial_runner.fleet.adapters.remote.errors import MachineError
from svc_trial_runner.fleet.adapters.remote.machines import Machine
from tests.support.remote_machines import PASSWORD, USER, Machines
from tests.support.wait import until

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


def over(
    world: Machines,
    machine: Machine,
    work: Callable[[asyncssh.SSHClientConnection], Awaitable[T]],
) -> T:
    """Return the result of work over one connection."""

    async def run() -> T:
        async with asyncio.timeout(60):
            connection = await open_connection(machine, world.known_hosts, [])
            async with connection:
                result = await work(connection)
        return result

    return asyncio.run(run())


def test_input_larger_than_all_buffers_arrives(world: Machines, machine: Machine) -> None:
    pieces = [b"0" * 1_000_000] * 8

    result = over(world, machine, lambda one: run_command(machine, one, "wc -c", pieces))

    assert int(result.output) == 8_000_000
    assert result.exit_status == 0


def test_command_that_reads_no_input_has_its_errors_reported(
    world: Machines, machine: Machine
) -> None:
    line = "echo no >&2; exit 3"

    result = over(world, machine, lambda one: run_command(machine, one, line, [b"0" * 5_000_000]))

    assert (result.error_output, result.exit_status) == (b"no\n", 3)


def test_command_that_does_not_end_is_an_error(world: Machines, machine: Machine) -> None:
    with pytest.raises(MachineError, match="does not answer a command within"):
        over(world, machine, lambda one: run_command(machine, one, "sleep 60", [], 0.2))


def test_cut_connection_is_an_error(world: Machines, machine: Machine) -> None:
    async def cut(connection: asyncssh.SSHClientConnection) -> None:
        waiting = asyncio.create_task(run_command(machine, connection, "sleep 60", []))
        await asyncio.sleep(0)
        connection.abort()
        await waiting

    with pytest.raises(MachineError):
        over(world, machine, cut)


def test_program_of_the_worker_reports(world: Machines, machine: Machine) -> None:
    report = over(world, machine, lambda one: call_worker(machine, one, WorkerCommands().status()))

    assert report == {"agents": []}


def test_error_of_the_worker_names_the_field_of_the_entry(
    world: Machines, machine: Machine
) -> None:
    (Path(world.homes[0]) / "file").touch()
    commands = WorkerCommands(folder="~/file/nni")

    with pytest.raises(WorkerFailure) as caught:
        over(world, machine, lambda one: call_worker(machine, one, commands.probe()))

    error = worker_error(machine, caught.value)
    assert error.problem().rule.startswith("does not serve: ")
    assert worker_error(machine, WorkerFailure("no_python", "old")).field.endswith("pythonPath")
    assert worker_error(machine, WorkerFailure("noexec", "x")).field.endswith("folder")


def test_program_of_the_sockets_fails_with_its_reason(world: Machines, machine: Machine) -> None:
    with pytest.raises(MachineError, match=r"cannot have sockets: .*unknown call"):
        over(world, machine, lambda one: call_channel(machine, one, "python3", "odd"))


def test_path_of_python_is_one_word() -> None:
    assert channel_line("/a b/python3", "open", "k").startswith("exec '/a b/python3' -I -S -c ")


def test_connection_that_is_cut_in_a_command_is_an_error_of_the_machine(
    world: Machines, machine: Machine
) -> None:
    begun = world.homes[0] / "begun"

    async def work(connection: asyncssh.SSHClientConnection) -> BaseException | None:
        line = f"touch {begun}; exec tail -f {begun}"
        command = asyncio.create_task(run_command(machine, connection, line, []), name="command")
        await asyncio.to_thread(until, begun.exists, 20, "the command")
        world.servers[0].kill()
        await asyncio.wait({command})
        return command.exception()

    try:
        error = over(world, machine, work)
    finally:
        world.servers[0].start()

    assert isinstance(error, MachineError)
    assert not error.permanent


def test_command_of_the_worker_has_a_limit(world: Machines, machine: Machine) -> None:
    command = WorkerCommand("sleep 60", b"")

    with pytest.raises(MachineError, match=r"does not answer a command within 0\.2 s"):
        over(world, machine, lambda one: call_worker(machine, one, command, 0.2))


@pytest.mark.parametrize(
    ("code", "field", "value"),
    [
        ("no_python", "pythonPath", "/opt/py"),
        ("wrong_python", "pythonPath", "/opt/py"),
        ("disk_full", "folder", "/nni"),
        ("not_writable", "folder", "/nni"),
        ("odd", "host", "box"),
    ],
)
def test_error_of_the_worker_shows_the_value_of_its_field(
    code: str, field: str, value: str
) -> None:
    machine = Machine(3, "box", "ann", python_path="/opt/py", folder="/nni")

    for permanent in (True, False):
        failure = WorkerFailure(code, "words", "remedy", permanent=permanent)
        found = worker_error(machine, failure)
        assert (found.field, found.value) == (f"machineList[3].{field}", value)
        assert (found.remedy, found.permanent) == ("remedy", permanent)


def script(world: Machines, text: str) -> str:
    """Write a program into the home of the machine; return its path."""
    path = world.homes[0] / "a program"
    path.write_text(f"#!/bin/sh\ncat >/dev/null\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_last_report_of_the_program_of_the_sockets_is_read(
    world: Machines, machine: Machine
) -> None:
    program = script(world, """echo '{"a": 1}'; echo '{"a": 2}'; echo bye""")

    assert over(world, machine, lambda one: call_channel(machine, one, program, "open")) == {"a": 2}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("exit 1", "no reason given"),
        ("echo first >&2; echo last >&2", "last"),
        (f"echo b{'a' * 500} >&2", "a" * 500),
    ],
)
def test_program_of_the_sockets_that_reports_nothing_is_an_error(
    world: Machines, machine: Machine, text: str, reason: str
) -> None:
    program = script(world, text)

    with pytest.raises(MachineError) as caught:
        over(world, machine, lambda one: call_channel(machine, one, program, "open"))

    assert caught.value.rule == f"cannot have sockets: {reason}"
    assert (caught.value.field, caught.value.value) == ("machineList[0].host", "127.0.0.1")
    assert "/tmp" in caught.value.remedy
