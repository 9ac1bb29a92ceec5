"""Commands over a machine's SSH connection: the worker's program, and the socket program."""

import asyncio
import inspect
import json
import shlex
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

import asyncssh

from svc_trial_runner.fleet.adapters.bundles.worker_commands import (
    CommandResult,
    WorkerCommand,
    WorkerFailure,
    read_report,
)
from svc_trial_runner.fleet.adapters.remote import worker_channel
from svc_trial_runner.fleet.adapters.remote.errors import MachineError, connection_error
from svc_trial_runner.fleet.adapters.remote.machines import Machine

CALL_LIMIT_S: Final = 60.0
TRANSFER_LIMIT_S: Final = 600.0
"""Of a command that sends a bundle."""
_REASON_CHARACTERS: Final = 500
_FIELDS: Final = {
    "no_python": "pythonPath",
    "wrong_python": "pythonPath",
    "noexec": "folder",
    "disk_full": "folder",
    "not_writable": "folder",
}
"""Fields of a machine's entry by the codes of the worker's errors; others are of the host."""


async def run_command(
    machine: Machine,
    connection: asyncssh.SSHClientConnection,
    line: str,
    content: Iterable[bytes],
    limit_s: float = CALL_LIMIT_S,
) -> CommandResult:
    """Run a command by the user's shell within a time limit; return output and exit status.

    Args:
        machine: for errors.
        connection: to it.
        line: the command.
        content: its input in pieces.
        limit_s: the command is ended after this time.

    Raises:
        MachineError: the connection is cut, or the command does not end.
    """
    try:
        async with asyncio.timeout(limit_s):
            process = await connection.create_process(line, encoding=None, request_pty=False)
            try:
                return await _converse(process, content)
            finally:
                process.close()
    except TimeoutError as error:
        raise MachineError(
            machine,
            "host",
            f"does not answer a command within {limit_s:g} s",
            machine.host,
            "look at the load and the disks of the machine",
        ) from error
    except (OSError, asyncssh.Error) as error:
        raise connection_error(machine, error) from error


async def _converse(
    process: "asyncssh.SSHClientProcess[bytes]", content: Iterable[bytes]
) -> CommandResult:
    """Write a process's input and read its output concurrently; return the result.

    Raises:
        asyncssh.Error: the connection is cut.
    """

    async def write() -> None:
        try:
            for chunk in content:
                process.stdin.write(chunk)
                await process.stdin.drain()
            process.stdin.write_eof()
        except OSError:
            return  # it ended without reading all; its output says why

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(write(), name="input of a worker's command")
            output = group.create_task(process.stdout.read(), name="output of a worker's command")
            errors = group.create_task(process.stderr.read(), name="errors of a worker's command")
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures  # a cut connection fails all of them alike
    await process.wait_closed()
    return CommandResult(output.result(), errors.result(), process.exit_status)


async def call_worker(
    machine: Machine,
    connection: asyncssh.SSHClientConnection,
    command: WorkerCommand,
    limit_s: float = CALL_LIMIT_S,
) -> dict[str, Any]:
    """Run a command of the worker's program and return its report.

    Raises:
        MachineError: the connection is cut, or the command does not end.
        WorkerFailure: the command reported an error.
    """
    result = await run_command(machine, connection, command.line, command.chunks(), limit_s)
    return read_report(result, machine.host)


def worker_error(machine: Machine, failure: WorkerFailure) -> MachineError:
    """Convert an error of the worker's program to the error of a machine's entry."""
    name = _FIELDS.get(failure.code, "host")
    values = {"pythonPath": machine.python_path, "folder": machine.folder}
    return MachineError(
        machine,
        name,
        f"does not serve: {failure}",
        values.get(name, machine.host),
        failure.remedy,
        permanent=failure.permanent,
    )


@cache
def channel_program() -> bytes:
    """Return the source of the socket program, which is sent before each call."""
    return inspect.getsource(worker_channel).encode()


def channel_line(python: str, *words: str) -> str:
    """Return the command that runs the program of the sockets, which is read first.

    The words are not secret: other users of the machine see them.
    """
    load = f"import sys; exec(sys.stdin.buffer.read({len(channel_program())}))"
    return f"exec {shlex.quote(python)} -I -S -c {shlex.quote(load)} {shlex.join(words)}"


async def call_channel(
    machine: Machine, connection: asyncssh.SSHClientConnection, python: str, *words: str
) -> dict[str, Any]:
    """Run a call of the sockets' program on a machine; return its report; raise if it fails.

    Raises:
        MachineError: the connection is cut, or the call failed.
    """
    line = channel_line(python, *words)
    result = await run_command(machine, connection, line, [channel_program()])
    for text in reversed(result.output.decode("utf-8", "replace").splitlines()):
        if text.startswith("{"):
            fields: dict[str, Any] = json.loads(text)
            return fields
    reason = result.error_output.decode("utf-8", "replace").strip().splitlines()
    raise MachineError(
        machine,
        "host",
        f"cannot have sockets: {(reason or ['no reason given'])[-1][-_REASON_CHARACTERS:]}",
        machine.host,
        "allow the user to write to /tmp or to the folder of NNI on the machine",
    )
