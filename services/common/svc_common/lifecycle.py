"""Start and graceful stop of a service process.

Stopping, in this order: an event is set → health reports NOT_SERVING → consumers stop pulling and
finish their messages → servers stop with a grace period → remaining tasks are cancelled → adapters
are closed in reverse order of opening. A signal only sets the event; a second one has no effect, so
that a repeated Ctrl-C cannot interrupt a write (the supervisor kills processes that do not end).

A service's `__main__` is three lines:

    async def build(service: Service) -> Mapping[str, str]:   # in app.py
        bus = await service.adapters.enter_async_context(open_bus(settings))
        ...
        return {"grpc": address}

    sys.exit(run_process("manager", build))
"""

import asyncio
import gc
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Final, TypeAlias

from svc_common import environment
from svc_common.errors import ServiceError
from svc_common.garbage_collection import GcFreezer
from svc_common.inspection import forbid_inspection
from svc_common.logs import configure, get_logger
from svc_common.readiness import announce_failure, announce_ready
from svc_common.socket_loop import SocketLoop
from svc_common.tasks import StoppedError, TaskOwner, result_unless
from svc_common.telemetry.health_listener import HealthListener
from svc_common.telemetry.loop_watchdog import LoopWatchdog

GRACE_S: Final = 5.0
"""Grace period of consumers and servers to finish their work."""

HEARTBEAT_S: Final = 5.0
"""Interval of the signs that the event loop runs."""

Build: TypeAlias = Callable[["Service"], Awaitable[Mapping[str, str]]]
"""Opens adapters on `service.adapters`, starts the service, returns the fields of readiness."""


class Service:
    """Running service process: its adapters, tasks and servers, stopped in a fixed order.

    Attributes:
        adapters: exit stack; code that opens a resource registers its closing here.
        tasks: long-running tasks; one that raises stops the service with exit code 1.
        loop_watchdog: watchdog of the loop; the service registers its metrics.
    """

    def __init__(self, grace_s: float = GRACE_S, loop_watchdog: LoopWatchdog | None = None) -> None:
        self.loop_watchdog = loop_watchdog or LoopWatchdog()
        self.adapters = AsyncExitStack()
        self.tasks = TaskOwner(self._task_failed)
        self._grace_s = grace_s
        self._stopping = asyncio.Event()
        self._built = False
        self._conditions: list[Callable[[], bool]] = []
        self._failed = False
        self._exit_code = 0
        self._health: list[Callable[[], Awaitable[None]]] = []
        self._consumers: list[Callable[[], Awaitable[None]]] = []
        self._servers: list[Callable[[float], Awaitable[None]]] = []

    def takes_work_if(self, condition: Callable[[], bool]) -> None:
        """Register a condition of `takes_work`, e.g. that the bus is connected."""
        self._conditions.append(condition)

    def built(self) -> None:
        """Record that the service has started."""
        self._built = True

    @property
    def takes_work(self) -> bool:
        """True if the service has started, does not stop, and all its conditions hold."""
        ready = self._built and not self._stopping.is_set()
        return ready and all(condition() for condition in self._conditions)

    def on_stopping(self, notify_peers: Callable[[], Awaitable[None]]) -> None:
        """Register a callback that notifies peers of the stop; it is called first."""
        self._health.append(notify_peers)

    def add_consumer(self, finish: Callable[[], Awaitable[None]]) -> None:
        """Register the stop of a consumer: stop pulling, finish messages in hand, return."""
        self._consumers.append(finish)

    def add_server(self, stop: Callable[[float], Awaitable[None]]) -> None:
        """Register the stop of a server, called with the grace period in seconds."""
        self._servers.append(stop)

    def stop(self, exit_code: int = 0) -> None:
        """Begin to stop; may be called repeatedly and from signal handlers of the loop.

        Args:
            exit_code: of the process; the first one counts.
        """
        if not self._stopping.is_set():
            self._exit_code = exit_code
        self._stopping.set()

    @property
    def failed(self) -> bool:
        """True if a task of the service raised."""
        return self._failed

    @property
    def exit_code(self) -> int:
        """Exit code of the process: 1 if a task raised, else that of the first stop."""
        return 1 if self._failed else self._exit_code

    async def wait_stopping(self) -> None:
        """Wait until the service begins to stop."""
        await self._stopping.wait()

    async def aclose(self) -> None:
        """Stop the service: health, consumers, servers, tasks, adapters; may be called twice."""
        self._stopping.set()
        health, self._health = self._health, []
        await self._within_grace("health", [notify_peers() for notify_peers in health])
        consumers, self._consumers = self._consumers, []
        await self._within_grace("consumers", [finish() for finish in consumers])
        servers, self._servers = self._servers, []
        await self._within_grace("servers", [stop(self._grace_s) for stop in servers])
        await self.tasks.aclose()
        await self.adapters.aclose()

    async def _within_grace(self, what: str, ends: list[Awaitable[None]]) -> None:
        if not ends:
            return
        try:
            # Servers apply `grace_s` themselves; one more second lets them use all of it.
            async with asyncio.timeout(self._grace_s + 1.0):
                results = await asyncio.gather(*ends, return_exceptions=True)
        except TimeoutError:
            get_logger().warning("grace is over", what=what, grace_s=self._grace_s)
            return
        for error in results:
            if isinstance(error, Exception):
                get_logger().error("stopping failed", what=what, exc_info=error)

    def _task_failed(self, name: str, error: BaseException) -> None:
        get_logger().error("task failed", task=name, exc_info=error)
        self._failed = True
        self._stopping.set()


class Heartbeat:
    """Periodic byte to the supervisor's pipe while the event loop runs.

    Args:
        loop: the event loop.
        descriptor: write end of a pipe; negative: there is no supervisor.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, descriptor: int) -> None:
        self._loop = loop
        self._descriptor = descriptor
        self._timer: asyncio.TimerHandle | None = None
        if descriptor >= 0:
            os.set_inheritable(descriptor, False)  # noqa: FBT003 - its only way
            os.set_blocking(descriptor, False)
            self._beat()

    def _beat(self) -> None:
        try:
            os.write(self._descriptor, b".")
        except BlockingIOError:
            pass  # unread signs are enough of them
        except OSError:
            return  # the supervisor has ended
        self._timer = self._loop.call_later(HEARTBEAT_S, self._beat)

    def close(self) -> None:
        """Stop the heartbeats, because the process ends next."""
        if self._timer is not None:
            self._timer.cancel()


async def run(
    build: Build, grace_s: float = GRACE_S, loop_watchdog: LoopWatchdog | None = None
) -> int:
    """Build a service, run it until a signal or failed task, stop it; return the exit code.

    Returns:
        Exit code: 0 after a signal, 1 if the build or a task failed, else that of the stop.
    """
    service = Service(grace_s, loop_watchdog)
    service.loop_watchdog.start()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, service.stop)
    # A session that ends sends HUP right after TERM: it must not cut the stop short.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        loop.add_signal_handler(signal.SIGHUP, service.stop)
    heartbeat = Heartbeat(loop, environment.integer(environment.NNI_HEARTBEAT_FD, -1))
    health = HealthListener(lambda: service.takes_work)
    try:
        address = environment.text(environment.NNI_HEALTH, "")
        if address:
            await health.start(address)
        if await _build_unless_stopped(service, build):
            await service.wait_stopping()
            get_logger().info("service stopping")
    except ServiceError as error:
        get_logger().error("service cannot start", error=error.message)
        announce_failure(error.message)
        return 1
    except Exception:  # noqa: BLE001 - rim of the process: logged with its traceback
        get_logger().exception("service failed")
        return 1
    finally:
        await service.aclose()
        service.loop_watchdog.stop()
        heartbeat.close()
        health.close()
    return service.exit_code


def run_process(name: str, build: Build, grace_s: float = GRACE_S) -> int:
    """Run a service as this process: logging, secrets, loop, signals; return the exit code.

    Args:
        name: of the service, for its log lines.
        build: see `Build`.
        grace_s: grace period of consumers and servers, in seconds.
    """
    configure(name, environment.text(environment.NNI_LOG_LEVEL, "info"))
    forbid_inspection()
    try:
        environment.load_secrets()
    except ServiceError as error:
        get_logger().error("service cannot start", error=error.message)
        announce_failure(error.message)
        return 1
    gc.enable()  # a fork of the local shape's fork server imports its modules without
    freezer = GcFreezer()
    freezer.start()
    try:
        watchdog = LoopWatchdog()
        with asyncio.Runner(loop_factory=lambda: SocketLoop(watchdog.selector())) as runner:
            return runner.run(run(build, grace_s, watchdog))
    finally:
        freezer.stop()


async def _build_unless_stopped(service: Service, build: Build) -> bool:
    """Build the service, announce readiness, return True; False if it is stopped before that."""
    try:
        await result_unless(service.wait_stopping(), _build_and_announce(service, build))
    except StoppedError:
        return False
    return True


async def _build_and_announce(service: Service, build: Build) -> None:
    facts = await build(service)
    service.built()
    announce_ready(facts)
    get_logger().info("service ready", **facts)
