"""Limits of agents in sections of platforms, messages and the domain."""

from typing import Any

import pytest

from nni_proto.experiment.v1 import config_pb2
from nni_proto.runner.v1 import pool_pb2
from nni_wire.values import from_value, to_value
from svc_manager.converters.agent_limits import (
    agent_limits_from,
    apply_limits,
    limits_of_sections,
    write_agent_limits,
    write_pool_limits,
)
from svc_manager.domain.agent_limits import NO_AGENT_LIMITS, AgentLimits

HOUR_MS = 3_600_000
ALL = AgentLimits(1, 4, 30_000, 2 * HOUR_MS, 9.0, 1.5)


def sections(*options: dict[str, Any]) -> list[config_pb2.TrainingServiceConfig]:
    return [
        config_pb2.TrainingServiceConfig(platform=f"p{index}", options=to_value(one))
        for index, one in enumerate(options)
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], NO_AGENT_LIMITS),
        ([{}], NO_AGENT_LIMITS),
        ([{"minAgents": 1, "maxAgents": 4, "idleTime": "0.5m"}], AgentLimits(1, 4, 30_000)),
        (
            [{"maxAgents": 4, "idleTime": "10s"}, {"maxAgents": 2, "idleTime": "1h"}],
            AgentLimits(max_agents=6, idle_time_ms=HOUR_MS),
        ),
        ([{"maxAgents": 4}, {}], NO_AGENT_LIMITS),
        (
            [{"maxAgentTime": "2h", "maxCost": 9, "costPerAgentHour": 1.5}],
            AgentLimits(max_agent_time_ms=2 * HOUR_MS, max_cost=9.0, cost_per_agent_hour=1.5),
        ),
        ([{"maxAgentTime": "2h"}, {}], AgentLimits(max_agent_time_ms=2 * HOUR_MS)),
        (
            [
                {"maxAgentTime": "1h", "maxCost": 9.0, "costPerAgentHour": 1},
                {"maxAgentTime": "2h", "maxCost": 5.0, "costPerAgentHour": 2},
            ],
            AgentLimits(max_agent_time_ms=HOUR_MS, max_cost=5.0, cost_per_agent_hour=2.0),
        ),
    ],
)
def test_sections_give_limits_together(
    options: list[dict[str, Any]], expected: AgentLimits
) -> None:
    assert limits_of_sections(sections(*options)) == expected


def test_section_without_options_gives_no_limits() -> None:
    assert limits_of_sections([config_pb2.TrainingServiceConfig(platform="ray")]) == NO_AGENT_LIMITS


def test_limits_of_a_pool_are_replaced_as_a_whole() -> None:
    message = pool_pb2.PoolLimits(min_agents=7)
    message.max_agent_time.seconds = 5

    write_pool_limits(message, AgentLimits(max_agents=4, idle_time_ms=1_500))

    assert (message.min_agents, message.max_agents, message.idle.ToMilliseconds()) == (0, 4, 1_500)
    assert not message.HasField("max_agent_time")
    write_pool_limits(message, ALL)
    assert (message.max_cost, message.cost_per_agent_hour) == (9.0, 1.5)
    assert message.max_agent_time.ToSeconds() == 7200


@pytest.mark.parametrize(
    "limits",
    [
        NO_AGENT_LIMITS,
        ALL,
        AgentLimits(min_agents=0),
        AgentLimits(max_agent_time_ms=1_001),
        AgentLimits(max_agents=2, removed=("idleTime", "maxCost")),
    ],
)
def test_limits_survive_a_message(limits: AgentLimits) -> None:
    message = config_pb2.AgentLimits()

    write_agent_limits(message, limits)

    assert agent_limits_from(message) == limits


@pytest.mark.parametrize(
    ("before", "limits"),
    [
        ([{}], ALL),
        ([{"partition": "gpu", "maxAgents": 2, "maxAgentTime": "1h"}], ALL),
        ([{"maxAgents": 2}, {"maxAgents": 3}], AgentLimits(max_agents=8)),
        ([{"minAgents": 2}, {}], AgentLimits(min_agents=5)),
        ([{"idleTime": "1m"}, {"idleTime": "2m"}], AgentLimits(idle_time_ms=1_500)),
        ([{}, {"maxAgentTime": "1h"}], AgentLimits(max_agent_time_ms=90 * 60_000)),
        ([{}], AgentLimits(max_agent_time_ms=1_234_567_890_123)),
    ],
)
def test_sections_with_applied_limits_give_them(
    before: list[dict[str, Any]], limits: AgentLimits
) -> None:
    services = sections(*before)

    apply_limits(services, limits)

    assert limits_of_sections(services) == limits


def test_limits_that_hold_no_longer_leave_all_sections() -> None:
    services = sections({"maxAgents": 2, "idleTime": "1m", "queue": "gpu"}, {"maxAgents": 3})

    apply_limits(services, NO_AGENT_LIMITS)

    assert [from_value(one.options) for one in services] == [{"queue": "gpu"}, {}]


def test_sections_keep_the_limits_that_are_unchanged() -> None:
    given: list[dict[str, Any]] = [{"maxAgents": 6, "maxAgentTime": "1h"}, {"maxAgents": 2}]
    services = sections(*given)

    apply_limits(services, AgentLimits(max_agents=8, max_agent_time_ms=HOUR_MS))

    assert [from_value(one.options) for one in services] == given


def test_other_options_stay_and_durations_are_short() -> None:
    [service] = sections({"partition": "gpu", "maxAgentTime": "1h"})

    apply_limits([service], AgentLimits(idle_time_ms=90_000, max_agent_time_ms=50 * HOUR_MS))

    assert from_value(service.options) == {
        "partition": "gpu",
        "maxAgentTime": "50h",
        "idleTime": "90s",
    }
