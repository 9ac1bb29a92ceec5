import torch
from torch import nn

from nni.compression.pruning import LevelPruner


def test_the_smallest_elements_are_masked_and_no_bias() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    model[0].weight.data = torch.tensor([[0.1, -4.0], [3.0, -0.2]])
    pruner = LevelPruner(model, [{"op_types": ["Linear"], "sparse_ratio": 0.5}])

    _, masks = pruner.compress()

    assert masks["0"]["weight"].tolist() == [[0, 1], [1, 0]]
    assert masks["0"]["bias"].tolist() == [1, 1]
