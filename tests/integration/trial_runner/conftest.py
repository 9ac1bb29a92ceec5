"""Fixtures: a bus, an agent on it, and the manager's side, one of each per module or per test."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.integration.trial_runner.harness import (
    TOKEN,
    AgentProcess,
    ManagerSide,
    manager_side,
)
from tests.support.servers import NatsServer, nats_server

SDK = Path(__file__).resolve().parents[3] / "sdk"


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("agent")


@pytest.fixture(scope="module")
def shared_bus(shared_folder: Path) -> Iterator[NatsServer]:
    with nats_server(shared_folder / "nats", TOKEN) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def agent(shared_bus: NatsServer, shared_folder: Path) -> AsyncIterator[AgentProcess]:
    """Agent with two simulated GPUs."""
    process = AgentProcess(
        shared_folder / "home",
        shared_bus.url,
        PYTHONPATH=str(SDK) + os.pathsep + os.environ.get("PYTHONPATH", ""),
        NNI_RUNNER_FAKE_GPUS="2",
        NNI_RUNNER_OUTPUT_LIMIT_BYTES="1000000",
        NNI_RUNNER_REUSE_IDLE_S="3600",
        SECRET_OF_THE_MACHINE="hidden",
    )
    await process.start()
    yield process
    await process.end()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def manager(
    shared_bus: NatsServer, shared_folder: Path, agent: AgentProcess
) -> AsyncIterator[ManagerSide]:
    async with manager_side(shared_bus.url, shared_folder) as side:
        yield side


@pytest.fixture
def bus_server(tmp_path: Path) -> Iterator[NatsServer]:
    """Bus that the test may kill."""
    with nats_server(tmp_path / "nats", TOKEN) as server:
        yield server
