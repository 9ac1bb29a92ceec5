from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.config.settings import ConfigListError
from nni.compression.scheduling.growth_generators import (
    AGPTaskGenerator,
    GrowthTaskGenerator,
    LinearTaskGenerator,
    LotteryTicketTaskGenerator,
)
from nni.compression.scheduling.task import TaskResult


def ratios(generator: GrowthTaskGenerator, smaller: nn.Module | None = None) -> list[float]:
    """Return the sparsity of each task; with `smaller` as the result of the first one."""
    found = []
    while (task := generator.next()) is not None:
        model, masks, config_list = task.load_data()
        found.append(round(float(str(config_list[0]["total_sparsity"])), 4))
        after = model if smaller is None else smaller
        generator.receive_task_result(TaskResult(task.task_id, after, masks, masks))
    return found


def generator(
    kind: type[GrowthTaskGenerator], folder: Path, iterations: int, sparsity: float
) -> GrowthTaskGenerator:
    config_list = [{"op_types": ["Linear"], "sparsity": sparsity}]
    return kind(iterations, nn.Sequential(nn.Linear(2, 10)), config_list, log_dir=folder)


@pytest.mark.claim("compression", 34)
def test_agp_has_a_task_more_than_iterations(tmp_path: Path) -> None:
    found = ratios(generator(AGPTaskGenerator, tmp_path, 10, 0.8))

    expected = [0, 0.2168, 0.3904, 0.5256, 0.6272, 0.7, 0.7488, 0.7784, 0.7936, 0.7992, 0.8]
    assert found == expected


@pytest.mark.claim("compression", 35)
def test_linear_has_equal_increments(tmp_path: Path) -> None:
    assert ratios(generator(LinearTaskGenerator, tmp_path, 5, 0.5)) == [0, 0.1, 0.2, 0.3, 0.4, 0.5]


@pytest.mark.claim("compression", 36)
def test_lottery_masks_the_same_part_of_what_is_left(tmp_path: Path) -> None:
    found = ratios(generator(LotteryTicketTaskGenerator, tmp_path, 5, 0.8))

    assert found == [0.2752, 0.4747, 0.6193, 0.7241, 0.8]


@pytest.mark.claim("compression", 38)
def test_what_a_speedup_removed_counts_as_pruned(tmp_path: Path) -> None:
    smaller = nn.Sequential(nn.Linear(2, 3))  # 0.7 of the weights are gone

    assert ratios(generator(AGPTaskGenerator, tmp_path, 2, 0.8), smaller)[1:] == [0, 0.3333]


def test_the_next_task_starts_from_the_last_result(tmp_path: Path) -> None:
    one = generator(LinearTaskGenerator, tmp_path, 1, 0.5)
    task = one.next()
    assert task is not None
    masks = {"0": {"weight": torch.zeros(10, 2)}}
    model = nn.Sequential(nn.Linear(2, 10))

    one.receive_task_result(TaskResult(task.task_id, model, masks, masks))

    following = one.next()
    assert following is not None
    found, loaded, _ = following.load_data()
    assert torch.equal(found.get_parameter("0.weight"), model.get_parameter("0.weight"))
    assert torch.equal(loaded["0"]["weight"], masks["0"]["weight"])
    assert following.state == {"iteration": 1}


@pytest.mark.parametrize(
    ("iterations", "config_list", "error"),
    [
        (0, [{"op_types": ["Linear"], "sparsity": 0.5}], "total_iteration must be >= 1, got 0"),
        (1, [{"op_types": ["Linear"], "sparsity": 2}], r"config_list\[0\]\.sparsity must be"),
        (1, [{"op_types": ["Linear"], "sparse_ratio": 2}], "sparse_ratio must be"),
    ],
)
def test_wrong_arguments_are_refused_at_once(
    tmp_path: Path, iterations: int, config_list: list[dict[str, Any]], error: str
) -> None:
    with pytest.raises((ValueError, ConfigListError), match=error):
        AGPTaskGenerator(iterations, nn.Sequential(nn.Linear(2, 2)), config_list, log_dir=tmp_path)

    assert list(tmp_path.iterdir()) == []
