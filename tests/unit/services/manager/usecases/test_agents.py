"""Lists of agents for clients."""

import pytest

from nni_proto.runner.v1 import pool_pb2, task_pb2
from svc_common import subjects
from svc_common.clock import ManualClock
from svc_common.messaging.memory import InMemoryBus
from svc_manager.agents.liveness import AgentMonitor
from svc_manager.agents.pool_states import PoolStates
from svc_manager.usecases.agents import AgentDirectory

POOLS = PoolStates(InMemoryBus().last_values)
"""No platform has an agent."""


@pytest.fixture
def agents() -> AgentMonitor:
    return AgentMonitor(InMemoryBus(), ManualClock())


def hear(agents: AgentMonitor, runner_id: str, version: str = "3.0.1") -> None:
    presence = task_pb2.RunnerPresence(runner_id=runner_id, boot_id="b", pool="p", version=version)
    agents.handle_presence(presence)


async def test_an_agent_that_comes_between_two_pages_shifts_no_other(agents: AgentMonitor) -> None:
    runners = AgentDirectory(agents, POOLS, InMemoryBus().signals)
    for name in ("a", "c", "e"):
        hear(agents, name)

    first = await runners.list(page_size=2)
    hear(agents, "b")
    second = await runners.list(page_size=2, page_token=first.next_token)

    assert [one.runner_id for one in first.items] == ["a", "c"]
    assert [one.runner_id for one in second.items] == ["e"]
    assert second.next_token == ""


@pytest.mark.claim("platform", 80)
def test_agents_of_another_minor_version_are_named(agents: AgentMonitor) -> None:
    runners = AgentDirectory(agents, POOLS, InMemoryBus().signals)
    for name, version in (("a", "3.0.2"), ("b", "3.1.0"), ("c", ""), ("d", "2.10")):
        hear(agents, name, version)

    assert runners.other_versions("3.0.1") == {"b": "3.1.0", "d": "2.10"}


async def test_agents_of_platforms_are_listed_before_they_are_connected(
    agents: AgentMonitor,
) -> None:
    pools = PoolStates(InMemoryBus().last_values)
    state = pool_pb2.PoolState(
        agents=[
            pool_pb2.PoolAgent(
                name="a", platform="p1", state=pool_pb2.POOL_AGENT_STATE_RUNNING, slots=2
            ),
            pool_pb2.PoolAgent(
                name="c",
                platform="p2",
                state=pool_pb2.POOL_AGENT_STATE_PENDING,
                machine="node7",
                reason="Resources",
            ),
        ]
    )
    pools.handle_state(subjects.pool_state_subject("exp-x"), state.SerializeToString())
    runners = AgentDirectory(agents, pools, InMemoryBus().signals)
    hear(agents, "a")
    hear(agents, "b")

    page = await runners.list()

    rows = [(one.runner_id, one.pool, one.platform, one.slots) for one in page.items]
    assert rows == [("a", "p", "p1", 2), ("b", "p", "", 0), ("c", "exp-x", "p2", 0)]
    pending = page.items[-1]
    assert (pending.host_name, pending.reason) == ("node7", "Resources")
    assert not pending.HasField("last_seen_at")
