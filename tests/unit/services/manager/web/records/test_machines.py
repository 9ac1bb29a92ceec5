"""REST records of agents and pools."""

from __future__ import annotations

import pytest

from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_proto.runner.v1 import pool_pb2
from svc_manager.web.records import machines
from svc_manager.web.records.schemas import COMPONENTS


@pytest.mark.parametrize(
    ("state", "draining", "expected"),
    [
        (pool_pb2.POOL_AGENT_STATE_UNSPECIFIED, False, "CONNECTED"),
        (pool_pb2.POOL_AGENT_STATE_UNSPECIFIED, True, "DRAINING"),
        (pool_pb2.POOL_AGENT_STATE_RUNNING, True, "DRAINING"),
        (pool_pb2.POOL_AGENT_STATE_SILENT, False, "SILENT"),
    ],
)
def test_state_is_that_of_the_platform_unless_it_drains(
    state: pool_pb2.PoolAgentState.ValueType, draining: bool, expected: str
) -> None:
    record = machines.runner(pb.RunnerSummary(runner_id="a", state=state, draining=draining))

    assert record["state"] == expected
    assert record.keys() == COMPONENTS["Runner"]["properties"].keys()
    assert record["lastSeen"] is None


def test_a_pool_counts_its_agents_by_state() -> None:
    state = pool_pb2.PoolState(pool="p")
    for number in (pool_pb2.POOL_AGENT_STATE_RUNNING, pool_pb2.POOL_AGENT_STATE_RUNNING):
        state.agents.add(platform="remote", state=number)

    record = machines.pool(state)

    assert record["agentCounts"] == {"RUNNING": 2}
    assert record["platforms"] == ["remote"]
    assert record.keys() == COMPONENTS["PoolState"]["properties"].keys()
