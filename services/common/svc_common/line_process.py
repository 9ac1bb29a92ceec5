"""Child processes with user code that exchange lines with their service over two pipes."""

import asyncio
import fcntl
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

from svc_common.code_user import SAME_USER, CodeUser
from svc_common.errors import FailedPreconditionError
from svc_common.large_work import ON_LOOP_BYTES, off_loop
from svc_common.process_log import ProcessLog

_READ_BYTES: Final = 1 << 18
LINE_LIMIT_BYTES: Final = 32 * 1024 * 1024
"""Longest line: some times the largest message of the bus, which a line may hold as text."""
_INVALID: Final = (ValueError, KeyError, TypeError, RecursionError)

T = TypeVar("T")


class LineSink(Protocol[T]):
    """Interface that decodes a process's lines, and receives their values and its end."""

    def decode(self, line: bytes) -> T:
        """Return the value of a whole line, without its terminator; called in any thread.

        Raises:
            ValueError: it cannot be used; the process is killed, and no more lines are decoded.
            KeyError: as above.
            TypeError: as above.
            RecursionError: as above.
        """
        ...

    def on_values(self, values: Sequence[T]) -> None:
        """Handle the values of lines, in order, on the event loop.

        Raises:
            ValueError: one cannot be used, as in `decode`.
            KeyError: as above.
            TypeError: as above.
            RecursionError: as above.
        """
        ...

    def on_end(self, reason: str) -> None:
        """Handle the end of the process, once, after its last line.

        Args:
            reason: cause of the end in words, with exit code or signal.
        """
        ...


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """Plan of a process: label, command, environment, folder, log, and the longest line allowed."""

    label: str
    """What it is in texts, such as `the algorithm`."""
    command: Callable[[int, int], list[str]]
    """Makes the command line from the ends of the pipes to read and to write."""
    environment: dict[str, str] = field(repr=False)
    directory: Path
    """Working directory."""
    log: ProcessLog
    """Gets what it writes to stdout and stderr."""
    shared: tuple[Path, ...] = ()
    """Folders whose files services read after its end, where it has an account of its own."""
    line_limit_bytes: int = LINE_LIMIT_BYTES
    """Longest line; a process with a longer one is killed, before it fills the memory."""


class LineProcess(Generic[T]):
    """Child process to which lines are sent, and whose lines a sink gets; made by `start_process`.

    User code may write lines of any size: large ones are decoded away from the event loop, and no
    more are read meanwhile.

    Args:
        process: the child.
        plan: what it was started with.
        pipes: write end of its input and read end of its output, owned from now on.
        sink: receives the lines.
        code_user: account of the process.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        plan: ProcessPlan,
        pipes: tuple[int, int],
        sink: LineSink[T],
        code_user: CodeUser = SAME_USER,
    ) -> None:
        self._code_user = code_user
        self._process = process
        self._plan = plan
        self._sink: LineSink[T] | None = sink
        self._protocol_error = ""
        self._input, self._output = pipes
        self._unwritten = bytearray()
        self._unfinished: list[bytes] = []
        self._unfinished_bytes = 0
        self._decoding: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        for pipe in pipes:
            os.set_blocking(pipe, False)
        self._loop.add_reader(self._output, self._read)
        self._closed = False
        self._waiter = self._loop.create_task(self._wait(), name=f"process {process.pid}")

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._process.pid

    def send(self, text: str) -> None:
        """Queue text for the process's input, without waiting; drop it after the process's end."""
        if self._closed:
            return
        idle = not self._unwritten
        self._unwritten += text.encode()
        if idle:
            self._write()

    def kill(self, reason: str) -> None:
        """Kill the process group; the sink's `on_end` gets the first reason given."""
        self._protocol_error = self._protocol_error or reason
        if self._process.returncode is None:
            self._signal_group()

    async def aclose(self) -> None:
        """Kill the process's group and wait for its end, without a report of the end."""
        self._sink = None
        if self._process.returncode is None:
            self._signal_group()
        await self._waiter

    def _signal_group(self) -> None:
        """Kill the process and its children (one process group); ignore a group that has ended."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def _write(self) -> None:
        """Write queued bytes to the pipe; resume when it is writable if it is full."""
        try:
            while self._unwritten:
                written = os.write(self._input, self._unwritten)
                del self._unwritten[:written]
        except BlockingIOError:
            self._loop.add_writer(self._input, self._write)
            return
        except BrokenPipeError:
            self._unwritten.clear()  # its end is reported by `_wait`
        self._loop.remove_writer(self._input)

    def _read(self) -> None:
        try:
            chunk = os.read(self._output, _READ_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self._loop.remove_reader(self._output)
            return
        if self._protocol_error:
            return
        self._unfinished.append(chunk)
        self._unfinished_bytes += len(chunk)
        if b"\n" in chunk:
            *lines, rest = b"".join(self._unfinished).split(b"\n")
            self._unfinished, self._unfinished_bytes = [rest], len(rest)
            if sum(map(len, lines)) <= ON_LOOP_BYTES:
                self._pass_on(*self._decoded(lines))
            else:
                self._loop.remove_reader(self._output)
                name = f"lines of process {self.pid}"
                self._decoding = self._loop.create_task(self._decode(lines), name=name)
        elif self._unfinished_bytes > self._plan.line_limit_bytes:
            self._unfinished = []
            self._refuse(f"a line must have at most {self._plan.line_limit_bytes:,} bytes")

    async def _decode(self, lines: Sequence[bytes]) -> None:
        """Decode large lines in a thread and pass them on; then go on reading."""
        self._pass_on(*await off_loop(sum(map(len, lines)), self._decoded, lines))
        self._decoding = None
        self._loop.add_reader(self._output, self._read)

    def _decoded(self, lines: Sequence[bytes]) -> tuple[list[T], str]:
        """Return the values of the lines before the first invalid one, and its error or ''."""
        values: list[T] = []
        sink = self._sink
        if sink is None or self._protocol_error:
            return values, ""  # output after an invalid line cannot be trusted
        try:
            for line in lines:
                values.append(sink.decode(line))  # noqa: PERF401 - values before an error count
        except _INVALID as error:
            return values, str(error)
        return values, ""

    def _pass_on(self, values: Sequence[T], error: str) -> None:
        if self._sink is None or self._protocol_error:
            return
        try:
            self._sink.on_values(values)
        except _INVALID as invalid:
            error = str(invalid)
        if error:
            self._refuse(error)

    def _refuse(self, reason: str) -> None:
        """Kill the process, whose output breaks a rule; `on_end` reports `reason`."""
        self._protocol_error = f"{self._plan.label}'s output cannot be used: {reason}"
        self._signal_group()

    async def _wait(self) -> None:
        """Wait until the process exits; kill its group, pass on its last lines, report the end."""
        code = await self._process.wait()
        self._signal_group()  # its children must not outlive it
        if self._code_user.uid is not None:
            for folder in self._plan.shared:
                await asyncio.to_thread(self._code_user.open_to_services, folder)
        if self._decoding is not None:
            await self._decoding
        self._loop.remove_reader(self._output)
        # No more than the pipe holds: a child of the process may have left its group and write on.
        unread_bytes = fcntl.fcntl(self._output, fcntl.F_GETPIPE_SZ)
        while unread_bytes > 0:
            try:
                chunk = os.read(self._output, unread_bytes)
            except BlockingIOError:
                break  # a child of the process holds the pipe
            if not chunk:
                break
            unread_bytes -= len(chunk)
            self._unfinished.append(chunk)
        *lines, _ = b"".join(self._unfinished).split(b"\n")
        lines = [line for line in lines if line]
        self._pass_on(*await off_loop(sum(map(len, lines)), self._decoded, lines))
        self._close()
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.on_end(self._end_reason(code))

    def _end_reason(self, code: int) -> str:
        reason = self._protocol_error or f"{self._plan.label}'s process {_exit_reason(code)}"
        if code > 0:
            last_line = self._plan.log.last_line()
            reason += f": {last_line}" if last_line else ""
        self._plan.log.note("ERROR" if code or self._protocol_error else "INFO", reason)
        return reason

    def _close(self) -> None:
        self._closed = True
        self._loop.remove_reader(self._output)
        self._loop.remove_writer(self._input)
        os.close(self._input)
        os.close(self._output)


async def start_process(
    plan: ProcessPlan, sink: LineSink[T], code_user: CodeUser = SAME_USER
) -> LineProcess[T]:
    """Start and return a process, leader of a group of its own; its lines go to `sink`.

    Raises:
        FailedPreconditionError: its program cannot be started.
    """
    with ExitStack() as ours, ExitStack() as theirs:
        child_in, commands = _pipe(theirs, ours)
        outputs, child_out = _pipe(ours, theirs)
        command = plan.command(child_in, child_out)
        try:
            with plan.log.open() as output:
                process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd=plan.directory,
                    env=plan.environment,
                    pass_fds=(child_in, child_out),
                    start_new_session=True,
                    **code_user.process_options,
                )
        except OSError as error:
            raise FailedPreconditionError(
                f"{plan.label} cannot be started with {command[0]!r}: {error}"
            ) from error
        ours.pop_all()  # the process has them from now on
    return LineProcess(process, plan, (commands, outputs), sink, code_user)


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """Open a pipe, whose ends are closed with two stacks; return its ends to read and to write."""
    ends = os.pipe()
    for stack, end in zip((reader, writer), ends, strict=True):
        stack.callback(os.close, end)
    return ends


def _exit_reason(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
