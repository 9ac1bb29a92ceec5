"""Bench of experiment sessions: in-memory bus, scripted manager, in-process hosts."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from svc_common.clock import ManualClock
from svc_common.experiment_sessions import ExperimentSessions
from svc_common.messaging.memory import InMemoryBus
from svc_common.storage.large_values import LargeValues
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.tasks import TaskOwner
from svc_dispatcher.sessions.generation import SessionDependencies
from svc_dispatcher.sessions.registry import session_registry
from tests.support.in_process_host import InProcessLauncher
from tests.support.scripted_manager import ScriptedManager

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}
LIMIT_S = 600.0
IDLE_S = 60.0


class Bench:
    """Dispatcher and scripted manager on an in-memory bus."""

    def __init__(self, root: Path) -> None:
        self.bus = InMemoryBus()
        self.clock = ManualClock()
        self.blobs = InMemoryBlobStore()
        self.launcher = InProcessLauncher()
        self.manager = ScriptedManager(self.bus, "exp", root)
        self._tasks = TaskOwner(lambda _, error: pytest.fail(repr(error)))
        self._experiments: ExperimentSessions | None = None
        self._tasks.start(self.manager.read_inbox(), "inbox")

    def start(self) -> None:
        dependencies = SessionDependencies(
            events=self.bus.events,
            inbox=self.bus.inbox,
            blobs=LargeValues(self.blobs),
            launcher=self.launcher,
            clock=self.clock,
            answer_timeout_s=LIMIT_S,
            idle_limit_s=IDLE_S,
        )
        self._experiments = session_registry(dependencies)
        self._running = self._tasks.start(self._experiments.run(), "experiments")

    async def stop(self) -> None:
        if self._experiments is not None:
            self._running.cancel()
            await self._experiments.aclose()

    async def aclose(self) -> None:
        await self.stop()
        await self._tasks.aclose()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = Bench(tmp_path)
    bench.start()
    yield bench
    await bench.aclose()


async def turns(condition: Callable[[], object]) -> None:
    """Run the loop until a condition holds; everything here happens in this process."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - conditions of many kinds
            await asyncio.sleep(0)
