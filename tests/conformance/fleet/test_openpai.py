"""Conformance of the platform `openpai` over a server that speaks the documented API."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import ClassVar

from svc_trial_runner.fleet.adapters.openpai.adapter import OpenpaiAdapter
from svc_trial_runner.fleet.domain.agents import AgentName
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, PlatformConformance, PlatformStage
from tests.support.openpai_agents import openpai_adapter
from tests.support.openpai_server import OpenpaiServer, openpai_server


class OpenpaiStage(PlatformStage):
    """Adapters of one cluster."""

    def __init__(self, server: OpenpaiServer, folder: Path) -> None:
        self.server = server
        self.folder = folder

    def adapter(self, pool: str = POOL, installation: str = INSTALLATION) -> OpenpaiAdapter:
        return openpai_adapter(self.server, self.folder, pool, installation)

    def broken_adapter(self) -> OpenpaiAdapter:
        return openpai_adapter(
            self.server, self.folder, POOL, INSTALLATION, virtualCluster="no-such-one"
        )

    async def end_agent(self, name: AgentName) -> None:
        self.server.summaries[str(name)]["state"] = "FAILED"


class TestOpenpai(PlatformConformance):
    limit_s: ClassVar[float] = 60.0

    def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
        return _stage(folder)


@asynccontextmanager
async def _stage(folder: Path) -> AsyncIterator[PlatformStage]:
    with openpai_server() as server:
        yield OpenpaiStage(server, folder)
