from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.base import ConfigListError
from nni.compression.pruning.legacy.epoch_pruners import (
    EpochADMMPruner,
    EpochAGPPruner,
    EpochPruner,
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


def wide() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 100, 1), nn.Conv2d(100, 6, 1))


FIRST: list[dict[str, object]] = [{"op_names": ["0"], "sparsity": 0.8}]


def counted(pruner: Any) -> list[int]:
    """Compress; return how many weights of the first layer are masked after each update."""
    counts: list[int] = []
    update = pruner.pruner.update_masks

    def after(masks: Any) -> None:
        update(masks)
        counts.append(int((masks["0"]["weight"] == 0).sum()))

    pruner.pruner.update_masks = after
    pruner.compress()
    return counts


@pytest.mark.claim("compression", 32)
def test_ratios_of_ten_updates_grow_to_the_last_epoch() -> None:
    model, trainer = wide(), Trainer()

    counts = counted(EpochAGPPruner(model, FIRST, sgd(model), trainer, loss))

    ratios = (0, 0.2381, 0.4236, 0.5630, 0.6628, 0.7298, 0.7704, 0.7912, 0.7989, 0.8)
    assert [count / 200 for count in counts] == pytest.approx(ratios, abs=1 / 200)
    assert counts[-1] == 160
    assert trainer.epochs == list(range(10))


@pytest.mark.claim("compression", 33)
def test_masks_are_updated_every_other_epoch() -> None:
    model, trainer = wide(), Trainer()

    counts = counted(EpochAGPPruner(model, FIRST, trainer, sgd(model), loss, 5, 2))

    ratios = (0, 0.4625, 0.7, 0.7875, 0.8)
    assert [count / 200 for count in counts] == pytest.approx(ratios, abs=1 / 200)
    assert trainer.epochs == list(range(10))


@pytest.mark.claim("compression", 5)
def test_the_whole_range_of_ratios_is_accepted() -> None:
    model = wide()
    entries: list[dict[str, object]] = [{"op_names": ["0"], "sparsity": 1.0}]

    counts = counted(EpochAGPPruner(model, entries, sgd(model), Trainer(), loss, 1))

    assert counts == [199]
    with pytest.raises(ConfigListError, match=r"in \[0, 1\], got 1.5"):
        EpochAGPPruner(model, [{**FIRST[0], "sparsity": 1.5}], sgd(model), Trainer(), loss)


@pytest.mark.parametrize(
    "name", ["level", "slim", "l1", "l2", "fpgm", "taylorfo", "apoz", "mean_activation"]
)
def test_each_algorithm_prunes_between_epochs(name: str) -> None:
    model = net()
    config_list = NORMS if name == "slim" else CONVS

    pruner = EpochAGPPruner(model, config_list, sgd(model), Trainer(), loss, 2, 1, name)

    assert pruner.compress() is model
    assert any(not one["weight"].all() for one in pruner.get_masks().values())


def test_iterations_may_have_epochs_of_their_own() -> None:
    model, trainer = net(), Trainer()

    pruner = EpochPruner(model, CONVS, sgd(model), "l1", trainer, loss, 2, [1, 3])
    pruner.compress()

    assert trainer.epochs == [0, 1, 2, 3]
    assert pruner.get_pruned_weights() == {"0": (2, 4), "3": (3, 6)}
    pruner.unwrap_model()
    assert isinstance(model[0], nn.Conv2d)


def test_dependent_layers_are_known() -> None:
    model = net()

    pruner = EpochPruner(model, CONVS, sgd(model), "l1", Trainer(), loss, 1, 1, True, images())

    assert pruner.mode == "dependency_aware"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"optimizer": None}, TypeError, "trainer and an optimizer of torch must be given"),
        ({"num_iterations": 0}, ValueError, "num_iterations must be >= 1, got 0"),
        ({"epochs_per_iteration": 0}, ValueError, "epochs_per_iteration must be >= 1, got 0"),
        ({"epochs_per_iteration": [1]}, ValueError, "one number for each of 2 iterations, got"),
        ({"epochs_per_iteration": [1, 0]}, ValueError, "epochs_per_iteration must be >= 1"),
        ({"pruning_algorithm": "agp"}, ValueError, "pruning_algorithm must be one of"),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    model = net()
    given = {
        "optimizer": sgd(model), "pruning_algorithm": "l1", "trainer": Trainer(),
        "criterion": loss, "num_iterations": 2, **arguments,
    }  # fmt: skip

    with pytest.raises(error, match=message):
        EpochPruner(model, CONVS, **given)
    assert isinstance(model[0], nn.Conv2d)


def test_admm_trains_by_its_own_optimizer() -> None:
    model, trainer = net(), Trainer()

    pruner = EpochADMMPruner(model, CONVS, trainer, loss, 2, 2, row=1e-3)

    assert pruner.compress() is model
    assert len(trainer.epochs) == 4
    assert pruner.rho == 1e-3
    assert pruner.get_pruned_weights() == {"0": (2, 4), "3": (3, 6)}
