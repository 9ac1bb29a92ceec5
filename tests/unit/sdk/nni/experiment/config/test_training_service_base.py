from nni.experiment.config.training_service_base import AgentPoolConfig, TrainingServiceConfig


def test_platform_without_rules_has_no_problems() -> None:
    assert TrainingServiceConfig().problems("trainingService", 4) == []


def test_pool_with_fewer_agents_than_shall_stay_is_a_problem() -> None:
    (problem,) = AgentPoolConfig(min_agents=3, max_agents=2).problems("trainingService", None)

    assert problem.field == "trainingService.maxAgents"
    assert AgentPoolConfig(min_agents=2, max_agents=2).problems("trainingService", None) == []
