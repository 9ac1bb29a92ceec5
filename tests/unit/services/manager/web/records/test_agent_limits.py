"""Limits of agents in JSON."""

from __future__ import annotations

from typing import Any

import pytest

from nni_proto.experiment.v1 import config_pb2
from svc_common.errors import InvalidArgumentError
from svc_manager.domain.agent_limits import AgentLimits
from svc_manager.web.records.agent_limits import agent_limits_from_json, agent_limits_to_json


def test_limits_have_the_names_and_units_of_a_platform_section() -> None:
    data = {
        "minAgents": 1,
        "maxAgents": 8,
        "idleTime": 90,
        "maxAgentTime": "50h",
        "maxCost": 75,
        "costPerAgentHour": 1.5,
    }

    limits = agent_limits_from_json(data)

    assert limits == AgentLimits(1, 8, 90_000, 180_000_000, 75.0, 1.5)


def test_only_limits_that_hold_are_shown() -> None:
    message = config_pb2.AgentLimits(min_agents=0, max_agents=8, max_cost=75, cost_per_agent_hour=2)
    message.idle_time.FromMilliseconds(1_500)
    message.max_agent_time.FromSeconds(7_200)

    assert agent_limits_to_json(message) == {
        "minAgents": 0,
        "maxAgents": 8,
        "idleTime": "1.5s",
        "maxAgentTime": "7200s",
        "maxCost": 75.0,
        "costPerAgentHour": 2.0,
    }
    assert agent_limits_to_json(config_pb2.AgentLimits()) == {}


def test_null_leaves_a_limit_as_it_is() -> None:
    assert agent_limits_from_json({"maxAgents": 2, "maxCost": None}) == AgentLimits(max_agents=2)


def test_limits_are_removed_by_name() -> None:
    limits = agent_limits_from_json({"minAgents": 1, "remove": ["maxAgents", "maxCost"]})

    assert limits == AgentLimits(min_agents=1, removed=("maxAgents", "maxCost"))


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({}, "params"),
        ({"maxCost": None}, "params"),
        ({"agents": 4}, "params"),
        ({"maxAgents": 1.5}, "maxAgents"),
        ({"maxAgents": True}, "maxAgents"),
        ({"minAgents": 2**31}, "minAgents"),
        ({"minAgents": -1}, "minAgents"),
        ({"idleTime": "soon"}, "idleTime"),
        ({"maxAgentTime": 0}, "maxAgentTime"),
        ({"maxCost": "9"}, "maxCost"),
        ({"costPerAgentHour": False}, "costPerAgentHour"),
        ({"remove": "maxAgents"}, "remove"),
        ({"remove": []}, "remove"),
        ({"remove": [1]}, "remove"),
    ],
)
def test_wrong_field_is_named(data: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        agent_limits_from_json(data)

    assert caught.value.field == field
