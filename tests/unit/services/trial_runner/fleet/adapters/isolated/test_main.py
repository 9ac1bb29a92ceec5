from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.isolated.adapter import IsolatedAdapter
from svc_trial_runner.fleet.domain.agents import PlatformSection
from svc_trial_runner.fleet.ports import AdapterContext, PlatformError
from tests.support.fleet_pools import INSTALLATION, POOL
from tests.support.local_platforms import local_context


def isolated(folder: Path, platform: str) -> IsolatedAdapter:
    base = local_context(folder, INSTALLATION, POOL)
    section = PlatformSection(platform, {})
    return IsolatedAdapter(
        AdapterContext(
            base.installation, base.pool, section, base.endpoints, base.bundles, folder, base.front
        )
    )


async def test_child_opens_the_platform_of_its_context(tmp_path: Path) -> None:
    adapter = isolated(tmp_path, "local")
    try:
        assert await adapter.capacity() == 1
        assert await adapter.agents() == []
    finally:
        await adapter.aclose()


async def test_platform_that_is_not_installed_is_a_permanent_error(tmp_path: Path) -> None:
    adapter = isolated(tmp_path, "nowhere")
    try:
        with pytest.raises(PlatformError, match="no platform nowhere") as caught:
            await adapter.check()
    finally:
        await adapter.aclose()

    assert caught.value.permanent
