"""The platform `ray` on a real cluster of several nodes: ends, reasons, restarts."""

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.ray_actors.adapter import RayAdapter
from svc_trial_runner.fleet.domain.agents import AgentPhase, PlatformAgent
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, agent_name, agent_order
from tests.support.ray_servers import RayAgents, ray_cluster

ray: Any = pytest.importorskip("ray", reason="the platform ray is an extra")
LIMIT_S = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with ray_cluster() as running:
        yield running


@pytest.fixture
def agents(cluster: Any, tmp_path: Path) -> RayAgents:
    return RayAgents(cluster.address, tmp_path)


async def wait_for(
    adapter: RayAdapter, holds: Callable[[list[PlatformAgent]], bool]
) -> list[PlatformAgent]:
    """Wait until the list of agents has a property; return it."""
    async with asyncio.timeout(LIMIT_S):
        while not holds(found := await adapter.agents()):
            await adapter.wait_changed()
    return found


def is_running(found: list[PlatformAgent]) -> bool:
    return [one.phase for one in found] == [AgentPhase.RUNNING]


def is_ended(found: list[PlatformAgent]) -> bool:
    return [one.phase for one in found] == [AgentPhase.ENDED]


async def started(agents: RayAgents) -> RayAdapter:
    """Return an adapter whose agent 1 runs."""
    adapter = agents.adapter(POOL, INSTALLATION)
    assert await adapter.launch([agent_order(agent_name(1))]) == []
    await wait_for(adapter, is_running)
    return adapter


def supervisor_of(agents: RayAgents) -> int:
    """Return a descriptor of the process above the agent."""
    folder = agents.home / "agents" / str(agent_name(1))
    return os.pidfd_open(json.loads((folder / "process.json").read_text())["pid"])


async def has_ended(descriptor: int) -> None:
    """Wait until a process has ended."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ended.set)
    async with asyncio.timeout(LIMIT_S):
        await ended.wait()
    loop.remove_reader(descriptor)
    os.close(descriptor)


@pytest.mark.parametrize("killer", ["ray.kill", "signal"])
async def test_agent_ends_with_its_actor_and_leaves_nothing(agents: RayAgents, killer: str) -> None:
    adapter = await started(agents)
    process = supervisor_of(agents)
    actor = ray.get_actor(str(agent_name(1)), namespace="nni")
    if killer == "ray.kill":
        ray.kill(actor)
    else:
        owner = ray.util.list_named_actors(all_namespaces=True)
        assert owner
        pid = await actor.__ray_call__.remote(lambda _: os.getpid())
        os.kill(pid, signal.SIGKILL)

    await has_ended(process)
    found = await wait_for(adapter, is_ended)

    assert found[0].reason
    assert list((agents.home / "agents").iterdir()) == []
    await adapter.clean()
    await adapter.aclose()


async def test_request_that_no_node_has_is_the_reason_to_wait(agents: RayAgents) -> None:
    adapter = agents.adapter(POOL, INSTALLATION, numCpus=3, resources={"special": 1})

    problems = await adapter.check()
    await adapter.launch([agent_order(agent_name(1))])
    found = await wait_for(adapter, lambda listed: bool(listed and listed[0].reason))

    assert [(one.field, one.permanent) for one in problems] == [("numCpus", False)]
    assert found[0].phase is AgentPhase.PENDING
    assert found[0].reason == (
        "no node has 3 CPU, 1 special: the most of one node is 2 CPU, 1 special"
    )
    await adapter.clean()
    await adapter.aclose()


async def test_busy_nodes_are_the_reason_to_wait(agents: RayAgents) -> None:
    adapter = agents.adapter(POOL, INSTALLATION, numCpus=0, resources={"special": 1})
    await adapter.launch([agent_order(agent_name(1)), agent_order(agent_name(2))])

    found = await wait_for(
        adapter, lambda listed: any("1 of 1 special used" in one.reason for one in listed)
    )

    assert {one.phase for one in found} >= {AgentPhase.PENDING}
    await adapter.clean()
    assert await adapter.agents() == []
    await adapter.aclose()


async def test_refused_runtime_environment_is_a_launch_failure(agents: RayAgents) -> None:
    adapter = agents.adapter(POOL, INSTALLATION, runtimeEnv={"pip": 7})

    failures = await adapter.launch([agent_order(agent_name(1))])

    assert [failure.permanent for failure in failures] == [True]
    assert "pip" in failures[0].reason
    await adapter.clean()
    await adapter.aclose()
