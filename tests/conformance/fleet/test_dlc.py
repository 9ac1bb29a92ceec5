"""Conformance of the platform `dlc` over a server that speaks the documented API."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import ClassVar

from svc_trial_runner.fleet.adapters.dlc.adapter import DlcAdapter
from svc_trial_runner.fleet.domain.agents import AgentName
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, PlatformConformance, PlatformStage
from tests.support.dlc_server import DlcServer, dlc_adapter, dlc_server


class DlcStage(PlatformStage):
    """Adapters of one user."""

    def __init__(self, server: DlcServer, folder: Path) -> None:
        self.server = server
        self.folder = folder

    def adapter(self, pool: str = POOL, installation: str = INSTALLATION) -> DlcAdapter:
        return dlc_adapter(self.server, self.folder, pool, installation)

    def broken_adapter(self) -> DlcAdapter:
        return dlc_adapter(self.server, self.folder, POOL, INSTALLATION, "wrong-secret")

    async def end_agent(self, name: AgentName) -> None:
        self.server.job(str(name))["Status"] = "Failed"


class TestDlc(PlatformConformance):
    limit_s: ClassVar[float] = 60.0

    def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
        return _stage(folder)


@asynccontextmanager
async def _stage(folder: Path) -> AsyncIterator[PlatformStage]:
    with dlc_server() as server:
        yield DlcStage(server, folder)
