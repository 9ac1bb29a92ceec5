from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("kubernetes", reason="the extra kubernetes is not installed")

from svc_trial_runner.fleet.domain.agents import AgentPhase, PlatformAgent
from svc_trial_runner.fleet.ports import PlatformError
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, agent_name, agent_order
from tests.support.kubernetes.agents import IMAGE, KubernetesCluster, sleeping_cluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from svc_trial_runner.fleet.adapters.kubernetes.adapter import KubernetesAdapter

NAME = agent_name(1)
LIMIT_S = 30.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KubernetesCluster]:
    with sleeping_cluster(tmp_path) as one:
        yield one


def adapter_of(cluster: KubernetesCluster, **options: Any) -> KubernetesAdapter:
    return cluster.adapter(POOL, INSTALLATION, **options)


async def launched(adapter: KubernetesAdapter) -> None:
    await adapter.prepare()
    assert await adapter.launch([agent_order(NAME)]) == []


async def agent_when(
    adapter: KubernetesAdapter, holds: Callable[[PlatformAgent], bool]
) -> PlatformAgent:
    """Return the agent once it has a property."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            (agent,) = await adapter.agents()
            if holds(agent):
                return agent
            await adapter.wait_changed()


def is_running(agent: PlatformAgent) -> bool:
    return agent.phase is AgentPhase.RUNNING


async def test_settings_of_an_agent_lead_to_the_front(cluster: KubernetesCluster) -> None:
    adapter = adapter_of(cluster)

    await launched(adapter)
    await adapter.aclose()

    secret = cluster.server.objects.get("secrets", str(NAME))
    settings = json.loads(base64.b64decode(secret["data"]["settings.json"]))
    assert settings["connection"]["kind"] == "tls"
    assert settings["connection"]["bus"] == "tls://192.0.2.1:8081"
    assert settings["grace_s"] == 2
    assert settings["manager_token"] == "token"


async def test_secret_goes_with_its_job(cluster: KubernetesCluster) -> None:
    adapter = adapter_of(cluster)
    await launched(adapter)

    cluster.server.objects.delete("jobs", str(NAME))
    await adapter.aclose()

    assert cluster.server.objects.list("secrets")[0] == []


async def test_launch_after_a_kill_between_secret_and_job_continues(
    cluster: KubernetesCluster,
) -> None:
    cluster.server.objects.create("secrets", {"metadata": {"name": str(NAME)}, "data": {}})
    adapter = adapter_of(cluster)

    await launched(adapter)
    await adapter.aclose()

    assert "settings.json" in cluster.server.objects.get("secrets", str(NAME))["data"]


async def test_launch_after_a_kill_before_the_owner_was_set_sets_it(
    cluster: KubernetesCluster,
) -> None:
    adapter = adapter_of(cluster)
    await launched(adapter)
    patch: dict[str, Any] = {"metadata": {"ownerReferences": None}}
    cluster.server.objects.patch("secrets", str(NAME), patch)

    await launched(adapter)
    await adapter.aclose()

    (owner,) = cluster.server.objects.get("secrets", str(NAME))["metadata"]["ownerReferences"]
    assert owner["name"] == str(NAME)


async def test_quota_is_the_reason_and_the_agent_starts_when_it_has_room(
    cluster: KubernetesCluster,
) -> None:
    hard = {"metadata": {"name": "team"}, "spec": {"hard": {"pods": "0"}}}
    cluster.server.objects.create("resourcequotas", hard)
    adapter = adapter_of(cluster)
    await launched(adapter)

    waiting = await agent_when(adapter, lambda agent: "quota" in agent.reason)
    cluster.server.objects.delete("resourcequotas", "team")
    await agent_when(adapter, is_running)
    await adapter.aclose()

    assert waiting.phase is AgentPhase.PENDING
    assert "exceeded quota: team" in waiting.reason


async def test_image_that_is_missing_is_the_reason(cluster: KubernetesCluster) -> None:
    cluster.node.missing_images.add(IMAGE)
    adapter = adapter_of(cluster)
    await launched(adapter)

    agent = await agent_when(adapter, lambda agent: bool(agent.reason))
    await adapter.aclose()

    assert agent.reason.startswith("ErrImagePull: Failed to pull image")


async def test_words_of_the_scheduler_are_the_reason(cluster: KubernetesCluster) -> None:
    cluster.node.unschedulable = "0/1 nodes are available: 1 Insufficient memory."
    adapter = adapter_of(cluster)
    await launched(adapter)

    agent = await agent_when(adapter, lambda agent: "Unschedulable" in agent.reason)
    await adapter.aclose()

    assert "Insufficient memory" in agent.reason


async def test_evicted_pod_ends_its_agent(cluster: KubernetesCluster) -> None:
    adapter = adapter_of(cluster)
    await launched(adapter)
    await agent_when(adapter, is_running)

    status = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."}
    cluster.server.objects.patch("pods", f"{NAME}-x7k2p", {"status": status})
    agent = await agent_when(adapter, lambda agent: agent.phase is AgentPhase.ENDED)
    await adapter.aclose()

    assert agent.reason.startswith("Evicted: The node was low on memory.")


async def test_pod_that_was_deleted_ends_its_agent(cluster: KubernetesCluster) -> None:
    adapter = adapter_of(cluster)
    await launched(adapter)
    await agent_when(adapter, is_running)

    cluster.server.objects.delete("pods", f"{NAME}-x7k2p", grace_s=0)
    agent = await agent_when(adapter, lambda agent: agent.phase is AgentPhase.ENDED)
    await adapter.aclose()

    assert agent.reason == "its pod was deleted"


async def test_forgotten_version_of_the_list_wakes_the_wait(cluster: KubernetesCluster) -> None:
    adapter = adapter_of(cluster)
    await launched(adapter)
    await agent_when(adapter, is_running)
    await adapter.agents()
    cluster.server.objects.forget_history()

    async with asyncio.timeout(LIMIT_S):
        await adapter.wait_changed()
    await adapter.aclose()

    assert cluster.server.objects.list("jobs")[0]


async def test_cancelled_wait_releases_its_thread(cluster: KubernetesCluster) -> None:
    adapter = adapter_of(cluster)
    await launched(adapter)
    await agent_when(adapter, is_running)
    await adapter.agents()

    waiting = asyncio.create_task(adapter.wait_changed())
    await asyncio.sleep(0)
    waiting.cancel()
    async with asyncio.timeout(LIMIT_S):
        await asyncio.wait({waiting})
    await adapter.aclose()

    assert waiting.cancelled()


async def test_refused_job_is_a_failure_and_leaves_no_secret(cluster: KubernetesCluster) -> None:
    cluster.server.invalid = ("spec.template.spec.nodeSelector", "Invalid value")
    adapter = adapter_of(cluster)
    await adapter.prepare()

    (failure,) = await adapter.launch([agent_order(NAME)])
    await adapter.aclose()

    assert failure.permanent
    assert "nodeSelector" in failure.reason
    assert cluster.server.objects.list("secrets")[0] == []


async def test_server_that_is_broken_is_an_error(cluster: KubernetesCluster) -> None:
    adapter = adapter_of(cluster)
    await adapter.prepare()
    cluster.server.broken = 500

    with pytest.raises(PlatformError, match="no leader") as caught:
        await adapter.launch([agent_order(NAME)])
    (problem,) = await adapter.check()
    await adapter.aclose()

    assert not caught.value.permanent
    assert not problem.permanent


async def test_option_that_breaks_a_rule_is_refused_without_a_request(
    cluster: KubernetesCluster,
) -> None:
    adapter = adapter_of(cluster, memory="16GB")

    (problem,) = await adapter.check()
    with pytest.raises(PlatformError, match="memory must be a quantity"):
        await adapter.prepare()

    assert problem.field == "memory"


async def test_agent_of_one_trial_gets_one_slot(cluster: KubernetesCluster) -> None:
    adapter = adapter_of(cluster, reuseMode=False)

    await launched(adapter)
    await adapter.aclose()

    secret = cluster.server.objects.get("secrets", str(NAME))
    settings = json.loads(base64.b64decode(secret["data"]["settings.json"]))
    assert (settings["slots"], settings["max_trials"]) == (1, 1)


async def test_two_platforms_of_a_pool_share_a_namespace(cluster: KubernetesCluster) -> None:
    first, second = adapter_of(cluster), adapter_of(cluster, key="kubernetes-2")
    await launched(first)

    await second.prepare()
    await second.clean()

    assert await second.agents() == []
    assert [agent.name for agent in await first.agents()] == [NAME]
    await first.aclose()
    await second.aclose()


async def test_usable_section_has_no_problem(cluster: KubernetesCluster) -> None:
    adapter = adapter_of(cluster)

    assert await adapter.check() == []
    await adapter.aclose()


async def test_launch_of_no_order_asks_for_nothing(cluster: KubernetesCluster) -> None:
    cluster.server.broken = 500
    adapter = adapter_of(cluster)

    assert await adapter.launch([]) == []
    await adapter.aclose()


@pytest.mark.parametrize("call", ["launch", "terminate", "clean"])
async def test_wait_ends_when_agents_are_launched_or_ended(
    cluster: KubernetesCluster, call: str
) -> None:
    adapter = adapter_of(cluster)
    await adapter.prepare()
    await adapter.agents()
    waiting = asyncio.create_task(adapter.wait_changed())
    await asyncio.sleep(0)
    assert not waiting.done()

    match call:
        case "launch":
            assert await adapter.launch([agent_order(NAME)]) == []
        case "terminate":
            await adapter.terminate([NAME])
        case _:
            await adapter.clean()

    async with asyncio.timeout(9):  # less than that of a watch of waiting agents
        await waiting
    await adapter.aclose()


async def test_agents_of_other_pools_are_not_ended(cluster: KubernetesCluster) -> None:
    adapter, other = adapter_of(cluster), cluster.adapter(f"{POOL}-b", INSTALLATION)
    await launched(adapter)

    await other.terminate([NAME])
    left = await other.leftovers()

    assert [agent.name for agent in await adapter.agents()] == [NAME]
    assert [(one.pool, one.agents) for one in left] == [(POOL, (str(NAME),))]
    await adapter.terminate([NAME])
    assert await adapter.agents() == []
    assert cluster.server.objects.list("secrets")[0] == []
    await adapter.aclose()
    await other.aclose()


async def test_secret_alone_is_left_over(cluster: KubernetesCluster) -> None:
    adapter = adapter_of(cluster)
    await launched(adapter)
    secret = cluster.server.objects.get("secrets", str(NAME))
    await adapter.terminate([NAME])
    labels = secret["metadata"]["labels"]
    orphan = {"metadata": {"name": "orphan", "labels": labels}, "data": {}}
    cluster.server.objects.create("secrets", orphan)
    nameless = {key: value for key, value in labels.items() if key != "nni-pool"}
    cluster.server.objects.create("secrets", {"metadata": {"name": "b", "labels": nameless}})

    (left,) = await adapter.leftovers()
    await adapter.aclose()

    assert (left.pool, left.agents) == (POOL, (str(NAME),))


async def test_wait_ends_when_a_job_is_created_that_gets_no_pod(cluster: KubernetesCluster) -> None:
    hard = {"metadata": {"name": "team"}, "spec": {"hard": {"pods": "0"}}}
    cluster.server.objects.create("resourcequotas", hard)
    adapter = adapter_of(cluster)
    await adapter.prepare()
    await adapter.agents()
    waiting = asyncio.create_task(adapter.wait_changed())
    await asyncio.sleep(0)

    assert await adapter.launch([agent_order(NAME)]) == []

    async with asyncio.timeout(9):  # less than that of a watch of waiting agents
        await waiting
    await adapter.aclose()
