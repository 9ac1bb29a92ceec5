"""One SSH connection of a machine with all that depends on it: facts, forwards, watch."""

import asyncio
import json
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

import asyncssh

from svc_trial_runner.fleet.adapters.bundles.worker_commands import (
    CommandResult,
    WorkerCommand,
    WorkerCommands,
    WorkerFailure,
)
from svc_trial_runner.fleet.adapters.bundles.worker_facts import (
    WorkerFacts,
    check_facts,
    read_facts,
)
from svc_trial_runner.fleet.adapters.remote.commands import (
    CALL_LIMIT_S,
    call_channel,
    call_worker,
    channel_line,
    channel_program,
    run_command,
    worker_error,
)
from svc_trial_runner.fleet.adapters.remote.errors import MachineError, connection_error
from svc_trial_runner.fleet.adapters.remote.machines import Machine
from svc_trial_runner.fleet.adapters.remote.worker_channel import (
    BUS_SOCKET,
    MANAGER_SOCKET,
    SILENCE_S,
)
from svc_trial_runner.fleet.ports import InstallationEndpoints

_LOOPBACK: Final = "127.0.0.1"
_NATS_PORT: Final = 4222
_CLOSE_LIMIT_S: Final = 2.0
_CUT_EVERY_S: Final = 30.0
"""Shortest time between reports that a watch was cut: a machine may end each watch at once."""


class Session:
    """Open SSH connection to one machine: commands, facts, forwards, watch of processes.

    Args:
        machine: its entry.
        connection: logged in; owned by the session.
        key: 8 characters that name the folder of sockets.
        on_end: called when a watched process ends.
    """

    def __init__(
        self,
        machine: Machine,
        connection: asyncssh.SSHClientConnection,
        key: str,
        on_end: Callable[[], None],
    ) -> None:
        self.machine = machine
        self._connection = connection
        self._key = key
        self._on_end = on_end
        self._commands = WorkerCommands(folder=machine.folder, python_path=machine.python_path)
        self._facts: WorkerFacts | None = None
        self._listeners: list[asyncssh.SSHListener] = []
        self._bundles: set[str] = set()
        self._folder: str | None = None
        self._opening = asyncio.Lock()
        """A published folder ends those that are not: forwards are opened once."""
        self._programs: list[asyncssh.SSHClientProcess[bytes]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._relay: asyncssh.SSHClientProcess[bytes] | None = None
        self._watcher: asyncssh.SSHClientProcess[bytes] | None = None
        self._watched: set[int] = set()
        self._cut_at_s = -math.inf
        """When the last watch was cut, by the clock of the loop."""

    @property
    def commands(self) -> WorkerCommands:
        """Builder of the worker's commands; uses Python of the PATH until a probe names another."""
        return self._commands

    async def facts(self) -> WorkerFacts:
        """Probe the machine once per connection and return its facts; raise if no agent can run.

        Raises:
            MachineError: it cannot run agents.
        """
        if self._facts is None:
            version = str(self._connection.get_extra_info("server_version"))
            if "windows" in version.lower():
                raise MachineError(
                    self.machine,
                    "host",
                    "has the system Windows, which is not supported as a worker",
                    self.machine.host,
                    "use a machine with Linux (WSL with an SSH server of its own is one)",
                    permanent=True,
                )
            command = self._commands.probe()
            result = await run_command(
                self.machine, self._connection, command.line, command.chunks()
            )
            try:
                facts = read_facts(result, self.machine.host)
                check_facts(facts)
            except WorkerFailure as failure:
                raise worker_error(self.machine, failure) from failure
            self._facts = facts
            self._commands = self._commands.with_interpreter(facts.interpreter)
        return self._facts

    def has_bundle(self, digest: str) -> bool:
        """Return whether the machine had a bundle unpacked when it was last asked."""
        return digest in self._bundles or (
            self._facts is not None and digest in self._facts.bundles
        )

    def note_bundle(self, digest: str) -> None:
        """Remember that the machine has a bundle unpacked."""
        self._bundles.add(digest)

    async def call(self, command: WorkerCommand, limit_s: float = CALL_LIMIT_S) -> dict[str, Any]:
        """Run a command of the worker's program and return its report.

        Raises:
            MachineError: the connection is cut, or the command does not end.
            WorkerFailure: the command reported an error.
        """
        return await call_worker(self.machine, self._connection, command, limit_s)

    async def run(self, line: str, content: Iterable[bytes], limit_s: float) -> CommandResult:
        """Run a command by the user's shell within a time limit; return output and exit status.

        Raises:
            MachineError: the connection is cut, or the command does not end.
        """
        return await run_command(self.machine, self._connection, line, content, limit_s)

    async def open_forwards(self, endpoints: InstallationEndpoints) -> str:
        """Forward bus and manager to sockets on the machine; return their folder.

        They end with the connection. A second call returns the same folder, also while the first
        one opens it: several agents may be launched at once.

        Args:
            endpoints: addresses of bus and manager as this machine reaches them.

        Raises:
            MachineError: the machine refuses both sockets and ports.
        """
        async with self._opening:
            if self._folder is None:
                self._folder = await self._open_folder(endpoints)
            return self._folder

    async def _open_folder(self, endpoints: InstallationEndpoints) -> str:
        python = (await self.facts()).interpreter
        made = await call_channel(self.machine, self._connection, python, "open", self._key)
        base, name = str(made["base"]), str(made["name"])
        bus = urlsplit(endpoints.bus)
        bus_target = (bus.hostname or _LOOPBACK, bus.port or _NATS_PORT)
        manager_host, _, manager_port = endpoints.manager_grpc.rpartition(":")
        manager_target = (manager_host.strip("[]") or _LOOPBACK, int(manager_port))
        try:
            for socket, target in ((BUS_SOCKET, bus_target), (MANAGER_SOCKET, manager_target)):
                listener = await self._connection.forward_remote_path_to_port(
                    f"{base}/{name}/{socket}", *target
                )
                self._listeners.append(listener)
        except asyncssh.ChannelListenError:
            await self._open_ports(python, f"{base}/{name}", bus_target, manager_target)
        except (OSError, asyncssh.Error) as error:
            raise connection_error(self.machine, error) from error
        await call_channel(self.machine, self._connection, python, "publish", base, name)
        return base

    async def _open_ports(
        self, python: str, folder: str, bus: tuple[str, int], manager: tuple[str, int]
    ) -> None:
        """Forward bus and manager to ports of the machine's loopback; relay its sockets to them."""
        ports = await self._forward_ports([bus, manager])
        await self._start_program(python, "relay", folder, *map(str, ports))

    async def _forward_ports(self, targets: Iterable[tuple[str, int]]) -> list[int]:
        """Forward free loopback ports of the remote machine to local addresses; return the ports.

        Raises:
            MachineError: the machine refuses.
        """
        ports = []
        try:
            for target in targets:
                listener = await self._connection.forward_remote_port(_LOOPBACK, 0, *target)
                self._listeners.append(listener)
                ports.append(listener.get_port())
        except asyncssh.ChannelListenError as error:
            raise MachineError(
                self.machine,
                "host",
                f"refuses to forward: {error}",
                self.machine.host,
                "set AllowStreamLocalForwarding (or AllowTcpForwarding) to yes in its sshd_config",
                permanent=True,
            ) from error
        except (OSError, asyncssh.Error) as error:
            raise connection_error(self.machine, error) from error
        return ports

    async def open_relay(
        self, python: str, target: tuple[str, int], port: int, peers: Sequence[str]
    ) -> tuple[str, int]:
        """Make the machine forward connections of its network to a local address.

        The relay ends with the connection, or when another one is opened. The machine's SSH server
        listens on loopback only, and a program there on all addresses.

        Args:
            python: interpreter of the machine.
            target: host and port that this machine reaches.
            port: on which the program listens; 0, or a taken one: any free one.
            peers: names or addresses of machines that are to reach it.

        Returns:
            The machine's address on the way to the peers, empty if it has none, and the port.

        Raises:
            MachineError: the machine refuses.
        """
        if self._relay is not None:
            earlier, self._relay = self._relay, None
            earlier.close()
        [inner] = await self._forward_ports([target])
        words = ("listen", str(port), str(inner), *peers)
        program, report = await self._start_program(python, *words)
        self._relay = program
        task = asyncio.create_task(self._keep(program), name="relay of a machine")
        self._tasks.append(task)
        return str(report["address"]), int(report["port"])

    async def _keep(self, relay: "asyncssh.SSHClientProcess[bytes]") -> None:
        """Send heartbeats to a relay until it ends; then close the connection unless replaced.

        The owner of the session opens both again.
        """
        with suppress(OSError, asyncssh.Error):
            while not relay.is_closing():
                relay.stdin.write(b"\n")
                with suppress(TimeoutError):
                    async with asyncio.timeout(SILENCE_S / 3):
                        await relay.wait_closed()
                        break
        if relay is self._relay:
            self._connection.close()

    async def _start_program(
        self, python: str, *words: str
    ) -> tuple["asyncssh.SSHClientProcess[bytes]", dict[str, Any]]:
        """Start a channel program, which runs until its input ends; return it and its JSON line.

        Raises:
            MachineError: it does not start.
        """
        try:
            async with asyncio.timeout(CALL_LIMIT_S):
                program = await self._connection.create_process(
                    channel_line(python, *words), encoding=None, request_pty=False
                )
                self._programs.append(program)
                program.stdin.write(channel_program())
                while line := await program.stdout.readline():
                    if line.startswith(b"{"):
                        return program, json.loads(line)
                reason = (await program.stderr.read()).decode("utf-8", "replace").strip()
        except (OSError, asyncssh.Error, TimeoutError) as error:
            raise connection_error(self.machine, error) from error
        raise MachineError(
            self.machine, "host", f"cannot run {words[0]}: {reason[-500:]}", self.machine.host
        )

    async def watch(self, process_ids: Iterable[int]) -> None:
        """Start to watch processes: `on_end` is called when one ends, or the watch is cut.

        Processes of a watch that was cut are watched anew by the next call.

        Raises:
            MachineError: the watch cannot be started.
        """
        if self._watcher is None or self._watcher.is_closing():
            self._watched.clear()
        added = set(process_ids) - self._watched
        if not added:
            return
        if self._watcher is None or self._watcher.is_closing():
            python = (await self.facts()).interpreter
            self._watcher, _ = await self._start_program(python, "watch", self._folder or "")
            self._tasks.append(
                asyncio.create_task(self._read_ends(self._watcher), name="watch of a machine")
            )
        with suppress(OSError):  # a cut is noticed by the owner of the session
            self._watcher.stdin.write("".join(f"{one}\n" for one in sorted(added)).encode())
        self._watched |= added

    async def _read_ends(self, watcher: "asyncssh.SSHClientProcess[bytes]") -> None:
        with suppress(OSError, asyncssh.Error):
            while line := await watcher.stdout.readline():
                if "ended" in json.loads(line):
                    self._on_end()
        if self._watcher is watcher:  # it may have closed its output, and not yet the channel
            self._watcher = None
        watcher.close()
        self._programs.remove(watcher)
        now_s = asyncio.get_running_loop().time()
        if now_s - self._cut_at_s >= _CUT_EVERY_S:
            self._on_end()
        self._cut_at_s = now_s

    async def close_folder(self) -> None:
        """Close the forwards and remove the folder of sockets on the machine.

        Raises:
            MachineError: the connection is cut.
        """
        python = (await self.facts()).interpreter
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        await call_channel(self.machine, self._connection, python, "close", self._key)
        self._folder = None

    async def wait_closed(self) -> None:
        """Wait until the connection is closed or cut."""
        await self._connection.wait_closed()

    async def aclose(self) -> None:
        """Close the connection, within a limit and without raising; agents run on."""
        for program in self._programs:
            program.close()
        self._connection.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with suppress(OSError, asyncssh.Error, TimeoutError):
            async with asyncio.timeout(_CLOSE_LIMIT_S):
                await self._connection.wait_closed()
        self._connection.abort()
