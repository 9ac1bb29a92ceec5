import pytest

from nni.experiment import KubernetesConfig
from nni.experiment.errors import ConfigError


def test_quantities_of_kubernetes_may_be_numbers() -> None:
    assert KubernetesConfig(cpus=4, memory="16Gi").to_dict()["cpus"] == "4"


@pytest.mark.parametrize("value", ["16GB", "four", "-1", ""])
def test_other_units_are_no_quantities_of_kubernetes(value: str) -> None:
    with pytest.raises(ConfigError, match="such as 2, 500m or 16Gi"):
        KubernetesConfig(memory=value)


def test_pod_has_the_gpus_that_a_trial_asks_for() -> None:
    service = KubernetesConfig(gpus=1)

    assert [one.field for one in service.problems("trainingService", 2)] == ["trainingService.gpus"]
    assert service.problems("trainingService", 1) == []


def test_two_ways_to_log_in_exclude_each_other() -> None:
    service = KubernetesConfig(in_cluster=True, context="lab")

    assert [one.field for one in service.problems("a", None)] == ["a.inCluster"]
