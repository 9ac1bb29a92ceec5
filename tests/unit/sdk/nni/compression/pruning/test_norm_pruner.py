import pytest
import torch
from torch import nn

from nni.compression.pruning import L1NormPruner, L2NormPruner
from nni.compression.pruning.norm_pruner import NormPruner


@pytest.mark.parametrize(("kind", "masked"), [(L1NormPruner, 0), (L2NormPruner, 1)])
def test_rows_are_ranked_by_the_norm(kind: type[NormPruner], masked: int) -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    model[0].weight.data = torch.tensor([[3.0, 0.0], [2.0, 2.0]])

    _, masks = kind(model, [{"op_types": ["Linear"], "sparse_ratio": 0.5}]).compress()

    assert masks["0"]["bias"].tolist() == [float(row != masked) for row in range(2)]
    assert masks["0"]["weight"][masked].tolist() == [0, 0]


@pytest.mark.claim("compression", 29)
def test_rows_of_linear_layers_are_pruned() -> None:
    pruner = L1NormPruner(
        nn.Sequential(nn.Linear(5, 8)), [{"op_types": ["Linear"], "sparsity": 0.5}]
    )
    pruner.compress()

    assert pruner.get_pruned_weights() == {"0": (4, 8)}


@pytest.mark.claim("compression", 48)
def test_both_groups_of_a_convolution_lose_equally_many_filters() -> None:
    model = nn.Sequential(nn.Conv2d(4, 8, 3, groups=2))
    model[0].weight.data = torch.arange(1.0, 9.0).reshape(8, 1, 1, 1).expand(8, 2, 3, 3).clone()
    entry = {"op_types": ["Conv2d"], "sparse_ratio": 0.5, "internal_metric_block": 2}

    _, masks = L1NormPruner(model, [entry]).compress()

    assert masks["0"]["bias"].tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
