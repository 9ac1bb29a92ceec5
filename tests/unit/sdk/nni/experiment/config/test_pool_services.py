import pytest

from nni.experiment.config import PoolConfig
from nni.experiment.config.training_services import PLATFORMS, new_training_service


def test_valid_name_has_no_problem() -> None:
    assert PoolConfig(name="gpus-2").problems("trainingService", None) == []


@pytest.mark.parametrize("name", ["", "local", "exp-abc", "check-1", "GPUs", "a_b", "x" * 41])
def test_name_that_no_pool_can_have_is_a_problem(name: str) -> None:
    (problem,) = PoolConfig(name=name).problems("trainingService", 1)

    assert problem.field == "trainingService.name"


def test_it_is_the_section_of_its_platform() -> None:
    assert PLATFORMS["pool"] is PoolConfig
    assert new_training_service("pool").platform == "pool"
