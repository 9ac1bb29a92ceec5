import logging
from typing import Any

import pytest
import torch
from torch import nn

from nni.algorithms.compression.v2.pytorch import pruning
from nni.compression import TorchEvaluator
from nni.compression import pruning as newer
from nni.compression.base import ConfigListError
from tests.unit.sdk.nni.compression.pruning.legacy.models import (
    CONVS,
    NORMS,
    Trainer,
    images,
    loss,
    net,
    sgd,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*of an older NNI:DeprecationWarning")


def lost(masks: Any) -> list[int]:
    return [int((one["weight"].flatten(1).amax(1) == 0).sum()) for one in masks.values()]


@pytest.mark.parametrize("name", ["L1NormPruner", "L2NormPruner", "FPGMPruner"])
def test_the_mode_is_the_third_argument(name: str) -> None:
    kind = getattr(pruning, name)

    assert lost(kind(net(), CONVS).compress()[1]) == [2, 3]
    assert sum(lost(kind(net(), CONVS, "global").compress()[1])) >= 4
    assert lost(kind(net(), CONVS, "dependency_aware", images()).compress()[1]) == [2, 3]
    with pytest.raises(ValueError, match="needs dummy_input"):
        kind(net(), CONVS, "dependency_aware")


@pytest.mark.parametrize(
    "name", ["TaylorFOWeightPruner", "ActivationAPoZRankPruner", "ActivationMeanRankPruner"]
)
def test_callbacks_train_for_as_many_batches_as_asked_for(name: str) -> None:
    model, trainer = net(), Trainer()

    _, masks = getattr(pruning, name)(
        model, CONVS, trainer, sgd(model), loss, training_batches=2
    ).compress()

    assert lost(masks) == [2, 3]
    assert len(trainer.epochs) == 2


def test_an_evaluator_may_take_the_place_of_the_callbacks() -> None:
    model = net()

    def train(one: nn.Module, optimizer: Any, step: Any, *_: Any) -> None:
        step(images(), one).backward()
        optimizer.step()

    evaluator = TorchEvaluator(train, sgd(model), lambda batch, one: one(batch).square().mean())
    _, masks = pruning.TaylorFOWeightPruner(model, CONVS, evaluator, 1).compress()

    assert lost(masks) == [2, 3]


def test_slim_trains_for_epochs_and_shares_the_sparsity(caplog: pytest.LogCaptureFixture) -> None:
    model, trainer = net(), Trainer()
    with torch.no_grad():
        model[1].weight.mul_(1e-3)  # the scales of the first norm are the smallest

    with caplog.at_level(logging.WARNING):
        pruner = pruning.SlimPruner(model, NORMS, trainer, sgd(model), loss, 2, 1e-4)
    _, masks = pruner.compress()

    assert len(trainer.epochs) == 2
    # Five of ten channels go, but one of the first norm stays.
    assert [int((one["weight"] == 0).sum()) for one in masks.values()] == [3, 2]
    assert "that of all its layers together" in caplog.text


def test_admm_takes_rho_from_the_entries() -> None:
    model, trainer = net(), Trainer()
    entries: list[dict[str, object]] = [{"op_types": ["Conv2d"], "sparsity": 0.5, "rho": 0.1}]

    pruner = pruning.ADMMPruner(model, entries, trainer, sgd(model), loss, 2, 3)
    _, masks = pruner.compress()

    assert pruner.rho == 0.1
    assert len(trainer.epochs) == 6
    assert [float(one["weight"].mean()) for one in masks.values()] == [0.5, 0.5]
    other = [{**entries[0], "op_names": ["0"]}, {**entries[0], "op_names": ["3"], "rho": 0.2}]
    with pytest.raises(ConfigListError, match=r"needs one rho for all entries, got \[0.1, 0.2\]"):
        pruning.ADMMPruner(net(), other, trainer, sgd(model), loss, 2, 3)


@pytest.mark.claim("compression", 9)
@pytest.mark.parametrize("name", ["LevelPruner", "L1NormPruner", "L2NormPruner", "FPGMPruner"])
def test_configurations_of_both_releases_give_the_same_masks(name: str) -> None:
    two = [
        {"op_types": ["Conv2d"], "total_sparsity": 0.5, "max_sparsity_per_layer": 0.75},
        {"op_partial_names": ["2"], "exclude": True},
    ]
    three = [
        {
            "op_types": ["Conv2d"],
            "exclude_op_names": ["2"],
            "sparse_ratio": 0.5,
            "max_sparse_ratio": 0.75,
            "global_group_id": 0,
        }
    ]

    _, found = getattr(pruning, name)(layers(), two).compress()
    _, expected = getattr(newer, name)(layers(), three).compress()

    assert found.keys() == expected.keys() == {"0", "1"}
    assert any(bool((mask == 0).any()) for own in expected.values() for mask in own.values())
    for layer, targets in expected.items():
        assert targets.keys() == found[layer].keys()
        assert all(torch.equal(found[layer][key], mask) for key, mask in targets.items())


def layers() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 8, 3), nn.Conv2d(8, 4, 3), nn.Conv2d(4, 4, 3))
