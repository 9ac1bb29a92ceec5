"""Port for running Slurm's commands where they are, and its implementation for this machine."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from svc_trial_runner.fleet.adapters.bundles.worker_commands import CommandResult
from svc_trial_runner.fleet.adapters.job_agents import rule_error
from svc_trial_runner.fleet.domain.agents import PlatformProblem
from svc_trial_runner.fleet.ports import PlatformError

END_S: Final = 5.0
"""Time within which a killed command has to end."""


class CommandRunner(Protocol):
    """Interface of a machine with Slurm's commands: this one, or a login node.

    Arguments are passed as they are, without a shell. No secret is an argument: other users see
    the command lines of a login node.
    """

    @property
    def is_here(self) -> bool:
        """True if the commands run on this machine."""
        ...

    async def run(
        self, arguments: Sequence[str], *, content: Iterable[bytes] = (), limit_s: float
    ) -> CommandResult:
        """Run a command, return its output and exit status; kill it at a time limit and raise.

        Args:
            arguments: name of the program and its arguments.
            content: pieces of what the command reads from its standard input.
            limit_s: time after which it is killed.

        Raises:
            PlatformError: the program cannot be started, or has not ended in time.
        """
        ...

    async def connect(self) -> None:
        """Connect to the machine now, even after a permanent error such as a refused login.

        Raises:
            PlatformError: it cannot be connected.
        """
        ...

    async def aclose(self) -> None:
        """Release the connection; may be called twice."""
        ...


class LocalCommandRunner:
    """Runner of commands on this machine."""

    @property
    def is_here(self) -> bool:
        """True: the commands run on this machine."""
        return True

    async def run(
        self, arguments: Sequence[str], *, content: Iterable[bytes] = (), limit_s: float
    ) -> CommandResult:
        """Run a command in its own process group; PlatformError: cannot start, or end in time."""
        try:
            process = await asyncio.create_subprocess_exec(
                *arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise PlatformError(f"{arguments[0]} cannot be started: {error}") from error
        try:
            async with asyncio.timeout(limit_s):
                joined = await asyncio.to_thread(b"".join, content)
                output, errors = await process.communicate(joined)
        except TimeoutError as error:
            raise PlatformError(f"{arguments[0]} has not ended within {limit_s:g} s") from error
        finally:
            await _end(process)
        return CommandResult(output, errors, process.returncode)

    async def connect(self) -> None:
        """Do nothing: there is no connection."""

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""


class UnusableRunner:
    """Runner for an invalid login: each command raises its error instead of running elsewhere.

    Args:
        broken: the rule.
    """

    def __init__(self, broken: PlatformProblem) -> None:
        self._broken = broken

    @property
    def is_here(self) -> bool:
        """False: the commands do not run on this machine."""
        return False

    async def run(
        self, arguments: Sequence[str], *, content: Iterable[bytes] = (), limit_s: float
    ) -> CommandResult:
        """Raise PlatformError with the broken rule."""
        raise rule_error(self._broken)

    async def connect(self) -> None:
        """Raise PlatformError with the broken rule."""
        raise rule_error(self._broken)

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the process group of a command that runs; wait briefly for its end."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_S):
            await process.wait()
