import asyncio
import json
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from svc_common.environment import NNI_LOG_LEVEL
from svc_trial_runner.fleet.adapters.isolated.child import AdapterServer, FleetServices, serve
from svc_trial_runner.fleet.adapters.isolated.child_process import ChildProcess
from svc_trial_runner.fleet.adapters.isolated.messages import (
    read_agents,
    read_failures,
    read_leftovers,
    read_problems,
    write_context,
    write_endpoint,
    write_names,
    write_orders,
)
from svc_trial_runner.fleet.adapters.isolated.peer import Peer
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
from svc_trial_runner.fleet.ports import AdapterContext, FrontEndpoint, PlatformError
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


class AskingAdapter(RecordingAdapter):
    """Adapter that notes what the fleet returns to it."""

    def __init__(self, context: AdapterContext) -> None:
        super().__init__(context)
        self.context = context

    async def prepare(self) -> None:
        self.calls.append(await self.context.bundles.bundle((3, 12), "linux_x86_64"))
        self.calls.append(await self.context.front.open())


async def test_adapter_is_served_until_the_fleet_closes_its_end(tmp_path: Path) -> None:
    adapters: list[AskingAdapter] = []
    requests: list[tuple[str, Any]] = []
    endpoint = FrontEndpoint("10.0.0.1:8081", "certificate")

    def make(context: AdapterContext) -> AskingAdapter:
        adapters.append(AskingAdapter(context))
        return adapters[-1]

    async def handle(method: str, params: Any) -> Any:
        requests.append((method, params))
        return write_endpoint(endpoint) if method == "front" else "/bundles/one"

    before = len(list(Path("/proc/self/fd").iterdir()))
    own, other = socket.socketpair()
    serving = asyncio.create_task(serve(other, lambda _: make))
    fleet = await Peer.open(own, handle)
    running = asyncio.create_task(fleet.run())
    async with asyncio.timeout(30):
        await fleet.call("open", write_context(local_context(tmp_path, INSTALLATION, POOL)))
        await fleet.call("prepare")
        await fleet.aclose()
        await asyncio.gather(serving, running)
    for _ in range(5):  # the transports close their sockets
        await asyncio.sleep(0)

    assert requests == [
        ("bundle", {"python": [3, 12], "platform_tag": "linux_x86_64"}),
        ("front", None),
    ]
    assert adapters[0].calls == [Path("/bundles/one"), endpoint, "aclose"]
    assert len(list(Path("/proc/self/fd").iterdir())) == before


PROGRAM = """
import ctypes, os, signal, sys
from svc_common.logs import get_logger
from svc_trial_runner.fleet.adapters.isolated.child import run_child
from svc_trial_runner.fleet.adapters.local_agents import LocalAgentsAdapter
from svc_trial_runner.fleet.domain.agents import PlatformProblem

DESCRIPTOR = int(sys.argv[1])

class Adapter(LocalAgentsAdapter):
    async def check(self):
        get_logger().info("adapter checked")
        get_logger().warning("adapter has problems")
        libc, ends_by = ctypes.CDLL(None), ctypes.c_int()
        libc.prctl(2, ctypes.byref(ends_by))  # PR_GET_PDEATHSIG
        facts = {
            "signal at the end of the fleet": ends_by.value,
            "can be inspected": libc.prctl(3),  # PR_GET_DUMPABLE
            "ignores the terminal": signal.getsignal(signal.SIGINT) == signal.SIG_IGN,
            "passes its socket on": os.get_inheritable(DESCRIPTOR),
        }
        return [PlatformProblem(name, "is", str(fact)) for name, fact in facts.items()]

run_child(DESCRIPTOR, lambda _: Adapter)
"""


async def test_child_depends_on_the_fleet_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NNI_LOG_LEVEL, "warning")

    async def refuse(method: str, params: Any) -> Any:
        raise PlatformError("no requests are handled")

    child = await ChildProcess.start((sys.executable, "-c", PROGRAM), refuse)
    async with asyncio.timeout(60):
        await child.call("open", write_context(local_context(tmp_path, INSTALLATION, POOL)))
        problems = read_problems(await child.call("check"))
        await child.aclose()

    assert {problem.field: problem.value for problem in problems} == {
        "signal at the end of the fleet": "9",
        "can be inspected": "0",
        "ignores the terminal": "True",
        "passes its socket on": "False",
    }
    written = capfd.readouterr().err.splitlines()
    lines = [json.loads(line) for line in written if line.startswith("{")]
    assert [(line["service"], line["event"]) for line in lines] == [
        ("fleet", "adapter has problems")
    ]
