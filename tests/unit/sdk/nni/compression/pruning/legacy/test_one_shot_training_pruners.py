from typing import Any

import pytest
import torch

from nni.compression.pruning.legacy.one_shot_training_pruners import (
    OneShotActivationAPoZRankFilterPruner,
    OneShotActivationMeanRankFilterPruner,
    OneShotSlimPruner,
    OneShotTaylorFOWeightFilterPruner,
)
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

FILTERS = [
    OneShotTaylorFOWeightFilterPruner,
    OneShotActivationAPoZRankFilterPruner,
    OneShotActivationMeanRankFilterPruner,
]


@pytest.mark.parametrize("kind", FILTERS)
@pytest.mark.parametrize("swapped", [False, True])
def test_filters_are_ranked_after_some_batches(kind: Any, swapped: bool) -> None:
    model, trainer = net(), Trainer()
    pair = (trainer, sgd(model)) if swapped else (sgd(model), trainer)

    pruner = kind(model, CONVS, *pair, loss, sparsifying_training_batches=2)
    pruner.compress()

    assert pruner.get_pruned_weights() == {"0": (2, 4), "3": (3, 6)}
    assert trainer.epochs == [0, 1]


@pytest.mark.parametrize("kind", FILTERS)
def test_dependent_layers_are_known(kind: Any) -> None:
    model = net()

    pruner = kind(
        model, CONVS, sgd(model), Trainer(), loss, dependency_aware=True, dummy_input=images()
    )
    pruner.compress()

    assert pruner.mode == "dependency_aware"
    assert pruner.get_pruned_weights() == {"0": (2, 4), "3": (3, 6)}


def test_slim_ranks_all_norms_together_after_its_epochs() -> None:
    model, trainer = net(), Trainer()
    with torch.no_grad():
        model[1].weight.mul_(1e-3)

    pruner = OneShotSlimPruner(model, NORMS, sgd(model), trainer, loss, 3, scale=1e-4)
    pruner.compress()

    assert trainer.epochs == [0, 1, 2]
    assert pruner.get_pruned_weights() == {"1": (1, 4), "4": (4, 6)}


def test_slim_takes_the_sparsity_of_the_first_entry_for_all() -> None:
    model = net()
    entries: list[dict[str, object]] = [
        {"op_names": ["1"], "sparsity": 0.5},
        {"op_names": ["4"], "sparsity": 0.25},
    ]

    with pytest.warns(UserWarning, match="all layers together reach 0.5"):
        pruner = OneShotSlimPruner(model, entries, sgd(model), Trainer(), loss, 1)
    pruner.compress()

    assert sum(kept for kept, _ in pruner.get_pruned_weights().values()) == 5


def test_taylor_may_rank_all_filters_together() -> None:
    model = net()

    pruner = OneShotTaylorFOWeightFilterPruner(
        model, CONVS, sgd(model), Trainer(), loss, global_sort=True
    )
    pruner.compress()

    masked = sum(int((one["weight"] == 0).sum()) for one in pruner.get_masks().values())
    assert 12 <= masked <= 16  # of 32 weights, in filters of two or four
    with pytest.raises(ValueError, match="dependency_aware and global_sort exclude each other"):
        OneShotTaylorFOWeightFilterPruner(
            net(), CONVS, sgd(model), Trainer(), loss, dependency_aware=True, global_sort=True
        )
