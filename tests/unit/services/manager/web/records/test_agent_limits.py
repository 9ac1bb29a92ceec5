"""Limits of agents in JSON."""

from __future__ import annotations

from typing import Any

import pytest

from svc_common.errors import InvalidArgumentError
from svc_manager.domain.agent_limits import AgentLimits
from svc_manager.web.records.agent_limits import agent_limits_from_json


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


def test_null_leaves_a_limit_as_it_is() -> None:
    assert agent_limits_from_json({"maxAgents": 2, "maxCost": None}) == AgentLimits(max_agents=2)


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
    ],
)
def test_wrong_field_is_named(data: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        agent_limits_from_json(data)

    assert caught.value.field == field
