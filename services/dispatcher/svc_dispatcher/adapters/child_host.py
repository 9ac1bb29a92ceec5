"""Hosts as child processes: `python -m nni.hpo.host` under the client's interpreter."""

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from svc_common.code_user import SAME_USER, CodeUser
from svc_common.errors import FailedPreconditionError
from svc_dispatcher.adapters.dispatcher_log import DispatcherLog
from svc_dispatcher.adapters.host_environment import (
    client_side,
    host_command,
    host_environment,
)
from svc_dispatcher.adapters.host_lines import line_of, output_of
from svc_dispatcher.domain import answers
from svc_dispatcher.domain.commands import Command
from svc_dispatcher.domain.values import ExperimentSetup
from svc_dispatcher.ports import HostSink

CHECKPOINT: Final = "checkpoint"
"""Folder of an experiment in which its host keeps checkpoints."""
_READ_BYTES: Final = 1 << 18


class ChildHost:
    """Algorithm host in a child process: commands and outputs go over pipes as JSON lines.

    Made by `ChildHostLauncher`.

    Args:
        process: the child.
        commands: write end of the command pipe, owned from now on.
        outputs: read end of the answer pipe, owned from now on.
        sink: receives the outputs.
        log: `dispatcher.log` of the experiment.
        eager: see `HostLauncher.launch`.
        code_user: account of the host.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        commands: int,
        outputs: int,
        sink: HostSink,
        log: DispatcherLog,
        *,
        eager: bool,
        code_user: CodeUser = SAME_USER,
    ) -> None:
        self._code_user = code_user
        self._process = process
        self._sink: HostSink | None = sink
        self._log = log
        self._protocol_error = ""
        self._eager = eager
        self._commands = commands
        self._outputs = outputs
        self._unwritten = bytearray()
        self._unfinished: list[bytes] = []
        self._loop = asyncio.get_running_loop()
        os.set_blocking(commands, False)
        os.set_blocking(outputs, False)
        self._loop.add_reader(outputs, self._read_outputs)
        self._closed = False
        self._waiter = self._loop.create_task(self._wait(), name=f"host {process.pid}")

    @property
    def pid(self) -> int:
        """Process id of the host."""
        return self._process.pid

    def send(self, commands: Sequence[Command]) -> None:
        """Queue commands as JSON lines for the host's pipe, without waiting."""
        if self._closed:
            return
        text = "".join(line_of(command, eager=self._eager) for command in commands)
        idle = not self._unwritten
        self._unwritten += text.encode()
        if idle:
            self._write()

    async def aclose(self) -> None:
        """Kill the host's process group and wait for its end, without a report of the end."""
        self._sink = None
        if self._process.returncode is None:
            self._signal_group()
        await self._waiter

    def _signal_group(self) -> None:
        """Kill the host and its children (one process group); ignore a group that has ended."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def _write(self) -> None:
        """Write queued bytes to the host's pipe; resume when it is writable if it is full."""
        try:
            while self._unwritten:
                written = os.write(self._commands, self._unwritten)
                del self._unwritten[:written]
        except BlockingIOError:
            self._loop.add_writer(self._commands, self._write)
            return
        except BrokenPipeError:
            self._unwritten.clear()  # its end is reported by `_wait`
        self._loop.remove_writer(self._commands)

    def _read_outputs(self) -> None:
        try:
            chunk = os.read(self._outputs, _READ_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self._loop.remove_reader(self._outputs)
            return
        self._unfinished.append(chunk)
        if b"\n" not in chunk:
            return
        *lines, rest = b"".join(self._unfinished).split(b"\n")
        self._unfinished = [rest]
        self._pass_on(lines)

    def _pass_on(self, lines: list[bytes]) -> None:
        if self._sink is None or self._protocol_error:
            return  # output after an invalid line cannot be trusted, least of all `done`
        outputs: list[answers.Output] = []
        try:
            for line in lines:
                outputs.append(output_of(line))  # noqa: PERF401 - outputs before an invalid line count
        except (ValueError, KeyError, TypeError) as error:
            self._protocol_error = f"the algorithm's output cannot be used: {error}"
            self._signal_group()
        # Passed on even so: handled commands must not be blamed for the end of the host.
        self._sink.on_outputs(outputs)

    async def _wait(self) -> None:
        """Wait for the host to exit; kill its group, pass on its last output, report the end."""
        code = await self._process.wait()
        self._signal_group()  # its children must not outlive it
        if self._code_user.uid is not None:
            for folder in (self._log.path.parent, self._log.path.parents[1] / CHECKPOINT):
                await asyncio.to_thread(self._code_user.open_to_services, folder)
        while True:
            try:
                chunk = os.read(self._outputs, _READ_BYTES)
            except BlockingIOError:
                break  # a child of the host holds the pipe
            if not chunk:
                break
            self._unfinished.append(chunk)
        *lines, _ = b"".join(self._unfinished).split(b"\n")
        self._pass_on([line for line in lines if line])
        self._close()
        sink, self._sink = self._sink, None
        if sink is not None:
            reason = self._protocol_error or f"the algorithm's process {_exit_reason(code)}"
            if code > 0:
                last_line = self._log.last_line()
                reason += f": {last_line}" if last_line else ""
            self._log.note("ERROR", reason)
            sink.on_end(reason)

    def _close(self) -> None:
        self._closed = True
        self._loop.remove_reader(self._outputs)
        self._loop.remove_writer(self._commands)
        os.close(self._commands)
        os.close(self._outputs)


class ChildHostLauncher:
    """`HostLauncher` that starts each algorithm host as a child process.

    Args:
        inherited: environment for hosts whose experiment has none.
        code_user: account of the hosts.
    """

    def __init__(self, inherited: dict[str, str], code_user: CodeUser = SAME_USER) -> None:
        self._inherited = inherited
        self._code_user = code_user

    async def launch(self, setup: ExperimentSetup, sink: HostSink, *, eager: bool) -> ChildHost:
        """Open an experiment's log and environment; start its algorithm host as a child process."""
        directory = Path(setup.directory) / "log"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            checkpoint = directory.parent / CHECKPOINT
            if self._code_user.uid is not None:
                checkpoint.mkdir(exist_ok=True)
                self._code_user.share(checkpoint)
                self._code_user.share(directory, sticky=True)
            client = client_side(setup, self._inherited)
            log = DispatcherLog(directory)
        except (OSError, ValueError) as error:
            raise FailedPreconditionError(
                f"the algorithm cannot be started: {error}; check the folder {setup.directory}"
            ) from error
        environment = host_environment(setup, client, directory)
        return await self._spawn(client.interpreter, environment, directory, log, sink, eager=eager)

    async def _spawn(
        self,
        interpreter: str,
        environment: dict[str, str],
        directory: Path,
        log: DispatcherLog,
        sink: HostSink,
        *,
        eager: bool,
    ) -> ChildHost:
        child_in, commands = os.pipe()
        outputs, child_out = os.pipe()
        command = host_command(interpreter, child_in, child_out)
        try:
            with log.open() as output:
                process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd=directory,
                    env=environment,
                    pass_fds=(child_in, child_out),
                    start_new_session=True,
                    **self._code_user.process_options,
                )
        except OSError as error:
            os.close(commands)
            os.close(outputs)
            raise FailedPreconditionError(
                f"the algorithm cannot be started with {command[0]!r}: {error}"
            ) from error
        finally:
            os.close(child_in)
            os.close(child_out)
        return ChildHost(
            process, commands, outputs, sink, log, eager=eager, code_user=self._code_user
        )


def _exit_reason(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
