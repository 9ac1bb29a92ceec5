import warnings
from typing import Any

import pytest
import torch
from torch import nn

from nni.compression import TorchEvaluator
from nni.compression.base import ConfigListError
from nni.compression.base.inspection import module_infos
from nni.compression.evaluators.legacy_evaluator import LegacyEvaluator
from nni.compression.pruning.legacy.arguments import (
    callbacks,
    check_ratios,
    shared_total,
    training_arguments,
    warn_once,
)

NEWER = ("evaluator", "training_steps", "mode")
OLDER = ("trainer", "optimizer", "criterion", "training_batches", "mode")


def trainer(*_: Any) -> None:
    """Train nothing."""


def optimizer() -> torch.optim.SGD:
    return torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)


def test_trainer_and_optimizer_may_be_in_either_order() -> None:
    sgd, loss = optimizer(), nn.MSELoss()
    expected = {"trainer": trainer, "optimizer": sgd, "criterion": loss}

    assert callbacks(trainer, sgd, loss) == callbacks(sgd, trainer, loss) == expected


@pytest.mark.parametrize("swapped", [False, True])
def test_callbacks_become_an_evaluator(swapped: bool) -> None:
    pair = (optimizer(), trainer) if swapped else (trainer, optimizer())

    found = training_arguments((*pair, nn.MSELoss(), 4), {"mode": "global"}, NEWER, OLDER)

    assert isinstance(found.pop("evaluator"), LegacyEvaluator)
    assert found == {"training_steps": 4, "mode": "global"}


def test_an_evaluator_is_followed_by_the_newer_arguments() -> None:
    evaluator = TorchEvaluator(trainer, optimizer(), trainer)

    found = training_arguments((evaluator, 4, "normal"), {}, NEWER, OLDER)

    assert found == {"evaluator": evaluator, "training_steps": 4, "mode": "normal"}


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((trainer,), {}, "trainer need optimizer, criterion too"),
        ((trainer,), {"trainer": trainer}, "trainer is given by position and by name"),
        ((trainer,) * 6, {}, "at most 5 arguments may follow model and config_list, got 6"),
    ],
)
def test_wrong_arguments_are_refused(args: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        training_arguments(args, kwargs, NEWER, OLDER)


@pytest.mark.claim("compression", 5)
def test_a_ratio_of_one_is_refused_unless_the_interval_is_closed() -> None:
    check_ratios([{"sparsity": 1.0}, {"sparsity": 0}, {"exclude": True}], closed=True)

    for ratio in (0.0, 1.0):
        with pytest.raises(ConfigListError, match=r"config_list\[0\].sparsity must be .*in \(0, 1"):
            check_ratios([{"sparsity": ratio}])
    with pytest.raises(ConfigListError, match=r"sparse_ratio must be a number in \[0, 1\], got 2"):
        check_ratios([{"sparse_ratio": 2}], closed=True)


def test_all_layers_share_the_sparsity_of_the_first_entry() -> None:
    modules = module_infos(nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1)))
    entries = [{"op_names": ["0"], "sparsity": 0.5}, {"op_names": ["2"], "sparsity": 0.25}]

    with pytest.warns(UserWarning, match="several sparsities; all layers together reach 0.5"):
        assert shared_total(entries, modules) == [{"op_names": ["0", "2"], "total_sparsity": 0.5}]
    newer = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
    assert shared_total(newer, modules) == newer
    assert shared_total([{"op_names": ["1"], "sparsity": 0.5, "op_types": ["x"]}], modules) == []


def test_a_class_warns_once() -> None:
    warn_once.cache_clear()

    with pytest.warns(DeprecationWarning, match="SlimPruner has the arguments of an older NNI"):
        warn_once("SlimPruner", "nni.compression.pruning.SlimPruner")
    with warnings.catch_warnings(action="error"):
        warn_once("SlimPruner", "nni.compression.pruning.SlimPruner")
