"""Dispatcher in this process on a real bus, with real hosts."""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from svc_common.clock import SystemClock
from svc_common.experiment_sessions import ExperimentSessions
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.storage.large_values import LargeValues
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.tasks import TaskOwner
from svc_dispatcher.adapters.host_launcher import SelectingHostLauncher
from svc_dispatcher.sessions.generation import SessionDependencies
from svc_dispatcher.sessions.registry import session_registry
from tests.support.scripted_manager import ScriptedManager
from tests.support.servers import NatsServer

_numbers = itertools.count()


class Dispatcher:
    """Dispatcher under test; `restart` has the effect of a SIGKILL of the service."""

    def __init__(self, bus: NatsBus) -> None:
        self.bus = bus
        self.blobs = InMemoryBlobStore()
        self.answer_timeout_s = 60.0
        self._tasks: TaskOwner | None = None
        self._experiments: ExperimentSessions | None = None

    def start(self) -> None:
        self._experiments = session_registry(
            SessionDependencies(
                events=self.bus.events,
                inbox=self.bus.inbox,
                blobs=LargeValues(self.blobs),
                launcher=SelectingHostLauncher(dict(os.environ)),
                clock=SystemClock(),
                answer_timeout_s=self.answer_timeout_s,
                idle_limit_s=60.0,
            )
        )
        self._tasks = TaskOwner(lambda _, error: pytest.fail(repr(error)))
        self._tasks.start(self._experiments.run(), "experiments")

    async def restart(self, answer_timeout_s: float | None = None) -> None:
        if answer_timeout_s is not None:
            self.answer_timeout_s = answer_timeout_s
        await self.stop()
        self.start()

    async def stop(self) -> None:
        if self._tasks is not None and self._experiments is not None:
            await self._tasks.aclose()
            await self._experiments.aclose()


@pytest.fixture
async def bus(shared_nats: NatsServer) -> AsyncIterator[NatsBus]:
    async with NatsBus(NatsSettings(shared_nats.url, name="test")) as bus:
        yield bus


@pytest.fixture
async def dispatcher(bus: NatsBus) -> AsyncIterator[Dispatcher]:
    dispatcher = Dispatcher(bus)
    dispatcher.start()
    yield dispatcher
    await dispatcher.stop()


@pytest.fixture
async def manager(bus: NatsBus, tmp_path: Path) -> AsyncIterator[ScriptedManager]:
    async with AsyncExitStack() as stack:
        manager = ScriptedManager(bus, f"exp{os.getpid()}x{next(_numbers)}", tmp_path)
        tasks = TaskOwner(lambda _, error: pytest.fail(repr(error)))
        stack.push_async_callback(tasks.aclose)
        tasks.start(manager.read_inbox(), "inbox")
        yield manager
        await bus.events.delete(manager.id)


@pytest.fixture
def code(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that writes a module `algorithms.py` and returns its folder."""

    def write(text: str) -> Path:
        folder = tmp_path / "code"
        folder.mkdir(exist_ok=True)
        (folder / "algorithms.py").write_text(text)
        return folder

    return write


async def soon(look: Callable[[], object], timeout_s: float = 60.0) -> None:
    """Wait for a condition outside this process that cannot be awaited."""
    async with asyncio.timeout(timeout_s):
        while not look():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.01)
