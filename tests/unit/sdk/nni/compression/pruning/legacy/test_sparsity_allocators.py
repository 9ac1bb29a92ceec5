from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.base import ConfigListError, Pruner
from nni.compression.pruning import L1NormPruner, LevelPruner
from nni.compression.pruning.legacy.sparsity_allocators import (
    Conv2dDependencyAwareAllocator,
    GlobalSparsityAllocator,
    NormalSparsityAllocator,
)


def pruner_of(config: dict[str, Any], *sizes: tuple[int, int]) -> Pruner:
    model = nn.Sequential(*(nn.Linear(width, rows) for width, rows in sizes))
    return LevelPruner(model, [{"op_types": ["Linear"], **config}])


@pytest.mark.claim("compression", 22)
@pytest.mark.parametrize(
    ("sparsity", "kept"), [(0.3, [1, 1, 1]), (0.34, [1, 0, 1]), (0.7, [1, 0, 0])]
)
def test_the_smallest_metrics_of_each_layer_are_masked(sparsity: float, kept: list[int]) -> None:
    pruner = pruner_of({"sparsity": sparsity}, (2, 3))

    masks = NormalSparsityAllocator(pruner, 0).generate_sparsity({"0": torch.tensor([3.0, 1, 2])})

    assert masks["0"]["bias"].tolist() == kept
    assert masks["0"]["weight"].tolist() == [[one, one] for one in kept]


def test_single_elements_leave_the_bias_alone() -> None:
    pruner = pruner_of({"sparsity": 0.5}, (2, 2))
    metrics = {"0": torch.tensor([[4.0, 1.0], [2.0, 3.0]])}

    masks = NormalSparsityAllocator(pruner).generate_sparsity(metrics)

    assert masks["0"].keys() == {"weight"}
    assert masks["0"]["weight"].tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("dim", "metric", "expected"),
    [
        (1, [1.0, 2.0], [[0, 1], [0, 1], [0, 1]]),
        ([0, 1], [[6.0, 5], [1, 2], [3, 4]], [[1, 1], [0, 0], [0, 1]]),
        ([1, 0], [[6.0, 5, 1], [2, 3, 4]], [[1, 0], [1, 0], [0, 1]]),
    ],
)
def test_masks_have_the_shape_of_the_weight(dim: Any, metric: Any, expected: Any) -> None:
    pruner = LevelPruner(
        nn.Sequential(nn.Conv2d(2, 3, 2)), [{"op_types": ["Conv2d"], "sparsity": 0.5}]
    )
    metrics = {"0": torch.tensor(metric)}

    mask = NormalSparsityAllocator(pruner, dim).generate_sparsity(metrics)["0"]["weight"]

    wide = torch.tensor(expected).to(mask)[..., None, None].expand(3, 2, 2, 2)
    assert torch.equal(mask, wide)


def test_what_is_masked_stays_masked() -> None:
    pruner = pruner_of({"sparsity": 0.5}, (1, 4))
    allocator = NormalSparsityAllocator(pruner, 0)
    pruner.update_masks(allocator.generate_sparsity({"0": torch.tensor([1.0, 2, 3, 4])}))

    again = allocator.generate_sparsity({"0": torch.tensor([9.0, 8, 0, 0])})

    assert again["0"]["bias"].tolist() == [0, 0, 1, 1]


@pytest.mark.claim("compression", 27)
def test_the_layers_of_an_entry_share_a_total() -> None:
    pruner = pruner_of({"total_sparsity": 0.5}, (10, 2), (30, 2))
    metrics = {"0": torch.tensor([1.0, 4.0]), "1": torch.tensor([2.0, 3.0])}

    masks = GlobalSparsityAllocator(pruner, 0).generate_sparsity(metrics)

    assert [masks[name]["bias"].tolist() for name in "01"] == [[0, 1], [0, 1]]


def test_a_total_is_needed() -> None:
    pruner = pruner_of({"sparsity": 0.5}, (1, 2))

    with pytest.raises(ConfigListError, match=r"entry of 0 has no total_sparsity.*give it instead"):
        GlobalSparsityAllocator(pruner, 0).generate_sparsity({"0": torch.tensor([1.0, 2.0])})


class Sum(nn.Module):
    """Two convolutions whose outputs are added."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.one = nn.Conv2d(3, 10, 1)
        self.two = nn.Conv2d(3, 10, 1)

    def forward(self, image: Tensor) -> Tensor:
        return self.one(image) + self.two(image)


@pytest.mark.claim("compression", 47)
def test_layers_that_depend_on_each_other_lose_the_same_channels_first() -> None:
    config_list = [
        {"op_names": ["one"], "sparsity": 0.3},
        {"op_names": ["two"], "sparsity": 0.2},
    ]
    image = torch.ones(1, 3, 2, 2)
    pruner = LevelPruner(Sum(), config_list)
    metrics = {
        name: one.parameter("weight").detach().abs().sum((1, 2, 3))
        for name, one in pruner.get_modules_wrapper().items()
    }

    allocator = Conv2dDependencyAwareAllocator(pruner, 0, image)
    masks = allocator.generate_sparsity(metrics)

    _, expected = L1NormPruner(Sum(), config_list, None, "dependency_aware", image).compress()
    assert pruner.is_wrapped
    assert [int((masks[name]["bias"] == 0).sum()) for name in ("one", "two")] == [3, 2]
    assert torch.equal(masks["one"]["bias"], expected["one"]["bias"])
    assert torch.equal(masks["two"]["weight"], expected["two"]["weight"])


def test_dependencies_need_inputs_and_output_channels() -> None:
    pruner = LevelPruner(Sum(), [{"op_types": ["Conv2d"], "sparsity": 0.5}])

    with pytest.raises(ValueError, match="dummy_input must be inputs of the model, got None"):
        Conv2dDependencyAwareAllocator(pruner)
    with pytest.raises(ValueError, match="dim must be 0, got 1"):
        Conv2dDependencyAwareAllocator(pruner, 1, torch.ones(1, 3, 2, 2))
