import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from svc_trial_runner.agent_settings import ConnectionKind, parse_agent_settings
from svc_trial_runner.fleet.adapters.local_agents import LocalAgentsAdapter, gpu_indices
from svc_trial_runner.fleet.domain.agents import AgentPhase
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, agent_name, agent_order
from tests.support.local_platforms import SLEEPER, local_context

FAILING = (sys.executable, "-S", "-c", "raise SystemExit('no bus at this address')")


@pytest_asyncio.fixture
async def adapter(tmp_path: Path) -> AsyncIterator[LocalAgentsAdapter]:
    opened = LocalAgentsAdapter(
        local_context(tmp_path, INSTALLATION, POOL, {"gpuIndices": [1, 2]}), SLEEPER
    )
    yield opened
    await opened.clean()


async def test_agent_gets_a_private_file_of_settings(
    adapter: LocalAgentsAdapter, tmp_path: Path
) -> None:
    await adapter.launch([agent_order(agent_name(1))])

    path = tmp_path / "agents" / str(agent_name(1)) / "settings.json"
    settings = parse_agent_settings(path.read_bytes())
    assert path.stat().st_mode & 0o777 == 0o600
    assert (settings.name, settings.pool) == (str(agent_name(1)), POOL)
    assert settings.connection.kind is ConnectionKind.DIRECT
    assert settings.gpu_indices == (1, 2)


async def test_agent_that_ends_at_once_is_listed_with_its_last_words(tmp_path: Path) -> None:
    adapter = LocalAgentsAdapter(local_context(tmp_path, INSTALLATION, POOL), FAILING)
    await adapter.launch([agent_order(agent_name(1))])

    async with asyncio.timeout(60):
        while (agents := await adapter.agents())[0].phase is not AgentPhase.ENDED:
            await adapter.wait_changed()

    assert "no bus at this address" in agents[0].reason
    await adapter.clean()
    assert await adapter.agents() == []


@pytest.mark.parametrize(
    ("value", "indices"), [(None, None), (1, (1,)), ("0,2", (0, 2)), ([3], (3,))]
)
def test_gpu_indices_are_read(value: object, indices: tuple[int, ...] | None) -> None:
    assert gpu_indices({"gpuIndices": value}) == indices


@pytest.mark.parametrize("value", ["a", -1, [0, -2]])
def test_other_gpu_indices_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"gpuIndices|invalid literal"):
        gpu_indices({"gpuIndices": value})
