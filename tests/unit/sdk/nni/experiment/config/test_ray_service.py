import pytest

from nni.experiment import ExperimentConfig, RayConfig
from nni.experiment.errors import ConfigError


def complete(service: RayConfig) -> ExperimentConfig:
    return ExperimentConfig(
        search_space={},
        trial_command="python3 trial.py",
        trial_concurrency=1,
        max_trial_number=1,
        tuner={"name": "Random"},
        training_service=service,
    )


def test_section_is_made_from_a_mapping() -> None:
    config = ExperimentConfig(
        training_service={
            "platform": "ray",
            "numCpus": 4,
            "numGpus": 0.5,
            "resources": {"special": 1},
            "runtimeEnv": {"env_vars": {"A": "1"}},
            "maxAgents": 8,
        }
    )

    (service,) = config.training_services()

    assert isinstance(service, RayConfig)
    assert service.num_gpus == 0.5
    assert service.runtime_env == {"env_vars": {"A": "1"}}


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (RayConfig(address="ray://head:10001"), r"address must be auto, or host:port"),
        (
            RayConfig(scheduling_strategy="SPREAD", placement_group="group"),
            r"schedulingStrategy must not be given with placementGroup",
        ),
        (RayConfig(min_agents=3, max_agents=2), r"maxAgents must be >= minAgents"),
    ],
)
def test_section_that_the_platform_cannot_serve_is_refused(
    section: RayConfig, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        complete(section).validate()


def test_trial_gets_no_more_gpus_than_its_agent_has() -> None:
    config = complete(RayConfig(num_gpus=1))
    config.trial_gpu_number = 2

    with pytest.raises(ConfigError, match="numGpus must be >= trialGpuNumber"):
        config.validate()


def test_part_of_a_gpu_is_one_for_a_trial() -> None:
    assert RayConfig(num_gpus=0.5).problems("trainingService", 1) == []


@pytest.mark.parametrize("name", ["numCpus", "numGpus"])
def test_negative_amounts_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="greater than or equal to 0"):
        ExperimentConfig(training_service={"platform": "ray", name: -1})
