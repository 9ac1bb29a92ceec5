"""Child processes of the supervisor: start, readiness, stop, and end with the parent."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from svc_common import environment
from svc_common.entry_point import memory_file
from svc_common.logs import get_logger
from svc_common.own_files import place_for_log, private_folder
from svc_common.tasks import wait_first
from svc_standalone import end_with_parent
from svc_standalone.bus_probe import BusLogin, BusProbe
from svc_standalone.fork_server import ForkedProcess, ForkServer
from svc_standalone.forked_service import ServiceStart

_END_WITH_PARENT: Final = (sys.executable, "-I", "-S", end_with_parent.__file__)
_LOG_LIMIT_BYTES: Final = 32 * 1024 * 1024
"""A larger log is rotated (one generation is kept) when its child starts."""
_PIPE_BYTES: Final = 65_536
_TAIL_BYTES: Final = 2_000


@dataclass(frozen=True, slots=True)
class Command:
    """Command of a child process: arguments, environment, secrets, descriptors, readiness."""

    name: str
    """Name of the service and of its log."""
    arguments: Sequence[str]
    environment: Mapping[str, str]
    reports_ready: bool
    """True if it reports its readiness on `NNI_READY_FD`; the bus does not."""
    halts: re.Pattern[bytes] | None = None
    """Line of its output after which only a restart makes it work again; None: there is none."""
    descriptors: Sequence[int] = ()
    """Descriptors of the supervisor that the child inherits, with the same numbers."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Secret variables, which the child reads from the descriptor `NNI_SECRETS_FD`."""
    package: str = ""
    """Package that a fork server runs in place of the arguments; empty: it cannot."""
    probe: BusLogin | None = None
    """Where the child answers PING as a sign that it works; None: it sends signs by itself."""


class Child:
    """Running child process of the supervisor, with its log, readiness and heartbeat."""

    def __init__(
        self, command: Command, folder: Path, log: Path, forks: ForkServer | None = None
    ) -> None:
        """Start the child, forked or as a program: output to a log, secrets, readiness pipe.

        Args:
            command: command of the process.
            folder: its working directory.
            log: file that its output is appended to.
            forks: server that forks a service; None, or if it cannot: it is a new program.

        Raises:
            OSError: the process cannot be started.
        """
        self.command = command
        self.log = log
        self._loop = asyncio.get_running_loop()
        self._started_s = self._loop.time()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._ready: asyncio.Future[Mapping[str, str]] = self._loop.create_future()
        self.last_sign_s: float | None = None
        """Time of the last sign that its event loop runs, on the loop's clock; None: none yet."""
        self._probe = BusProbe(command.probe, self._note_sign) if command.probe else None
        self.halted = ""
        """Line of its log after which it works no more until it is restarted; empty: none."""
        self._drains: list[Callable[[], None]] = []
        reader, writer = os.pipe()
        signs, beat = os.pipe()
        with _open_log(log) as output:
            self._log_start = output.tell()
            output_end = self._copied_output(output)
            try:
                self._process = self._spawn(folder, output_end, writer, beat, forks)
            except BaseException:
                for descriptor in (reader, signs):
                    os.close(descriptor)
                raise
            finally:
                for descriptor in (writer, beat):
                    os.close(descriptor)
                if output_end != output.fileno():
                    os.close(output_end)
        self._read_later(signs, lambda _: self._note_sign())
        self._pidfd = os.pidfd_open(self._process.pid)
        self._loop.add_reader(self._pidfd, self._reap)
        self._line = b""
        self._reported_error = ""
        self._ready_fd = reader
        os.set_blocking(reader, False)
        self._loop.add_reader(reader, self._read_ready)
        if not command.reports_ready:
            self._ready.set_result({})

    @property
    def pid(self) -> int:
        """Process id; valid until `wait` has returned."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """True if the process has not ended."""
        return not self._ended.done()

    @property
    def ran_s(self) -> float:
        """Seconds since the start."""
        return self._loop.time() - self._started_s

    @property
    def cpu_s(self) -> float:
        """CPU time that the process and its ended children have used, in seconds; 0.0: unknown."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return 0.0
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    async def ready(self) -> Mapping[str, str] | None:
        """Wait for the readiness report; return its fields, or None if the child ended first."""
        await wait_first(asyncio.shield(self._ready), asyncio.shield(self._ended))
        return self._ready.result() if self._ready.done() else None

    async def wait(self) -> int:
        """Return the exit status when the process has ended; negative: number of a signal."""
        return await asyncio.shield(self._ended)

    def kill(self) -> None:
        """Send KILL, if the process has not ended; returns at once."""
        if self.running:
            self._process.kill()

    def reload(self) -> None:
        """Send HUP, if the process has not ended; returns at once."""
        if self.running:
            self._process.send_signal(signal.SIGHUP)

    def terminate(self) -> None:
        """Send TERM, if the process has not ended; returns at once."""
        if self.running:
            self._process.send_signal(signal.SIGTERM)

    async def stop(self, grace_s: float) -> None:
        """Send TERM to the child, and KILL after `grace_s`; wait until it has ended."""
        self.terminate()
        try:
            async with asyncio.timeout(grace_s):
                await self.wait()
        except TimeoutError:
            self._process.kill()
            await self.wait()

    async def look_for_sign(self, limit_s: float) -> None:
        """Send PING if the child has a probe; wait up to `limit_s` for PONG, which is recorded."""
        if self._probe is not None:
            await self._probe.ping(limit_s)

    def failure_reason(self) -> str:
        """Return why the child failed: its report, else its last log line, else empty text."""
        if self._reported_error:
            return self._reported_error
        try:
            with self.log.open("rb") as file:
                file.seek(max(self._log_start, self.log.stat().st_size - _TAIL_BYTES))
                lines = file.read().decode(errors="replace").split("\n")
        except OSError:
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def _copied_output(self, log: IO[bytes]) -> int:
        """Return a descriptor for the child's output: the log, or a pipe searched for `halts`."""
        pattern = self.command.halts
        if pattern is None:
            return log.fileno()
        file = os.dup(log.fileno())
        reader, writer = os.pipe()

        def note(data: bytes) -> None:
            found = pattern.search(data)
            if found is not None:
                self.halted = self.halted or found.group(0).decode(errors="replace").strip()
            with suppress(OSError):  # a disk that is full costs lines, and nothing else
                os.write(file, data)

        self._read_later(reader, note, file)
        return writer

    def _note_sign(self) -> None:
        self.last_sign_s = self._loop.time()

    def _read_later(self, descriptor: int, use: Callable[[bytes], None], *more: int) -> None:
        """Pass a pipe's data to a callback as it comes; close all descriptors at its end."""
        os.set_blocking(descriptor, False)
        is_open = True

        def read() -> None:
            nonlocal is_open
            while is_open:
                try:
                    data = os.read(descriptor, _PIPE_BYTES)
                except BlockingIOError:
                    return
                if data:
                    use(data)
                    continue
                is_open = False
                self._loop.remove_reader(descriptor)
                for one in (descriptor, *more):
                    os.close(one)

        self._loop.add_reader(descriptor, read)
        self._drains.append(read)

    def _spawn(
        self, folder: Path, output: int, writer: int, beat: int, forks: ForkServer | None
    ) -> subprocess.Popen[bytes] | ForkedProcess:
        variables = {**self.command.environment}
        passed = [*self.command.descriptors]
        if self.command.reports_ready:
            variables[environment.NNI_READY_FD] = str(writer)
            variables[environment.NNI_HEARTBEAT_FD] = str(beat)
            passed += (writer, beat)
        secrets = memory_file(self.command.secrets) if self.command.secrets else -1
        if secrets >= 0:
            variables[environment.NNI_SECRETS_FD] = str(secrets)
            passed.append(secrets)
        try:
            forked = None
            if forks is not None and self.command.package:
                start = ServiceStart(self.command.package, variables, str(folder), passed)
                forked = forks.start(start, output, passed)
            return forked or self._execute(folder, output, variables, passed)
        finally:
            if secrets >= 0:
                os.close(secrets)

    def _execute(
        self, folder: Path, output: int, variables: Mapping[str, str], passed: Sequence[int]
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            # Without a function between fork and exec: see that program.
            [*_END_WITH_PARENT, str(os.getpid()), *self.command.arguments],
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=passed,
            # Signals of the terminal reach the supervisor only, which stops the children in
            # order.
            start_new_session=True,
        )

    def _reap(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._read_ready()
        self._close_ready()
        for drain in self._drains:
            drain()
        if self._probe is not None:
            self._probe.close()
        if not self._ended.done():
            self._ended.set_result(self._process.wait())

    def _read_ready(self) -> None:
        if self._ready_fd < 0:
            return
        try:
            data = os.read(self._ready_fd, 65536)
        except BlockingIOError:
            return
        self._line += data
        if b"\n" in self._line and not self._ready.done():
            facts = json.loads(self._line.partition(b"\n")[0])
            if not facts.pop("ready", False):
                self._reported_error = str(facts.get("error", ""))
            else:
                self._ready.set_result({str(key): str(value) for key, value in facts.items()})
        if not data:
            self._close_ready()

    def _close_ready(self) -> None:
        if self._ready_fd >= 0:
            self._loop.remove_reader(self._ready_fd)
            os.close(self._ready_fd)
            self._ready_fd = -1


def _open_log(path: Path) -> IO[bytes]:
    """Open a child's log for appending, rotated if large; `/dev/null` if that is impossible."""
    try:
        private_folder(path.parent)
        place_for_log(path)
        if path.exists() and path.stat().st_size > _LOG_LIMIT_BYTES:
            path.replace(path.with_suffix(path.suffix + ".1"))
        return path.open("ab")
    except OSError as error:  # the disk is full or read-only
        get_logger().error("child runs without a log", path=str(path), error=str(error))
        return Path(os.devnull).open("ab")
