"""Supervisor of the child processes of the local deployment: the bus and all services."""

import asyncio
import itertools
from asyncio import TaskGroup
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

from nni_wire.folders import BUS_ROOM_BYTES
from svc_common.clock import Clock
from svc_common.errors import FailedPreconditionError, UnavailableError
from svc_common.logs import get_logger
from svc_common.messaging.bus_disk import HaltSign, disk_trouble
from svc_common.tasks import TaskOwner, wait_first
from svc_standalone.children import Child, Command
from svc_standalone.fork_server import ForkServer
from svc_standalone.restarts import RestartState
from svc_standalone.settings import Settings
from svc_standalone.silence import Silence
from svc_standalone.start_progress import StartProgress

_FAILED_STARTS_LIMIT = 3
"""Failed starts of a child, before all are ready, that end the start of the local shape."""


class FirstChildPort(Protocol):
    """Interface of the first child's TCP port, which the supervisor reserves between its runs."""

    def lend(self) -> None:
        """Let the child bind the port; called before each of its starts."""
        ...

    def take_back(self) -> Mapping[str, Command] | None:
        """Reserve the port again after the child's end; if it was taken, return new commands.

        Returns:
            New commands of all children if another program has taken the port; None: it is held.
        """
        ...


class Supervisor:
    """Supervisor of bus and services: starts, watches, restarts and stops their processes.

    Args:
        settings: of the supervisor.
        clock: waits before restarts.
        commands: the bus first, then the services.
        port: of the bus; None: it needs no care.
        demands: by the name of a child that is started on demand, what waits for the demand.
        forks: server of the first start, closed at its end; None: all children are programs.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        commands: Mapping[str, Command],
        port: FirstChildPort | None = None,
        demands: Mapping[str, Callable[[], Awaitable[None]]] | None = None,
        forks: ForkServer | None = None,
    ) -> None:
        self._forks = forks
        self._demands = dict(demands or {})
        self._port = port
        self._first = next(iter(commands))
        self._settings = settings
        self._clock = clock
        self._commands = commands
        self._children: dict[str, Child] = {}
        self._facts: dict[str, asyncio.Future[Mapping[str, str]]] = {}
        self._tasks = TaskOwner(self._supervision_failed)
        self._up = False
        self._halted = HaltSign.open(settings.store)

    async def start(self) -> dict[str, Mapping[str, str]]:
        """Start all children but those on demand; return their reports; raise if late or failed.

        Raises:
            FailedPreconditionError: a child repeatedly ends before it is ready.
            UnavailableError: the children make no progress any more, or are not ready within the
                time limit.
        """
        loop = asyncio.get_running_loop()
        for name in self._commands:
            if name in self._demands:
                self._tasks.start(self._run_on_demand(name), f"run {name} on demand")
                continue
            self._facts[name] = loop.create_future()
            self._tasks.start(self._run_forever(name), f"run {name}")
        try:
            await self._until_ready()
            await asyncio.gather(*(asyncio.shield(one) for one in self._facts.values()))
        finally:
            if self._forks is not None:
                self._forks.close()
        self._up = True
        return {name: future.result() for name, future in self._facts.items()}

    async def _until_ready(self) -> None:
        """Wait until all children are ready, as long as they make progress.

        Raises:
            UnavailableError: they make none, or the limit of a start is reached.
        """
        settings, clock = self._settings, self._clock
        every_s = min(settings.health_every_s, settings.start_timeout_s / 4)
        started_s = clock.monotonic_s()
        progress = StartProgress(
            settings.start_timeout_s, settings.start_limit_s, 4 * every_s, started_s
        )
        announced = False
        while waiting := [name for name, future in self._facts.items() if not future.done()]:
            changes = [self._facts[name] for name in waiting]
            await wait_first(
                asyncio.wait(changes, return_when=asyncio.FIRST_COMPLETED), clock.sleep(every_s)
            )
            ready = sum(future.done() for future in self._facts.values())
            now_s = clock.monotonic_s()
            is_over = progress.is_over(now_s, ready, self._cpu_of(waiting))
            if is_over and ready < len(self._facts):
                raise UnavailableError(
                    f"not ready after {now_s - started_s:.3g} s: {', '.join(waiting)}; "
                    f"see {settings.logs}"
                )
            if not announced and now_s - started_s >= settings.start_timeout_s:
                announced = True
                get_logger().warning("start is slow and goes on", waits_for=waiting)

    def _cpu_of(self, waiting: Iterable[str]) -> dict[int, float]:
        """Return the CPU time of the children that are not ready, and of the first one."""
        names = {self._first, *waiting}
        found = [child for name, child in self._children.items() if name in names and child.running]
        return {child.pid: child.cpu_s for child in found}

    async def stop(self) -> None:
        """Stop restarts, then the services concurrently, then the bus; by TERM, later KILL."""
        bus, *services = self._commands
        grace_s = self._settings.stop_grace_s
        await self._tasks.aclose()  # no child is restarted from here on
        running = [self._children[name] for name in services if name in self._children]
        await asyncio.gather(*(child.stop(grace_s) for child in running))
        if bus in self._children:
            await self._children[bus].stop(grace_s)
        self._halted.close()

    def reload_bus(self) -> None:
        """Make the first child read its configuration again, if it runs."""
        bus = self._children.get(self._first)
        if bus is not None:
            bus.reload()

    def pids(self) -> dict[str, int]:
        """Return the process ids of the running children."""
        return {name: child.pid for name, child in self._children.items() if child.running}

    async def _run_on_demand(self, name: str) -> None:
        """Wait until a child is requested, then run it like the others."""
        await self._demands[name]()
        get_logger().info("child demanded", child=name)
        await self._run_forever(name)

    async def _run_forever(self, name: str) -> None:
        """Run a child and restart it with back-off for ever; fail the start after some failures."""
        state = RestartState()
        for run in itertools.count(1):
            try:
                child = self._run(name)
            except OSError as error:  # too many processes or descriptors; no memory; no program
                reason = f"cannot be run: {error}"
                state = state.ended(0.0)
                get_logger().error("child not started", child=name, error=str(error))
            else:
                state = await self._watch(name, child, state)
                reason = f"{child.failure_reason()} (see {child.log})"
            if name == self._first and self._port is not None:
                self._change_commands(self._port.take_back())
            if run >= _FAILED_STARTS_LIMIT and not self._up:
                self._fail_start(FailedPreconditionError(f"{name} does not start: {reason}"))
                return
            await self._clock.sleep(state.delay_s)

    async def _watch(self, name: str, child: Child, state: RestartState) -> RestartState:
        """Watch a child's health and wait for its end; return the updated back-off state."""
        async with TaskGroup() as group:
            health = group.create_task(self._check_health(name, child), name=f"health of {name}")
            ended = await self._until_end(name, child)
            health.cancel()
        state = state.ended(child.ran_s)
        get_logger().warning("child ended", child=name, status=ended, delay_s=state.delay_s)
        return state

    async def _until_end(self, name: str, child: Child) -> int:
        facts = await child.ready()
        awaited = self._facts.get(name)
        if facts is not None and awaited is not None and not awaited.done():
            awaited.set_result(facts)
        return await child.wait()

    async def _check_health(self, name: str, child: Child) -> None:
        """Poll a child in a loop; kill it if silent, TERM it if halted and its disk has room."""
        announced = False
        # Several looks in a row must find no sign.
        step_limit_s = self._settings.hung_after_s / 4
        silence = Silence(step_limit_s)
        while True:
            await asyncio.sleep(self._settings.health_every_s)
            await child.look_for_sign(step_limit_s)
            silent_s = silence.at(asyncio.get_running_loop().time(), child.last_sign_s)
            if silent_s > self._settings.hung_after_s:
                get_logger().error("child hangs, killed", child=name, silent_s=round(silent_s))
                child.kill()
                return
            if not child.halted:
                continue
            trouble = disk_trouble(self._settings.store, BUS_ROOM_BYTES)
            if not announced:
                announced = True
                self._halted.put_up()
                get_logger().error(
                    "child has halted; it is restarted when its disk can be written",
                    child=name,
                    reason=child.halted,
                    disk=trouble,
                )
            if not trouble:
                get_logger().warning("halted child restarted", child=name)
                child.terminate()
                return

    def _change_commands(self, commands: Mapping[str, Command] | None) -> None:
        """Store new commands and end all children but the first, to restart; None: do nothing."""
        if commands is None:
            return
        self._commands = commands
        for name, child in self._children.items():
            if name != self._first:
                child.terminate()

    def _run(self, name: str) -> Child:
        if name == self._first:
            self._halted.take_down()
            if self._port is not None:
                self._port.lend()
        log = self._settings.logs / f"{name}.log"
        child = Child(self._commands[name], self._settings.home, log, self._forks)
        self._children[name] = child
        get_logger().info("child started", child=name, pid=child.pid)
        return child

    def _supervision_failed(self, name: str, error: BaseException) -> None:
        get_logger().error("supervision of a child failed", task=name, exc_info=error)
        self._fail_start(error)

    def _fail_start(self, error: BaseException) -> None:
        for future in self._facts.values():
            if not future.done():
                future.set_exception(error)
