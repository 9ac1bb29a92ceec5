"""Child process as the fleet sees it: its start, the calls to it, and its end."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Sequence
from typing import Any, Final

from svc_common import environment
from svc_common.logs import get_logger
from svc_common.tasks import TaskOwner
from svc_trial_runner.fleet.adapters.isolated.peer import (
    CANCEL_S,
    HandleCall,
    Peer,
    PeerGoneError,
)
from svc_trial_runner.fleet.ports import PlatformError

END_S: Final = 5.0
"""Time from the end of the socket to the kill of the process."""
_STDERR: Final = 2


class ChildProcess:
    """Running child of this process, which serves calls on a socket that only these two have.

    Its environment has neither secrets nor descriptors of the fleet. What it writes to stdout and
    stderr is in the log of the fleet.
    """

    def __init__(self, process: asyncio.subprocess.Process, peer: Peer) -> None:
        self._process = process
        self._peer = peer
        self._tasks = TaskOwner(
            lambda name, error: get_logger().error("task failed", task=name, exc_info=error)
        )
        self._reading = self._tasks.start(peer.run(), "child process")

    @classmethod
    async def start(
        cls, command: Sequence[str], handle: HandleCall, cancel_s: float = CANCEL_S
    ) -> "ChildProcess":
        """Start a process; return it before it has served a call.

        Args:
            command: program and arguments; the descriptor of the socket is added.
            handle: called for each call of the child.
            cancel_s: time within which the child has to end a call that was cancelled.

        Raises:
            PlatformError: it cannot be started.
        """
        own, given = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with given:
            try:
                process = await asyncio.create_subprocess_exec(
                    *command,
                    str(given.fileno()),
                    pass_fds=[given.fileno()],
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=_STDERR,  # the fleet's own says when it is ready
                    env=environment.for_user_code(),
                    start_new_session=True,
                )
            except OSError as error:
                own.close()
                words = f"the process of the platform cannot be started: {error}"
                raise PlatformError(words) from error
        return cls(process, await Peer.open(own, handle, cancel_s))

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """True if the process serves no more calls."""
        return self.stuck or self._reading.done() or self._process.returncode is not None

    @property
    def stuck(self) -> bool:
        """True if the process has not ended a cancelled call in time."""
        return self._peer.stuck

    async def call(self, method: str, params: object = None) -> Any:  # noqa: ANN401 - JSON
        """Call a method of the child; return its result; raise with the exit status if it ended.

        Raises:
            PlatformError: the call has failed, or the process has ended.
        """
        try:
            return await self._peer.call(method, params)
        except PeerGoneError as error:
            raise PeerGoneError(await self._words_of_the_end()) from error

    def kill(self) -> None:
        """Kill the process and its group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def aclose(self) -> None:
        """End the process, by a kill if it does not end in time; may be called twice."""
        try:
            await self._peer.aclose()
            async with asyncio.timeout(END_S):
                await self._process.wait()
        except TimeoutError:
            get_logger().warning("child process killed", pid=self._process.pid)
        finally:
            if self._process.returncode is None:
                self.kill()
            await self._process.wait()
            await self._tasks.aclose()

    async def _words_of_the_end(self) -> str:
        """Wait, within a limit, for the process's end; return how it ended, as text."""
        try:
            async with asyncio.timeout(END_S):
                code = await self._process.wait()
        except TimeoutError:
            return "its process has closed the connection"
        if code < 0:
            return f"its process was killed by signal {-code} ({signal.strsignal(-code)})"
        return f"its process ended with exit code {code}; the log of the fleet says why"
