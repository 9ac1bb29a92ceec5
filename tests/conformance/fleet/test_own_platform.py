"""Conformance of the platform of `examples/own-platform`, with sleeping agents."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from nni.experiment import ExperimentConfig
from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.adapters.platform_registry import load_platform
from svc_trial_runner.fleet.domain.agents import AgentName, PlatformSection
from svc_trial_runner.fleet.ports import (
    AdapterContext,
    InstallationEndpoints,
    PlatformAdapter,
)
from svc_trial_runner.fleet.testing import (
    INSTALLATION,
    POOL,
    PlatformConformance,
    PlatformStage,
)
from tests.support.sleeping_agents import SleepingAgents

EXAMPLE = Path(__file__).parents[3] / "examples" / "own-platform"


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Install the package as pip would: its modules and its entry point are found."""
    site = tmp_path_factory.mktemp("site")
    info = site / "shell_platform-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shell-platform\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[nni.platforms]\nshell = shell_platform:entry\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        patch.syspath_prepend(str(EXAMPLE))
        yield


class ShellStage(PlatformStage):
    """Folder of agents on this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bundles = SleepingAgents(folder)
        self._opened: dict[tuple[str, str], PlatformAdapter] = {}

    def adapter(self, pool: str = POOL, installation: str = INSTALLATION) -> PlatformAdapter:
        self._opened[pool, installation] = self._adapter(pool, installation, command=["sh", "-c"])
        return self._opened[pool, installation]

    def broken_adapter(self) -> PlatformAdapter:
        return self._adapter(POOL, INSTALLATION)

    def _adapter(self, pool: str, installation: str, **options: Any) -> PlatformAdapter:
        section = {"folder": str(self._folder / "a home"), "sharesNetwork": True, **options}
        return load_platform("shell")(
            AdapterContext(
                installation,
                pool,
                PlatformSection("shell", section),
                InstallationEndpoints("nats://127.0.0.1:1", "127.0.0.1:2"),
                self._bundles,
                self._folder,
                NoFront(),
            )
        )

    async def end_agent(self, name: AgentName) -> None:
        folder = self._folder / "a home" / "agents" / str(name)
        os.kill(json.loads((folder / "process.json").read_text())["pid"], signal.SIGTERM)

    async def aclose(self) -> None:
        """End the agents."""
        for adapter in self._opened.values():
            await adapter.clean()


@pytest.mark.skipif(
    not os.environ.get("NNI_REQUIRE_PLATFORMS"), reason="15 s of CPU: .ci/platforms runs it"
)
class TestShell(PlatformConformance):
    capacity: ClassVar[int | None] = 1

    def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
        return _stage(folder)


@asynccontextmanager
async def _stage(folder: Path) -> AsyncIterator[PlatformStage]:
    stage = ShellStage(folder)
    try:
        yield stage
    finally:
        await stage.aclose()


@pytest.mark.claim("platform", 85)
def test_configuration_of_the_example_is_valid() -> None:
    config = ExperimentConfig.load(EXAMPLE / "config.yml")

    config.validate()
    assert [service.to_dict()["command"] for service in config.training_services()] == [
        ["sh", "-c"]
    ]


def test_field_that_the_platform_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="comand"):
        ExperimentConfig(training_service={"platform": "shell", "comand": ["sh"]})
