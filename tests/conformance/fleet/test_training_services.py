"""Conformance of the adapter of training services, over a service with jobs on this machine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.training_services.adapter import TrainingServiceAdapter
from svc_trial_runner.fleet.domain.agents import AgentName, PlatformSection
from svc_trial_runner.fleet.ports import AdapterContext, PlatformAdapter
from svc_trial_runner.fleet.testing import (
    INSTALLATION,
    POOL,
    PlatformConformance,
    PlatformStage,
)
from tests.support.folder_service import FolderService, end_job
from tests.support.local_platforms import ENDPOINTS, OpenFront
from tests.support.sleeping_agents import SleepingAgents


class ServiceStage(PlatformStage):
    """Folder of jobs on this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bundles = SleepingAgents(folder)
        self._opened: list[TrainingServiceAdapter] = []

    def adapter(self, pool: str = POOL, installation: str = INSTALLATION) -> PlatformAdapter:
        options = {"folder": str(self._folder / "all jobs"), "pollIntervalSeconds": 0.1}
        self._opened.append(self._adapter(pool, installation, options))
        return self._opened[-1]

    def broken_adapter(self) -> PlatformAdapter:
        return self._adapter(POOL, INSTALLATION, {})

    def _adapter(
        self, pool: str, installation: str, options: dict[str, Any]
    ) -> TrainingServiceAdapter:
        own = self._folder / f"{installation}-{pool}"
        own.mkdir(exist_ok=True)
        context = AdapterContext(
            installation,
            pool,
            PlatformSection("folder", options),
            ENDPOINTS,
            self._bundles,
            own,
            OpenFront(),
        )
        return TrainingServiceAdapter(FolderService, context)

    async def end_agent(self, name: AgentName) -> None:
        await asyncio.to_thread(end_job, self._folder / "all jobs" / str(name))

    async def aclose(self) -> None:
        """End the agents."""
        for adapter in self._opened:
            await adapter.clean()
            await adapter.aclose()


@pytest.mark.skipif(
    not os.environ.get("NNI_REQUIRE_PLATFORMS"), reason="seconds of CPU: .ci/platforms runs it"
)
class TestTrainingService(PlatformConformance):
    def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
        return _stage(folder)


@asynccontextmanager
async def _stage(folder: Path) -> AsyncIterator[PlatformStage]:
    stage = ServiceStage(folder)
    try:
        yield stage
    finally:
        await stage.aclose()
