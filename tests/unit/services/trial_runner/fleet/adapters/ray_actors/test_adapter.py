import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.bundles.worker_commands import CommandResult
from svc_trial_runner.fleet.adapters.ray_actors.adapter import RayAdapter
from svc_trial_runner.fleet.adapters.ray_actors.agent_actor import network_key
from svc_trial_runner.fleet.adapters.ray_actors.cluster import ActorState
from svc_trial_runner.fleet.adapters.ray_actors.demand import ClusterDemand, NodeResources
from svc_trial_runner.fleet.domain.agents import AgentPhase
from svc_trial_runner.fleet.ports import (
    AdapterContext,
    FrontEndpoint,
    InstallationEndpoints,
    PlatformError,
)
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, agent_name, agent_order
from tests.support.in_memory_ray import InMemoryRay, InMemoryRayCluster
from tests.support.ray_servers import RayAgents

NAME = agent_name(1)
ELSEWHERE = NodeResources("192.0.2.77", {"CPU": 8.0}, {})


class OpenFront:
    async def open(self) -> FrontEndpoint:
        return FrontEndpoint("198.51.100.1:8081", "certificate")


@pytest.fixture
def shared() -> InMemoryRay:
    return InMemoryRay()


@pytest.fixture
def agents(tmp_path: Path) -> RayAgents:
    return RayAgents("auto", tmp_path)


def with_front(
    agents: RayAgents, shared: InMemoryRay, bus: str = "nats://127.0.0.1:1"
) -> RayAdapter:
    context = agents.context(POOL, INSTALLATION)
    return RayAdapter(
        AdapterContext(
            context.installation,
            context.pool,
            context.section,
            InstallationEndpoints(bus, "127.0.0.1:2"),
            context.bundles,
            context.folder,
            OpenFront(),
        ),
        InMemoryRayCluster(shared),
    )


async def test_agents_on_this_machine_use_its_loopback_and_no_port_is_opened(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared))

    await adapter.launch([agent_order(NAME)])

    settings = shared.plans[0].settings
    assert list(settings) == [network_key()]
    connection = json.loads(settings[network_key()])["connection"]
    assert (connection["kind"], connection["bus"]) == ("direct", "nats://127.0.0.1:4222")


async def test_agents_on_other_machines_use_the_front(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    shared.demand = ClusterDemand((ELSEWHERE,))
    adapter = with_front(agents, shared)

    await adapter.launch([agent_order(NAME)])

    settings = shared.plans[0].settings
    assert list(settings) == [network_key(), ""]
    connection = json.loads(settings[""])["connection"]
    assert connection["kind"] == "tls"
    assert connection["bus"] == "tls://198.51.100.1:8081"
    assert connection["manager"] == "198.51.100.1:8081"
    assert connection["authority"] == "certificate"


async def test_autoscaler_opens_the_front_before_its_nodes_are_there(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    shared.demand = ClusterDemand(shared.demand.nodes, has_autoscaler=True)
    adapter = with_front(agents, shared)

    await adapter.launch([agent_order(NAME)])

    assert "" in shared.plans[0].settings


async def test_front_that_cannot_be_opened_fails_the_preparation(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    shared.demand = ClusterDemand((ELSEWHERE,))
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared))

    with pytest.raises(PlatformError):
        await adapter.prepare()


async def test_bus_with_tls_needs_no_front(agents: RayAgents, shared: InMemoryRay) -> None:
    shared.demand = ClusterDemand((ELSEWHERE,))
    adapter = with_front(agents, shared, "tls://bus.example:4222")

    await adapter.launch([agent_order(NAME)])

    assert list(shared.plans[0].settings) == [""]
    assert b"bus.example" in shared.plans[0].settings[""]


async def test_settings_are_in_no_representation_of_the_plan(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared))

    await adapter.launch([agent_order(NAME)])

    assert b"password" in next(iter(shared.plans[0].settings.values()))
    assert "password" not in repr(shared.plans[0])


async def test_actor_that_waits_has_the_reason(agents: RayAgents, shared: InMemoryRay) -> None:
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared), numGpus=2)
    await adapter.launch([agent_order(NAME)])

    found = await adapter.agents()

    assert [one.phase for one in found] == [AgentPhase.PENDING]
    assert "the most of one node is" in found[0].reason


async def test_actor_of_an_earlier_fleet_that_waits_has_a_reason(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    shared.actors[str(NAME)] = ActorState(AgentPhase.PENDING)
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared))

    found = await adapter.agents()

    assert found[0].reason == "Ray is starting the actor (0.1 CPU)"


async def test_agent_that_runs_does_not_wait_again_while_its_actor_is_silent(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared))
    shared.actors[str(NAME)] = ActorState(AgentPhase.RUNNING, "node")
    await adapter.agents()
    shared.actors[str(NAME)] = ActorState(AgentPhase.PENDING)

    silent = await adapter.agents()
    shared.actors[str(NAME)] = ActorState(AgentPhase.RUNNING, "node")
    heard = await adapter.agents()

    assert [(one.phase, one.machine) for one in silent] == [(AgentPhase.RUNNING, "node")]
    assert "does not report its state" in silent[0].reason
    assert [(one.phase, one.reason) for one in heard] == [(AgentPhase.RUNNING, "")]


async def test_actor_that_vanished_is_listed_as_ended_until_it_is_terminated(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared))
    await adapter.launch([agent_order(NAME)])
    shared.actors.clear()  # the head was restarted

    for _ in range(2):
        found = await adapter.agents()
        assert [(one.phase, one.reason) for one in found] == [
            (AgentPhase.ENDED, "its actor is gone")
        ]
    await adapter.terminate([NAME])

    assert await adapter.agents() == []


async def test_refused_actor_is_a_failure_and_the_others_start(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    options: dict[str, object] = {"runtimeEnv": {"refused": True}}
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared), **options)

    failures = await adapter.launch([agent_order(NAME)])

    assert [(one.name, one.permanent) for one in failures] == [(NAME, True)]
    assert await adapter.agents() == []


async def test_cluster_that_is_away_is_a_problem_of_the_platform(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    shared.failure = PlatformError("the Ray cluster cannot be reached", "start it")
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared))

    problems = await adapter.check()

    assert [(one.field, one.permanent) for one in problems] == [("platform", False)]
    assert problems[0].remedy == "start it"


async def test_clean_removes_the_holder_of_the_bundle_and_what_lies_on_the_nodes(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared))
    await adapter.launch([agent_order(NAME)])

    await adapter.clean()

    assert shared.bundles == {}
    assert [*shared.commands[-1]][2:] == ["clean", "--bundles", f"nni-{INSTALLATION}-{POOL}-"]


async def test_wrong_options_are_permanent_before_anything_starts(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared), numCpus=-1)

    with pytest.raises(PlatformError, match="numCpus must be a number") as caught:
        await adapter.prepare()

    assert caught.value.permanent
    assert shared.bundles == {}


@pytest.mark.parametrize("call", ["launch", "terminate"])
async def test_wait_ends_when_agents_are_launched_or_ended(
    agents: RayAgents, shared: InMemoryRay, call: str
) -> None:
    adapter = agents.adapter(
        POOL, INSTALLATION, InMemoryRayCluster(shared), pollIntervalSeconds=3600
    )
    if call == "terminate":
        await adapter.launch([agent_order(NAME)])
    waiting = asyncio.create_task(adapter.wait_changed())
    await asyncio.sleep(0)
    assert not waiting.done()

    if call == "launch":
        await adapter.launch([agent_order(NAME)])
    else:
        await adapter.terminate([NAME])

    async with asyncio.timeout(30):
        await waiting
    assert len(shared.actors) == (call == "launch")


async def test_wait_ends_when_an_agent_changes(agents: RayAgents, shared: InMemoryRay) -> None:
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared), numGpus=2)
    await adapter.launch([agent_order(NAME)])
    await adapter.agents()
    shared.actors[str(NAME)] = ActorState(AgentPhase.RUNNING, "node")

    async with asyncio.timeout(30):
        await adapter.wait_changed()

    assert [one.phase for one in await adapter.agents()] == [AgentPhase.RUNNING]


async def test_agent_is_launched_once(agents: RayAgents, shared: InMemoryRay) -> None:
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared))

    for _ in range(2):
        assert await adapter.launch([agent_order(NAME)]) == []
    other = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared))
    assert await other.launch([agent_order(NAME)]) == []

    assert [plan.name for plan in shared.plans] == [str(NAME)]


async def test_actor_that_waits_is_compared_with_what_it_asks_for(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared), slots=3, numCpus=None)
    order = agent_order(NAME)
    await adapter.launch([replace(order, slots=5)])

    (agent,) = await adapter.agents()
    shared.actors = {str(agent_name(2)): ActorState(AgentPhase.PENDING)}
    shared.demand = ClusterDemand(())
    _, assumed = await adapter.agents()

    assert "no node has 5 CPU" in agent.reason
    assert "no node has 3 CPU" in assumed.reason


async def test_agents_and_bundles_of_other_pools_are_left_alone(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared))
    other = agents.adapter(f"{POOL}-b", INSTALLATION, InMemoryRayCluster(shared))
    await adapter.launch([agent_order(NAME)])

    await other.terminate([NAME])
    await other.clean()
    (left,) = await adapter.leftovers()

    assert await other.agents() == []
    assert list(shared.actors) == [str(NAME)]
    assert len(shared.bundles) == 1
    assert (left.pool, left.agents) == (POOL, (str(NAME),))


async def test_bundle_alone_is_left_over_of_its_pool(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared))
    await adapter.prepare()
    shared.bundles["nni-9999abcd-other.bundle.0123"] = b""

    (left,) = await adapter.leftovers()

    assert (left.pool, left.agents) == (POOL, ())


async def test_usable_section_has_no_problem_and_one_that_asks_for_too_much_has_one(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared))
    greedy = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared), numGpus=2)

    assert await adapter.check() == []
    assert [one.field for one in await greedy.check()] == ["numGpus"]
    assert shared.bundles == {}


async def test_actor_has_the_name_holder_folder_and_options_of_its_section(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    options: dict[str, object] = {
        "runtimeEnv": {"pip": ["a"]},
        "schedulingStrategy": "SPREAD",
        "home": None,
    }
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared), **options)

    await adapter.launch([agent_order(NAME)])

    (plan,) = shared.plans
    (holder,) = shared.bundles
    assert (plan.name, plan.folder, plan.holder) == (str(NAME), "~/.nni", holder)
    assert holder == f"nni-{INSTALLATION}-{POOL}.bundle.{plan.digest[:16]}"
    assert len(plan.digest) == 64
    assert (plan.runtime_env, plan.scheduling_strategy) == ({"pip": ["a"]}, "SPREAD")
    settings = json.loads(next(iter(plan.settings.values())))
    assert settings["home"] == f"~/.nni/agents/{NAME}/home"
    assert settings["platform"] == "ray"


async def test_rest_is_cleaned_on_all_nodes_by_a_prefix_that_no_agent_has(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared))

    await adapter.clean_rest()

    assert [*shared.commands[-1]] == [
        "--folder", str(agents.home), "clean", "--bundles", "-"
    ]  # fmt: skip


async def test_agents_are_listed_in_the_order_of_their_numbers(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    for number in (10, 2, 1):
        shared.actors[str(agent_name(number))] = ActorState(AgentPhase.RUNNING, "node")
    shared.actors["another-actor"] = ActorState(AgentPhase.RUNNING, "node")
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared))

    found = await adapter.agents()

    assert [one.name for one in found] == [agent_name(number) for number in (1, 2, 10)]
    assert await adapter.capacity() is None


async def test_actor_that_ended_has_its_reason_and_is_not_silent(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared))
    shared.actors[str(NAME)] = ActorState(AgentPhase.RUNNING, "node")
    await adapter.agents()
    shared.actors[str(NAME)] = ActorState(AgentPhase.ENDED, "node", "no bus")

    (agent,) = await adapter.agents()

    assert (agent.phase, agent.machine, agent.reason) == (AgentPhase.ENDED, "node", "no bus")


class NotedCluster(InMemoryRayCluster):
    """Cluster that notes on which nodes commands run, and whether it was closed."""

    def __init__(self, shared: InMemoryRay) -> None:
        super().__init__(shared)
        self.on_all_nodes: list[tuple[str, bool]] = []
        self.graces_s: list[float] = []
        self.system = ""
        self.is_closed = False

    async def run(
        self, arguments: Sequence[str], *, on_all_nodes: bool = False
    ) -> list[CommandResult]:
        self.on_all_nodes.append((arguments[2], on_all_nodes))
        results = await super().run(arguments, on_all_nodes=on_all_nodes)
        if not self.system:
            return results
        output = results[0].output.replace(b'"Linux"', f'"{self.system}"'.encode())
        return [replace(results[0], output=output)]

    async def end(self, names: Sequence[str], grace_s: float) -> None:
        self.graces_s.append(grace_s)
        await super().end(names, grace_s)

    async def aclose(self) -> None:
        self.is_closed = True


async def test_one_node_is_asked_for_its_facts_and_all_are_cleaned(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    cluster = NotedCluster(shared)
    adapter = agents.adapter(POOL, INSTALLATION, cluster)

    await adapter.check()
    await adapter.prepare()
    await adapter.leftovers()
    await adapter.clean()
    await adapter.clean_rest()

    assert cluster.on_all_nodes == [
        ("probe", False),
        ("probe", False),
        ("status", True),
        ("clean", True),
        ("clean", True),
    ]


async def test_node_that_cannot_run_agents_is_a_problem_and_is_not_prepared(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    cluster = NotedCluster(shared)
    cluster.system = "Darwin"
    adapter = agents.adapter(POOL, INSTALLATION, cluster)

    (problem,) = await adapter.check()
    with pytest.raises(PlatformError, match="agents run on Linux"):
        await adapter.prepare()

    assert (problem.field, problem.value) == ("platform", "ray")
    assert "agents run on Linux" in problem.rule
    assert shared.bundles == {}


async def test_agents_have_ten_seconds_to_end_and_the_cluster_is_closed_with_the_adapter(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    cluster = NotedCluster(shared)
    adapter = agents.adapter(POOL, INSTALLATION, cluster)
    await adapter.launch([agent_order(NAME)])

    await adapter.terminate([NAME])
    before = cluster.is_closed
    await adapter.aclose()

    assert cluster.graces_s == [10.0]
    assert (before, cluster.is_closed) == (False, True)


@pytest.mark.parametrize(
    ("phase", "factor"),
    [
        (None, 5),
        (AgentPhase.PENDING, 1),
        (AgentPhase.STARTING, 1),
        (AgentPhase.RUNNING, 5),
        (AgentPhase.ENDED, 5),
    ],
)
async def test_settled_agents_are_polled_less_often(
    agents: RayAgents,
    shared: InMemoryRay,
    monkeypatch: pytest.MonkeyPatch,
    phase: AgentPhase | None,
    factor: int,
) -> None:
    adapter = agents.adapter(
        POOL, INSTALLATION, InMemoryRayCluster(shared), pollIntervalSeconds=3600
    )
    if phase is not None:
        shared.actors[str(NAME)] = ActorState(phase, "node")
    await adapter.agents()
    loop = asyncio.get_running_loop()
    delays_s: list[float] = []
    call_at = loop.call_at

    def note(when_s: float, *args: Any, **options: Any) -> asyncio.TimerHandle:
        delays_s.append(when_s - loop.time())
        return call_at(when_s, *args, **options)

    monkeypatch.setattr(loop, "call_at", note)
    waiting = asyncio.create_task(adapter.wait_changed())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})

    (delay_s,) = delays_s
    assert delay_s == pytest.approx(3600 * factor, abs=600)


async def test_actor_of_a_section_without_slots_is_taken_for_one_of_one_trial(
    agents: RayAgents, shared: InMemoryRay
) -> None:
    shared.actors[str(NAME)] = ActorState(AgentPhase.PENDING)
    shared.demand = ClusterDemand(())
    adapter = agents.adapter(POOL, INSTALLATION, InMemoryRayCluster(shared), numCpus=None)

    (agent,) = await adapter.agents()

    assert "no node has 1 CPU" in agent.reason
