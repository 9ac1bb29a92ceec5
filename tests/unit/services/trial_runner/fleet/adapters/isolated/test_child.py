from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.isolated.child import AdapterServer, FleetServices
from svc_trial_runner.fleet.adapters.isolated.messages import read_leftovers, write_context
from svc_trial_runner.fleet.adapters.local_agents import LocalAgentsAdapter
from svc_trial_runner.fleet.domain.leftovers import Leftover
from svc_trial_runner.fleet.ports import AdapterContext, PlatformError
from tests.support.fleet_pools import INSTALLATION, POOL
from tests.support.local_platforms import local_context


async def test_methods_need_an_open_adapter() -> None:
    server = AdapterServer(lambda _: LocalAgentsAdapter, FleetServices())

    with pytest.raises(PlatformError, match="not open"):
        await server.handle("agents", None)


async def test_platform_is_loaded_by_its_name(tmp_path: Path) -> None:
    loaded = []

    def load(platform: str) -> type[LocalAgentsAdapter]:
        loaded.append(platform)
        return LocalAgentsAdapter

    server = AdapterServer(load, FleetServices())
    await server.handle("open", write_context(local_context(tmp_path, INSTALLATION, POOL)))

    assert loaded == ["local"]
    assert await server.handle("capacity", None) == 1


async def test_unknown_method_is_refused(tmp_path: Path) -> None:
    server = AdapterServer(lambda _: LocalAgentsAdapter, FleetServices())
    await server.handle("open", write_context(local_context(tmp_path, INSTALLATION, POOL)))

    with pytest.raises(PlatformError, match="no method 'delete_all'"):
        await server.handle("delete_all", None)


async def test_server_without_an_adapter_is_closed() -> None:
    server = AdapterServer(lambda _: LocalAgentsAdapter, FleetServices())

    await server.aclose()

    with pytest.raises(PlatformError, match="not open"):
        await server.handle("aclose", None)


class CleaningAdapter(LocalAgentsAdapter):
    """Adapter that has found a leftover."""

    cleaned = 0

    async def leftovers(self) -> list[Leftover]:
        return [Leftover("pool", ("pool-1",))]

    async def clean_rest(self) -> None:
        self.cleaned += 1


async def test_leftovers_are_found_and_removed(tmp_path: Path) -> None:
    adapters: list[CleaningAdapter] = []

    def make(context: AdapterContext) -> CleaningAdapter:
        adapters.append(CleaningAdapter(context))
        return adapters[-1]

    server = AdapterServer(lambda _: make, FleetServices())
    await server.handle("open", write_context(local_context(tmp_path, INSTALLATION, POOL)))

    found = read_leftovers(await server.handle("leftovers", None))
    assert await server.handle("clean_rest", None) is None

    assert found == [Leftover("pool", ("pool-1",))]
    assert [adapter.cleaned for adapter in adapters] == [1]
