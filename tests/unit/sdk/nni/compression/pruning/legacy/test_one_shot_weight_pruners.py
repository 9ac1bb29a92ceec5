from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.base import ConfigListError
from nni.compression.pruning import FPGMPruner, L1NormPruner, L2NormPruner, LevelPruner
from nni.compression.pruning.legacy.one_shot_weight_pruners import (
    OneShotFPGMPruner,
    OneShotL1FilterPruner,
    OneShotL2FilterPruner,
    OneShotLevelPruner,
)
from tests.unit.sdk.nni.compression.pruning.legacy.models import CONVS, images, net

pytestmark = pytest.mark.filterwarnings("ignore:.*of an older NNI:DeprecationWarning")


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (OneShotLevelPruner, LevelPruner),
        (OneShotL1FilterPruner, L1NormPruner),
        (OneShotL2FilterPruner, L2NormPruner),
        (OneShotFPGMPruner, FPGMPruner),
    ],
)
def test_masks_are_those_of_the_newer_class(older: Any, newer: Any) -> None:
    pruner = older(net(), CONVS)
    pruner.compress()

    _, expected = newer(net(), CONVS).compress()

    for name, targets in pruner.get_masks().items():
        assert all(torch.equal(mask, expected[name][key]) for key, mask in targets.items())


@pytest.mark.claim("compression", 29)
def test_pruners_of_filters_reject_linear_layers() -> None:
    for kind in (OneShotL1FilterPruner, OneShotL2FilterPruner, OneShotFPGMPruner):
        with pytest.raises(ConfigListError, match=r"selects 0, a Linear; .* prunes only Conv2d"):
            kind(nn.Sequential(nn.Linear(2, 2)), [{"op_types": ["Linear"], "sparsity": 0.5}])


def test_dependent_layers_need_inputs() -> None:
    pruner = OneShotL1FilterPruner(net(), CONVS, dependency_aware=True, dummy_input=images())
    pruner.compress()

    assert pruner.get_pruned_weights() == {"0": (2, 4), "3": (3, 6)}
    with pytest.raises(ValueError, match="needs dummy_input"):
        OneShotL1FilterPruner(net(), CONVS, dependency_aware=True)
