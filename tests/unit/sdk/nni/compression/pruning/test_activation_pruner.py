from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

from nni.compression.config.settings import ConfigListError
from nni.compression.evaluators.torch_evaluator import TorchEvaluator
from nni.compression.pruning import ActivationAPoZRankPruner, ActivationMeanRankPruner
from nni.compression.pruning.activation_pruner import ActivationPruner

BATCH = torch.tensor([[1.0], [2.0]])


def evaluator_of(model: nn.Module, batches: list[Tensor]) -> TorchEvaluator:
    def train(one: nn.Module, _optimizer: SGD, step: Any, *_: Any) -> None:
        for batch in batches:
            step(batch, one)

    return TorchEvaluator(train, SGD(model.parameters(), lr=0.1), lambda batch, one: one(batch))


def linear(weights: list[float]) -> nn.Sequential:
    model = nn.Sequential(nn.Linear(1, len(weights)))
    model[0].weight.data = torch.tensor(weights)[:, None]
    model[0].bias.data.zero_()
    return model


def masked(kind: type[ActivationPruner], model: nn.Module, **kwargs: Any) -> list[float]:
    config_list = [{"op_types": ["Linear", "Conv2d"], "sparse_ratio": 0.34}]
    batches = kwargs.pop("batches", [BATCH])
    pruner = kind(model, config_list, evaluator_of(model, batches), len(batches), **kwargs)
    found: list[float] = pruner.compress()[1]["0"]["bias"].tolist()
    return found


@pytest.mark.claim("compression", 23)
def test_the_channel_that_is_mostly_zero_is_masked() -> None:
    assert masked(ActivationAPoZRankPruner, linear([0.1, -5.0, 3.0])) == [1, 0, 1]


@pytest.mark.claim("compression", 23)
def test_the_channel_of_the_smallest_mean_is_masked() -> None:
    assert masked(ActivationMeanRankPruner, linear([1.0, 2.0, 3.0])) == [0, 1, 1]


def test_channels_of_convolutions_are_dimension_1() -> None:
    model = nn.Sequential(nn.Conv2d(1, 3, 1))
    model[0].weight.data = torch.tensor([2.0, 1.0, 3.0]).reshape(3, 1, 1, 1)
    model[0].bias.data.zero_()

    assert masked(ActivationMeanRankPruner, model, batches=[torch.ones(2, 1, 4, 4)]) == [1, 0, 1]


def test_features_of_sequences_are_the_last_dimension() -> None:
    batch = torch.ones(2, 5, 1)

    assert masked(ActivationMeanRankPruner, linear([2.0, 1.0, 3.0]), batches=[batch]) == [1, 0, 1]


def test_relu6_limits_large_activations() -> None:
    # Means with relu6: 6, 3.5 and 6; the first batch alone would rank the channels otherwise.
    model = linear([8.0, 1.0, 90.0])
    pruner = ActivationMeanRankPruner(
        model,
        [{"op_types": ["Linear"], "sparse_ratio": 0.5}],
        evaluator_of(model, [torch.tensor([[1.0]]), torch.tensor([[9.0]])]),
        2,
        activation="relu6",
    )
    pruner.collect_data()

    assert pruner.calculate_metrics()["0", "weight"].flatten().tolist() == [6, 3.5, 6]


def test_only_the_first_passes_count() -> None:
    model = linear([1.0, 2.0])
    batches = [torch.tensor([[1.0]]), torch.tensor([[100.0]])]
    config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
    pruner = ActivationMeanRankPruner(model, config_list, evaluator_of(model, batches), 1)

    pruner.collect_data()

    assert pruner.calculate_metrics()["0", "weight"].flatten().tolist() == [1, 2]


def test_a_layer_that_is_not_called_is_refused() -> None:
    model = linear([1.0])
    config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
    pruner = ActivationMeanRankPruner(model, config_list, evaluator_of(model, []), 1)

    with pytest.raises(RuntimeError, match="0 was not called in 1 training steps"):
        pruner.compress()


def test_wrong_arguments_are_refused() -> None:
    model = linear([1.0])
    evaluator = evaluator_of(model, [])
    entry = {"op_types": ["Linear"], "sparse_ratio": 0.5}

    with pytest.raises(ValueError, match="activation must be 'relu' or 'relu6', got 'gelu'"):
        ActivationMeanRankPruner(model, [entry], evaluator, 1, activation="gelu")  # type: ignore[arg-type]
    with pytest.raises(ConfigListError, match="prunes output channels of weights only"):
        ActivationMeanRankPruner(model, [{**entry, "granularity": "in_channel"}], evaluator, 1)
    norm = nn.Sequential(nn.BatchNorm2d(1))
    config_list = [{"op_types": ["BatchNorm2d"], "sparse_ratio": 0.5}]
    with pytest.raises(ConfigListError, match="prunes only Conv2d, Linear: exclude it"):
        ActivationMeanRankPruner(norm, config_list, evaluator, 1)


def test_an_empty_batch_does_not_count() -> None:
    batches = [BATCH[:0], BATCH]

    assert masked(ActivationMeanRankPruner, linear([2.0, 1.0, 3.0]), batches=batches) == [1, 0, 1]
