import pytest
import torch
from torch import nn

from nni.compression.config.settings import ConfigListError
from nni.compression.pruning import FPGMPruner


@pytest.mark.claim("compression", 20)
def test_the_filter_nearest_to_all_others_is_masked() -> None:
    model = nn.Sequential(nn.Conv2d(1, 4, 1, bias=False))
    model[0].weight.data = torch.tensor([0.0, 1.0, 10.0, 0.5]).reshape(4, 1, 1, 1)

    _, masks = FPGMPruner(model, [{"op_types": ["Conv2d"], "sparse_ratio": 0.25}]).compress()

    assert masks["0"]["weight"].flatten().tolist() == [1, 0, 1, 1]


def test_single_elements_are_refused() -> None:
    config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.5, "granularity": [1, 1]}]

    with pytest.raises(ConfigListError, match="needs blocks of several elements"):
        FPGMPruner(nn.Sequential(nn.Linear(2, 2)), config_list)
