from typing import Any

import pytest

from nni.experiment import (
    AmlConfig,
    DlcConfig,
    ExperimentConfig,
    LocalConfig,
    OpenpaiConfig,
    RayConfig,
)
from nni.experiment.config.training_service_base import (
    AgentPoolConfig,
    JobPoolConfig,
    TrainingServiceConfig,
    differing_limits,
)
from nni.experiment.errors import ConfigError


def test_platform_without_rules_has_no_problems() -> None:
    assert TrainingServiceConfig().problems("trainingService", 4) == []


def test_pool_with_fewer_agents_than_shall_stay_is_a_problem() -> None:
    (problem,) = AgentPoolConfig(min_agents=3, max_agents=2).problems("trainingService", None)

    assert problem.field == "trainingService.maxAgents"
    assert AgentPoolConfig(min_agents=2, max_agents=2).problems("trainingService", None) == []


def test_cost_without_a_price_is_a_problem() -> None:
    (problem,) = AgentPoolConfig(max_cost=5).problems("trainingService", None)

    assert (problem.field, problem.rule) == (
        "trainingService.costPerAgentHour",
        "must be given with maxCost",
    )
    assert AgentPoolConfig(max_cost=5, cost_per_agent_hour=1).problems("x", None) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_cost", 0), ("max_cost", float("inf")), ("cost_per_agent_hour", -1)],
)
def test_amounts_are_numbers_above_zero(name: str, value: float) -> None:
    section: dict[str, Any] = {name: value}

    with pytest.raises(ConfigError):
        AgentPoolConfig(**section)


def test_time_is_one_that_can_be_read() -> None:
    with pytest.raises(ConfigError, match="maxAgentTime"):
        AgentPoolConfig(max_agent_time="soon")


def test_limits_of_all_platforms_together_are_given_once_or_alike() -> None:
    first = RayConfig(max_agent_time="2h", max_cost=9, cost_per_agent_hour=1)
    other = RayConfig(max_agent_time="3h", max_cost=9, cost_per_agent_hour=1)

    (problem,) = differing_limits([LocalConfig(), first, other])

    assert (problem.field, problem.value) == ("trainingService[2].maxAgentTime", "3h")
    assert list(differing_limits([LocalConfig(), first, first])) == []
    assert list(differing_limits([first, LocalConfig()])) == []


def test_an_experiment_refuses_limits_that_contradict_each_other() -> None:
    sections = [RayConfig(max_agent_time="2h"), RayConfig(max_agent_time="3h")]
    config = ExperimentConfig(trial_command="true", training_service=sections)

    with pytest.raises(ConfigError, match=r"trainingService\[1\].maxAgentTime"):
        config.validate()


@pytest.mark.parametrize("config", [AmlConfig, DlcConfig, OpenpaiConfig])
def test_platforms_whose_jobs_are_polled_have_the_same_fields_of_agents(
    config: type[JobPoolConfig],
) -> None:
    fields = config.model_fields.keys() & JobPoolConfig.model_fields.keys()

    assert {"python", "python_path", "setup_lines", "poll_interval_seconds"} <= fields
    with pytest.raises(ConfigError, match=r"pollIntervalSeconds must be .*0\.1"):
        config(poll_interval_seconds=0.01)
