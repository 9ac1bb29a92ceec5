"""Pool of child processes that check what users send, each request within a deadline."""

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from svc_common import environment as names
from svc_common.code_user import SAME_USER, CodeUser
from svc_common.errors import InvalidArgumentError, ResourceExhaustedError, UnavailableError
from svc_common.large_work import off_loop
from svc_common.logs import get_logger
from svc_dispatcher.adapters.check_frames import LENGTH, REPLY_LIMIT_BYTES, result_of
from svc_dispatcher.domain.values import Check

DEADLINE_S: Final = 10.0
"""Time limit of one check."""
PROCESSES_LIMIT: Final = 3
"""Most children at a time; one stays when they are idle."""
_WRITTEN_AT_ONCE_BYTES: Final = 1024 * 1024
"""The loop copies what the pipe does not take at once."""
WAITING_LIMIT: Final = 32
"""Most requests that wait for a child."""


class _Child:
    """Warm child process that checks one request at a time over its stdin and stdout."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, environment: Mapping[str, str], code_user: CodeUser) -> "_Child":
        """Start `python -m svc_dispatcher.check_child` with pipes; raise if it cannot start.

        Raises:
            UnavailableError: it cannot be started.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "svc_dispatcher.check_child",
                str(os.getpid()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=dict(environment),
                start_new_session=True,  # SIGCONT reaches all of a session
                **code_user.process_options,
            )
        except OSError as error:
            raise UnavailableError(f"the process that checks cannot be started: {error}") from error
        return cls(process)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    async def ask(self, check: Check, payload: bytes) -> bytes:
        """Write a check request to the child's pipe; wait for its reply and return it.

        Raises:
            ConnectionError: the child has ended.
            asyncio.IncompleteReadError: the child ended before its reply was complete.
            UnavailableError: the reply is too long.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None, "a pipe"
        assert stdout is not None, "a pipe"
        stdin.write(LENGTH.pack(len(payload) + 1) + check.value)
        for start in range(0, len(payload), _WRITTEN_AT_ONCE_BYTES):
            stdin.write(payload[start : start + _WRITTEN_AT_ONCE_BYTES])
            await stdin.drain()
        (length,) = LENGTH.unpack(await stdout.readexactly(LENGTH.size))
        if length > REPLY_LIMIT_BYTES:
            raise UnavailableError(
                f"a check has replied with {length:,} bytes; send less at a time"
            )
        return await stdout.readexactly(length)

    async def kill(self) -> None:
        """Kill the child process and wait for its end; may be called twice."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
        await self._process.wait()


class CheckProcesses:
    """Pool of at most 3 children that run checks of user input under a deadline; bounded queue.

    Args:
        inherited: environment of the children, without the services' secrets.
        deadline_s: time limit of one check, in seconds.
        code_user: account of the children.

    Attributes:
        killed: number of children that exceeded the deadline.
    """

    def __init__(
        self,
        inherited: Mapping[str, str],
        deadline_s: float = DEADLINE_S,
        code_user: CodeUser = SAME_USER,
    ) -> None:
        self._code_user = code_user
        private = {names.NNI_TOKEN, names.NNI_NATS_URL, names.NNI_READY_FD}
        self._environment = {key: value for key, value in inherited.items() if key not in private}
        self._deadline_s = deadline_s
        self._turns = asyncio.Semaphore(PROCESSES_LIMIT)
        self._waiting = 0
        self._idle: list[_Child] = []
        self._closed = False
        self.killed = 0

    async def run(self, check: Check, payload: bytes, field: str) -> dict[str, Any]:
        """Run a check in an idle or new child, killed at the deadline; return its result or raise.

        Args:
            check: kind of the check.
            payload: message of the request, serialized.
            field: field to blame when the deadline is exceeded.

        Raises:
            InvalidArgumentError: the request was refused, or took longer than the deadline.
            ResourceExhaustedError: too many requests wait.
            UnavailableError: the child cannot be started, ended, or sent no valid reply.
        """
        if self._waiting >= WAITING_LIMIT:
            raise ResourceExhaustedError(
                f"{WAITING_LIMIT} checks are waiting already; try again later"
            )
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        try:
            reply = await self._ask(check, payload, field)
            return await off_loop(len(reply), result_of, reply)
        finally:
            self._turns.release()

    @property
    def idle_pids(self) -> list[int]:
        """Process ids of the children that wait for a request."""
        return [child.pid for child in self._idle]

    async def warm_up(self) -> None:
        """Start the first child, so that the first check does not wait for it."""
        if not self._idle and not self._closed:
            self._idle.append(await self._start())

    async def aclose(self) -> None:
        """Close the pool and kill its idle child processes; may be called twice."""
        self._closed = True
        idle, self._idle = self._idle, []
        await asyncio.gather(*(child.kill() for child in idle))

    async def _start(self) -> _Child:
        return await _Child.start(self._environment, self._code_user)

    async def _ask(self, check: Check, payload: bytes, field: str) -> bytes:
        child = self._idle.pop() if self._idle else await self._start()
        usable = False
        try:
            async with asyncio.timeout(self._deadline_s):
                reply = await child.ask(check, payload)
            usable = True
        except TimeoutError:
            self.killed += 1
            get_logger().warning("check took too long", check=check.name, field=field)
            raise InvalidArgumentError(
                field,
                f"must be checked within {self._deadline_s:g} s",
                remedy="use fewer hyperparameters, options and constraints, or simpler ones",
            ) from None
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            raise UnavailableError(
                "the process that checks has ended; the request may be too large for it"
            ) from error
        finally:
            if usable and not self._idle and not self._closed:
                self._idle.append(child)
            else:
                await child.kill()
        return reply
