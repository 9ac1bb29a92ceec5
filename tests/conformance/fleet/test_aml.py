"""Conformance of the platform `aml` over a server that speaks the documented API."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import ClassVar

from svc_trial_runner.fleet.adapters.aml.adapter import AmlAdapter
from svc_trial_runner.fleet.domain.agents import AgentName
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, PlatformConformance, PlatformStage
from tests.support.aml_server import AmlServer, aml_adapter, aml_server


class AmlStage(PlatformStage):
    """Adapters of one workspace."""

    def __init__(self, server: AmlServer, folder: Path) -> None:
        self.server = server
        self.folder = folder

    def adapter(self, pool: str = POOL, installation: str = INSTALLATION) -> AmlAdapter:
        return aml_adapter(self.server, self.folder, pool, installation)

    def broken_adapter(self) -> AmlAdapter:
        return aml_adapter(
            self.server, self.folder, POOL, INSTALLATION, computeTarget="no-such-one"
        )

    async def end_agent(self, name: AgentName) -> None:
        self.server.set_status(str(name), "Failed")


class TestAml(PlatformConformance):
    limit_s: ClassVar[float] = 60.0

    def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
        return _stage(folder)


@asynccontextmanager
async def _stage(folder: Path) -> AsyncIterator[PlatformStage]:
    with aml_server() as server:
        yield AmlStage(server, folder)
