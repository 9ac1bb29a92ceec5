"""Limits of the agents of an experiment."""

import math

import pytest

from svc_common.errors import InvalidArgumentError
from svc_manager.domain.agent_limits import (
    NO_AGENT_LIMITS,
    AgentLimits,
    check_agent_limits,
    check_has_own_agents,
    check_removed,
)


def test_change_keeps_the_limits_that_it_does_not_name() -> None:
    limits = AgentLimits(min_agents=1, max_agents=4, max_agent_time_ms=7_200_000)

    changed = limits.changed(AgentLimits(min_agents=0, max_agent_time_ms=9_000_000))

    assert changed == AgentLimits(min_agents=0, max_agents=4, max_agent_time_ms=9_000_000)
    assert limits.changed(NO_AGENT_LIMITS) == limits


def test_change_removes_the_limits_that_it_names() -> None:
    limits = AgentLimits(min_agents=1, max_agents=4, idle_time_ms=1)

    changed = limits.changed(AgentLimits(min_agents=2, removed=("maxAgents", "maxCost")))

    assert changed == AgentLimits(min_agents=2, idle_time_ms=1)


def test_only_limits_that_the_change_does_not_set_are_removed() -> None:
    check_removed(AgentLimits(min_agents=2, removed=("maxAgents",)))
    with pytest.raises(InvalidArgumentError, match="maxAgents must not have a value"):
        check_removed(AgentLimits(max_agents=2, removed=("maxAgents",)))
    with pytest.raises(InvalidArgumentError, match="remove must have only minAgents"):
        check_removed(AgentLimits(removed=("max_agents",)))


def test_limits_of_an_experiment_with_its_own_pool_may_be_changed() -> None:
    check_has_own_agents("exp-ab12cd34")


@pytest.mark.parametrize(
    ("pool", "remedy"),
    [("local", "limit its trialConcurrency"), ("gpus", "nnictl pool update gpus FILE")],
)
def test_limits_of_agents_of_the_installation_are_not_those_of_an_experiment(
    pool: str, remedy: str
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        check_has_own_agents(pool)

    assert caught.value.field == "agentLimits"
    assert remedy in caught.value.remedy


@pytest.mark.parametrize(
    "limits",
    [
        NO_AGENT_LIMITS,
        AgentLimits(min_agents=0, max_agents=1),
        AgentLimits(min_agents=2, max_agents=2),
        AgentLimits(idle_time_ms=1, max_agent_time_ms=1),
        AgentLimits(max_cost=0.5, cost_per_agent_hour=2.0),
        AgentLimits(cost_per_agent_hour=2.0),
    ],
)
def test_limits_within_their_rules_are_accepted(limits: AgentLimits) -> None:
    check_agent_limits(limits)


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        (AgentLimits(min_agents=-1), "minAgents"),
        (AgentLimits(max_agents=0), "maxAgents"),
        (AgentLimits(min_agents=3, max_agents=2), "maxAgents"),
        (AgentLimits(idle_time_ms=0), "idleTime"),
        (AgentLimits(max_agent_time_ms=-1), "maxAgentTime"),
        (AgentLimits(max_cost=0.0, cost_per_agent_hour=1.0), "maxCost"),
        (AgentLimits(max_cost=math.inf, cost_per_agent_hour=1.0), "maxCost"),
        (AgentLimits(max_cost=math.nan, cost_per_agent_hour=1.0), "maxCost"),
        (AgentLimits(cost_per_agent_hour=-2.0), "costPerAgentHour"),
        (AgentLimits(max_cost=9.0), "costPerAgentHour"),
    ],
)
def test_limit_that_breaks_its_rule_is_named(limits: AgentLimits, field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        check_agent_limits(limits)

    assert caught.value.field == field
