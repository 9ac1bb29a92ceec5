"""Proxy of a platform adapter that runs in a child process of the fleet."""

import asyncio
import contextlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from svc_common.clock import Clock, SystemClock
from svc_common.logs import get_logger
from svc_trial_runner.fleet.adapters.isolated.child_process import ChildProcess
from svc_trial_runner.fleet.adapters.isolated.messages import (
    read_agents,
    read_failures,
    read_leftovers,
    read_problems,
    write_context,
    write_endpoint,
    write_names,
    write_orders,
)
from svc_trial_runner.fleet.adapters.isolated.peer import CANCEL_S, PeerGoneError
from svc_trial_runner.fleet.adapters.isolated.restarts import RestartBackoff
from svc_trial_runner.fleet.domain.agents import (
    AgentName,
    AgentOrder,
    LaunchFailure,
    PlatformAgent,
    PlatformProblem,
)
from svc_trial_runner.fleet.domain.leftovers import Leftover
from svc_trial_runner.fleet.ports import AdapterContext, PlatformError

CHILD_COMMAND: Final = (sys.executable, "-P", "-m", "svc_trial_runner.fleet.adapters.isolated")
LIMITS_S: Final[Mapping[str, float]] = {
    "open": 60.0,
    "check": 120.0,
    "prepare": 600.0,  # a bundle may go over a slow line
    "capacity": 30.0,
    "agents": 80.0,
    "launch": 520.0,
    "terminate": 150.0,
    "clean": 240.0,
    "leftovers": 80.0,
    "clean_rest": 80.0,
    "aclose": 5.0,
}
"""Time limits of calls, in seconds. Those of the fleet's actions are longer, so that these errors
come first; a check of a configuration ends by the fleet's limit, which is shorter."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Time limits of the calls of a child."""

    by_method_s: Mapping[str, float] = field(default_factory=lambda: LIMITS_S)
    cancel_s: float = CANCEL_S
    """From the end of a call's time to the kill of a child that does not end the call."""


_UNPREPARED: Final = frozenset({"check", "prepare", "leftovers", "clean_rest"})
"""Calls that need no preparation."""


class IsolatedAdapter:
    """`PlatformAdapter` whose calls are served by a child process, started at the first call.

    A child that crashes, or does not end a call within its time limit, fails that call with
    `PlatformError`. The next call starts another child, the first time at once and then after a
    back-off; it is prepared if its predecessor was. Agents are not affected: they are on the
    platform.

    Args:
        context: of the pool; its secrets go to the child over a socket.
        command: of the child; the descriptor of its socket is added.
        clock: of the back-off.
        limits: of the calls.
    """

    def __init__(
        self,
        context: AdapterContext,
        command: Sequence[str] = CHILD_COMMAND,
        clock: Clock | None = None,
        limits: CallLimits | None = None,
    ) -> None:
        self._context = context
        self._command = tuple(command)
        self._clock = clock or SystemClock()
        self._limits = limits or CallLimits()
        self._child: ChildProcess | None = None
        self._backoff = RestartBackoff()
        self._prepared = False
        self._closed = False

    @property
    def child_pid(self) -> int | None:
        """Number of the running child; None: there is none."""
        return None if self._child is None or self._child.ended else self._child.pid

    async def check(self) -> list[PlatformProblem]:
        """Return problems of the section; see `PlatformAdapter`."""
        return read_problems(await self._call("check"))

    async def prepare(self) -> None:
        """Prepare the platform, and note it for later children; see `PlatformAdapter`."""
        await self._call("prepare")
        self._prepared = self._child_prepared = True

    async def capacity(self) -> int | None:
        """Return how many agents the platform can have; see `PlatformAdapter`."""
        found: int | None = await self._call("capacity")
        return found

    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        """Start agents; see `PlatformAdapter`."""
        return read_failures(await self._call("launch", write_orders(orders)))

    async def agents(self) -> list[PlatformAgent]:
        """Return the agents on the platform; see `PlatformAdapter`."""
        return read_agents(await self._call("agents"))

    async def terminate(self, names: Sequence[AgentName]) -> None:
        """End agents; see `PlatformAdapter`."""
        await self._call("terminate", write_names(names))

    async def clean(self) -> None:
        """Remove everything of the pool; see `PlatformAdapter`."""
        await self._call("clean")

    async def leftovers(self) -> list[Leftover]:
        """Return the installation's leftovers on the platform; see `PlatformCleaner`."""
        return read_leftovers(await self._call("leftovers"))

    async def clean_rest(self) -> None:
        """Remove leftovers that belong to no pool; see `PlatformCleaner`."""
        await self._call("clean_rest")

    async def wait_changed(self) -> None:
        """Wait until agents may have changed or the child has ended; return at once without one."""
        child = self._child
        if child is None or child.ended:
            return
        with contextlib.suppress(PeerGoneError):
            await self._await_call(child, "wait_changed", None)

    async def aclose(self) -> None:
        """Close the adapter and end the child; may be called twice."""
        self._closed = True
        child, self._child = self._child, None
        if child is None:
            return
        try:
            if not child.ended:
                async with asyncio.timeout(self._limits.by_method_s["aclose"]):
                    await child.call("aclose")
        except (PlatformError, TimeoutError) as error:
            get_logger().warning("adapter not closed", reason=str(error))
        finally:
            await child.aclose()

    async def _call(self, method: str, params: object = None) -> Any:  # noqa: ANN401 - JSON
        child = self._child = await self._running()
        if self._prepared and not self._child_prepared and method not in _UNPREPARED:
            await self._limited_call(child, "prepare")
            self._child_prepared = True
        return await self._limited_call(child, method, params)

    async def _running(self) -> ChildProcess:
        """Return the running child; start one if there is none; raise during its back-off.

        Raises:
            PlatformError: it cannot be started, or not yet.
        """
        if self._closed:
            raise PlatformError("the adapter is closed")
        child = self._child
        if child is not None and not child.ended:
            return child
        if child is not None:
            self._child = None
            await self._note_end(child)
        delay_s = self._backoff.delay_s(self._clock.monotonic_s())
        if delay_s:
            raise PlatformError(
                f"the process of {self._title} has ended {self._backoff.ends} times in a row;"
                f" it is started again in {delay_s:.0f} s",
                "the log of the fleet says why",
            )
        return await self._start()

    async def _start(self) -> ChildProcess:
        self._started_s = self._clock.monotonic_s()
        self._child_prepared = False
        child = await ChildProcess.start(self._command, self._handle, self._limits.cancel_s)
        try:
            await self._limited_call(child, "open", write_context(self._context))
        except BaseException:
            await self._note_end(child)
            raise
        return child

    async def _limited_call(self, child: ChildProcess, method: str, params: object = None) -> Any:  # noqa: ANN401 - JSON
        limit_s = self._limits.by_method_s[method]
        try:
            async with asyncio.timeout(limit_s):
                return await self._await_call(child, method, params)
        except TimeoutError as error:
            child.kill()  # a thread of it may hang; the next call starts another one
            raise PlatformError(
                f"{self._title} has not completed {method!r} within {limit_s:g} s;"
                " its process was killed"
            ) from error

    async def _await_call(self, child: ChildProcess, method: str, params: object) -> Any:  # noqa: ANN401 - JSON
        try:
            return await child.call(method, params)
        except PeerGoneError as error:
            raise PeerGoneError(f"{self._title}: {error.message}") from error
        finally:
            if child.stuck:  # the next call starts another one
                get_logger().warning("child process killed", pid=child.pid, call=method)
                child.kill()

    @property
    def _title(self) -> str:
        return f"platform {self._context.section.platform}"

    async def _note_end(self, child: ChildProcess) -> None:
        await child.aclose()
        self._backoff = self._backoff.after_end(self._started_s, self._clock.monotonic_s())

    async def _handle(self, method: str, params: Any) -> Any:  # noqa: ANN401 - JSON
        """Handle a child's call: return a bundle's path, or open the TLS front for its endpoint."""
        match method:
            case "bundle":
                major, minor = params["python"]
                tag = params["platform_tag"]
                return str(await self._context.bundles.bundle((major, minor), tag))
            case "front":
                return write_endpoint(await self._context.front.open())
            case _:
                raise PlatformError(f"the fleet has no method {method[:40]!r}")
