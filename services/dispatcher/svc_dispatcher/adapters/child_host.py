"""Hosts as child processes: `python -m nni.hpo.host` under the client's interpreter."""

import asyncio
from collections import deque
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from svc_common.client_environment import ClientSide
from svc_common.code_user import SAME_USER, CodeUser
from svc_common.errors import FailedPreconditionError
from svc_common.large_work import ON_LOOP_BYTES, off_loop
from svc_common.line_process import LineProcess, ProcessPlan, start_process
from svc_dispatcher.adapters.dispatcher_log import DispatcherLog
from svc_dispatcher.adapters.host_environment import (
    client_side,
    host_command,
    host_environment,
)
from svc_dispatcher.adapters.host_lines import line_of, output_of, payload_bytes
from svc_dispatcher.domain import answers
from svc_dispatcher.domain.commands import Command
from svc_dispatcher.domain.values import ExperimentSetup
from svc_dispatcher.ports import HostSink

CHECKPOINT: Final = "checkpoint"
"""Folder of an experiment in which its host keeps checkpoints."""


class ChildHost:
    """Algorithm host in a child process: commands and outputs go over pipes as JSON lines.

    Made by `ChildHostLauncher`.

    Args:
        process: the child.
        eager: see `HostLauncher.launch`.
    """

    def __init__(self, process: LineProcess[answers.Output], *, eager: bool) -> None:
        self._process = process
        self._eager = eager
        self._unencoded: deque[tuple[int, Sequence[Command]]] = deque()
        self._encoding: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """Process id of the host."""
        return self._process.pid

    def send(self, commands: Sequence[Command]) -> None:
        """Queue commands as JSON lines for the host's pipe, without waiting.

        Large ones are encoded away from the event loop; later ones then wait for them.
        """
        size_bytes = sum(map(payload_bytes, commands))
        if size_bytes <= ON_LOOP_BYTES and self._encoding is None:
            text = "".join(line_of(command, eager=self._eager) for command in commands)
            self._process.send(text)
            return
        self._unencoded.append((size_bytes, commands))
        if self._encoding is None:
            self._encoding = asyncio.create_task(self._encode(), name=f"host lines {self.pid}")

    async def _encode(self) -> None:
        """Encode queued commands in order, off the loop, and send them; on error kill the host."""
        try:
            while self._unencoded:
                size_bytes, commands = self._unencoded.popleft()
                text = await off_loop(size_bytes, _lines_of, commands, eager=self._eager)
                self._process.send(text)
        except Exception as error:  # noqa: BLE001 - a host without its commands would wait for ever
            self._unencoded.clear()
            self._process.kill(f"commands cannot be sent to the algorithm: {error!r:.200}")
        finally:
            self._encoding = None

    async def aclose(self) -> None:
        """Kill the host's process group and wait for its end, without a report of the end."""
        self._unencoded.clear()
        if self._encoding is not None:
            self._encoding.cancel()
            await asyncio.gather(self._encoding, return_exceptions=True)
        await self._process.aclose()


def _lines_of(commands: Sequence[Command], *, eager: bool) -> str:
    """Return commands encoded as JSON lines, as one text; made to be called in a thread."""
    return "".join(
        line_of(command, eager=eager, size_bytes=payload_bytes(command)) for command in commands
    )


class _HostLines:
    """`LineSink` that decodes a host's JSON lines, passes outputs and end to its session."""

    def __init__(self, sink: HostSink) -> None:
        self._sink = sink

    def decode(self, line: bytes) -> answers.Output:
        """Return the output of a line; raise ValueError if it breaks the protocol."""
        return output_of(line)

    def on_values(self, values: Sequence[answers.Output]) -> None:
        """Pass outputs on to the session."""
        self._sink.on_outputs(values)

    def on_end(self, reason: str) -> None:
        """Pass the reason of the process's end to the session."""
        self._sink.on_end(reason)


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
        """Start an experiment's algorithm host as a child, with log and environment; return it."""
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
        plan = _plan(setup, client, directory, log)
        process = await start_process(plan, _HostLines(sink), self._code_user)
        return ChildHost(process, eager=eager)


def _plan(
    setup: ExperimentSetup, client: ClientSide, directory: Path, log: DispatcherLog
) -> ProcessPlan:
    return ProcessPlan(
        label="the algorithm",
        command=partial(host_command, client.interpreter),
        environment=host_environment(setup, client, directory),
        directory=directory,
        log=log,
        shared=(directory, directory.parent / CHECKPOINT),
    )
