from collections.abc import Sequence
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.isolated.child import AdapterServer, FleetServices
from svc_trial_runner.fleet.adapters.isolated.messages import (
    read_agents,
    read_failures,
    read_leftovers,
    read_problems,
    write_context,
    write_names,
    write_orders,
)
from svc_trial_runner.fleet.adapters.local_agents import LocalAgentsAdapter
from svc_trial_runner.fleet.domain.agents import (
    AgentCredentials,
    AgentName,
    AgentOrder,
    AgentPhase,
    LaunchFailure,
    PlatformAgent,
    PlatformProblem,
)
from svc_trial_runner.fleet.domain.leftovers import Leftover
from svc_trial_runner.fleet.ports import AdapterContext, PlatformError
from svc_trial_runner.fleet.testing import agent_name
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


class RecordingAdapter(CleaningAdapter):
    """Adapter that remembers its calls."""

    def __init__(self, context: AdapterContext) -> None:
        super().__init__(context)
        self.calls: list[object] = []

    async def check(self) -> list[PlatformProblem]:
        return [PlatformProblem("slots", "must be 1", "2")]

    async def prepare(self) -> None:
        self.calls.append("prepare")

    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        return [LaunchFailure(order.name, "no room") for order in orders]

    async def agents(self) -> list[PlatformAgent]:
        return [PlatformAgent(agent_name(2), AgentPhase.RUNNING)]

    async def terminate(self, names: Sequence[AgentName]) -> None:
        self.calls += names

    async def clean(self) -> None:
        self.calls.append("clean")

    async def wait_changed(self) -> None:
        self.calls.append("wait_changed")

    async def aclose(self) -> None:
        self.calls.append("aclose")


async def test_calls_reach_the_adapter_and_results_return(tmp_path: Path) -> None:
    adapters: list[RecordingAdapter] = []

    def make(context: AdapterContext) -> RecordingAdapter:
        adapters.append(RecordingAdapter(context))
        return adapters[-1]

    server = AdapterServer(lambda _: make, FleetServices())
    await server.handle("open", write_context(local_context(tmp_path, INSTALLATION, POOL)))
    for method in ("prepare", "clean", "wait_changed", "aclose"):
        assert await server.handle(method, None) is None
    assert await server.handle("terminate", write_names([agent_name(1)])) is None
    await server.aclose()

    failures = read_failures(await server.handle("launch", write_orders([order_of(3)])))
    assert [failure.name for failure in failures] == [agent_name(3)]
    assert [agent.name for agent in read_agents(await server.handle("agents", None))] == [
        agent_name(2)
    ]
    assert read_problems(await server.handle("check", None)) == [
        PlatformProblem("slots", "must be 1", "2")
    ]
    (adapter,) = adapters
    assert adapter.calls == [
        "prepare", "clean", "wait_changed", "aclose", agent_name(1), "aclose"
    ]  # fmt: skip


def order_of(number: int) -> AgentOrder:
    return AgentOrder(agent_name(number), AgentCredentials("user", "password", "token"), slots=1)


async def test_long_name_of_a_method_is_shown_by_its_first_40_characters(tmp_path: Path) -> None:
    server = AdapterServer(lambda _: LocalAgentsAdapter, FleetServices())
    await server.handle("open", write_context(local_context(tmp_path, INSTALLATION, POOL)))

    with pytest.raises(PlatformError, match=f"no method '{'a' * 40}'$"):
        await server.handle("a" * 100, None)
