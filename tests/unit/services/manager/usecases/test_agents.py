"""Lists of agents for clients."""

import pytest

from nni_proto.runner.v1 import task_pb2
from svc_common.clock import ManualClock
from svc_common.messaging.memory import InMemoryBus
from svc_manager.agents.liveness import AgentMonitor
from svc_manager.usecases.agents import AgentDirectory


@pytest.fixture
def agents() -> AgentMonitor:
    return AgentMonitor(InMemoryBus(), ManualClock())


def hear(agents: AgentMonitor, runner_id: str, version: str = "3.0.1") -> None:
    presence = task_pb2.RunnerPresence(runner_id=runner_id, boot_id="b", pool="p", version=version)
    agents.handle_presence(presence)


async def test_an_agent_that_comes_between_two_pages_shifts_no_other(agents: AgentMonitor) -> None:
    runners = AgentDirectory(agents, InMemoryBus().signals)
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
    runners = AgentDirectory(agents, InMemoryBus().signals)
    for name, version in (("a", "3.0.2"), ("b", "3.1.0"), ("c", ""), ("d", "2.10")):
        hear(agents, name, version)

    assert runners.other_versions("3.0.1") == {"b": "3.1.0", "d": "2.10"}
