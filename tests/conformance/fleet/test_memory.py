"""Conformance of the in-memory platform."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import ClassVar

from svc_trial_runner.fleet.adapters.memory import InMemoryPlatform, InMemoryPlatformAdapter
from svc_trial_runner.fleet.domain.agents import AgentName, AgentPhase, PlatformProblem
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, PlatformConformance, PlatformStage


class InMemoryStage(PlatformStage):
    """Table of agents."""

    def __init__(self) -> None:
        self.platform = InMemoryPlatform(capacity=3)

    def adapter(
        self, pool: str = POOL, installation: str = INSTALLATION
    ) -> InMemoryPlatformAdapter:
        return InMemoryPlatformAdapter(self.platform, installation, pool)

    async def end_agent(self, name: AgentName) -> None:
        self.platform.set_phase(name, AgentPhase.ENDED, "ended by the test")

    def broken_adapter(self) -> InMemoryPlatformAdapter:
        broken = InMemoryPlatform(problems=[PlatformProblem("machines", "must be >= 1", "0")])
        return InMemoryPlatformAdapter(broken, INSTALLATION, POOL)


class TestInMemoryPlatform(PlatformConformance):
    capacity: ClassVar[int | None] = 3

    def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
        return _stage()


@asynccontextmanager
async def _stage() -> AsyncIterator[PlatformStage]:
    yield InMemoryStage()
