"""Change of the limits of an experiment's agents."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from nni.experiment.config.agent_limits import agent_limits
from nni.experiment.errors import ConfigError


def test_time_may_be_a_text_or_a_timedelta() -> None:
    change = agent_limits({"idle_time": timedelta(minutes=2), "max_agent_time": "50h"})

    assert (change.idle_time, change.max_agent_time) == ("120s", "50h")


def test_limits_are_removed_by_any_spelling() -> None:
    change = agent_limits({"remove": ["max_agents", "max-cost", "idleTime"], "min_agents": 1})

    assert change.remove == ["maxAgents", "maxCost", "idleTime"]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "agentLimits"),
        ({"max_agents": None}, "agentLimits"),
        ({"min_agents": -1}, "minAgents"),
        ({"max_agents": 0}, "maxAgents"),
        ({"idle_time": "0s"}, "idleTime"),
        ({"max_agent_time": 7}, "maxAgentTime"),
        ({"max_cost": 0}, "maxCost"),
        ({"cost_per_agent_hour": float("inf")}, "costPerAgentHour"),
        ({"remove": ["maxAgent"]}, "remove"),
        ({"remove": ["remove"]}, "remove"),
        ({"remove": ["max_cost"], "max_cost": 2}, "maxCost"),
    ],
)
def test_wrong_limit_is_named(given: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        agent_limits(given)

    assert [problem.field for problem in caught.value.problems] == [field]
