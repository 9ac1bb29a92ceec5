"""Sections of the platforms."""

from __future__ import annotations

import pytest

from nni.experiment.config import (
    LocalConfig,
    RemoteConfig,
    RemoteMachineConfig,
    SlurmConfig,
    TrainingServiceConfig,
)
from nni.experiment.errors import ConfigError
from tests.support.experiment_configs import complete


@pytest.mark.claim("platform", 9)
def test_gpus_on_this_machine_need_a_word_on_active_ones() -> None:
    with pytest.raises(ConfigError, match=r"trainingService\.useActiveGpu must be true or false"):
        complete(trial_gpu_number=1).validate()
    complete(trial_gpu_number=1, training_service=LocalConfig(use_active_gpu=False)).validate()


def test_several_platforms_are_a_list() -> None:
    config = complete(training_service=[{"platform": "local"}, {"platform": "pai"}])

    assert [service.platform for service in config.training_services()] == ["local", "openpai"]


def test_error_in_a_list_of_platforms_names_the_item() -> None:
    with pytest.raises(ConfigError, match=r"trainingService\[1\]\.machineList\[0\]\.host"):
        complete(
            training_service=[
                {"platform": "local"},
                {"platform": "remote", "machineList": [{"user": "u"}]},
            ]
        ).validate()


@pytest.mark.claim("platform", 84)
def test_secrets_do_not_show_in_texts() -> None:
    config = RemoteConfig(machine_list=[RemoteMachineConfig(host="h", user="u", password="s3cret")])

    assert "s3cret" not in repr(config)
    assert "s3cret" not in str(config)


def test_machine_is_described_step_by_step() -> None:
    machine = RemoteMachineConfig()
    machine.host = "10.0.0.7"
    machine.user = "ann"

    config = complete(training_service=RemoteConfig(machine_list=[machine]))
    config.validate()

    assert config.training_service.machine_list == [
        RemoteMachineConfig(host="10.0.0.7", user="ann")
    ]


def test_machine_has_fields_for_host_keys_slots_and_setup() -> None:
    machine = RemoteMachineConfig(
        host="h",
        user="u",
        host_key_policy="accept-new",
        slots=2,
        setup_lines=["module load cuda"],
        folder="/scratch/nni",
    )

    assert (machine.host_key_policy, machine.slots) == ("accept-new", 2)
    with pytest.raises(ConfigError, match="hostKeyPolicy"):
        complete(
            training_service={
                "platform": "remote",
                "machineList": [{"host": "h", "user": "u", "hostKeyPolicy": "no"}],
            }
        )


def test_cluster_is_loaded_by_the_names_of_its_fields() -> None:
    config = complete(
        training_service={
            "platform": "slurm",
            "partition": "gpu",
            "timeLimit": "4h",
            "gres": "gpu:1",
            "options": ["--constraint=a100"],
            "maxAgents": 8,
            "idleTime": "30s",
        }
    )

    config.validate()
    assert [type(service) for service in config.training_services()] == [SlurmConfig]


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (SlurmConfig(nodes=2), "trials over several nodes are not supported"),
        (SlurmConfig(time_limit="soon"), r"trainingService\.timeLimit must be a time such as 4h"),
        (SlurmConfig(user="ann"), r"trainingService\.user is for a login node"),
        (SlurmConfig(host="login"), r"trainingService\.user must be given with host"),
        (SlurmConfig(image="a.sif"), r"trainingService\.pythonVersion must be given with image"),
        (SlurmConfig(min_agents=3, max_agents=2), r"maxAgents must be >= minAgents"),
        (
            RemoteConfig(machine_list=[RemoteMachineConfig(user="u")]),
            r"trainingService\.machineList\[0\]\.host must be given",
        ),
        (
            RemoteConfig(machine_list=[RemoteMachineConfig(host="h")]),
            r"trainingService\.machineList\[0\]\.user must be given",
        ),
        (
            RemoteConfig(
                machine_list=[RemoteMachineConfig(host="h", user="u", python_path="C:\\a;C:\\b")]
            ),
            "Windows workers are not supported",
        ),
    ],
)
def test_section_that_no_platform_can_serve_is_refused(
    section: TrainingServiceConfig, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        complete(training_service=section).validate()
