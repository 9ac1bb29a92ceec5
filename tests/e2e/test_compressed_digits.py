"""Accuracy of compressed networks on real images: claims 91 and 92 in their offline form.

The claims are about MNIST and CIFAR-10, which tests cannot download. The handwritten digits of
scikit-learn stand for both. Margins are wider: 450 test images make a step of 0.22 points. Five
epochs stand for one: an epoch has 43 steps here, and 938 of MNIST.
"""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from nni.compression.pruning import L1NormPruner
from nni.compression.quantization import QATQuantizer
from nni.compression.speedup import ModelSpeedup
from tests.benchmarks.bench_compression_digits import Digits, evaluator, network, train

RATE = 5e-3


@pytest.fixture(scope="module")
def digits() -> Digits:
    return Digits(0)


@pytest.fixture(scope="module")
def dense(digits: Digits) -> nn.Sequential:
    torch.manual_seed(0)
    model = network()
    train(model, digits, 8, RATE)
    return model


def pruned(model: nn.Module, entries: list[dict[str, object]], digits: Digits) -> nn.Module:
    smaller = copy.deepcopy(model).eval()
    pruner = L1NormPruner(smaller, entries)
    _, masks = pruner.compress()
    pruner.unwrap_model()
    ModelSpeedup(smaller, digits.test[0][:2], masks).speedup_model()
    return smaller


@pytest.mark.claim("compression", 91)
def test_one_layer_at_half_its_width_costs_less_than_a_point(
    digits: Digits, dense: nn.Sequential
) -> None:
    smaller = pruned(dense, [{"op_names": ["0"], "sparse_ratio": 0.5}], digits)
    train(smaller, digits, 5, RATE)

    assert digits.accuracy(dense) >= 98
    assert smaller.get_submodule("0").get_parameter("weight").shape[0] == 8
    assert digits.accuracy(smaller) >= digits.accuracy(dense) - 1


@pytest.mark.claim("compression", 91)
def test_training_with_integers_of_eight_bits_costs_less_than_a_point(
    digits: Digits, dense: nn.Sequential
) -> None:
    model = copy.deepcopy(dense)
    entries = [{"op_types": ["Conv2d", "Linear"], "quant_dtype": "int8"}]
    quantizer = QATQuantizer(model, entries, evaluator(model, digits), quant_start_step=5)
    quantizer.compress(max_steps=40, max_epochs=None)

    assert digits.accuracy(model) >= digits.accuracy(dense) - 1


@pytest.mark.claim("compression", 92)
def test_all_layers_at_half_their_width_cost_less_than_two_points(
    digits: Digits, dense: nn.Sequential
) -> None:
    smaller = pruned(dense, [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}], digits)
    train(smaller, digits, 8, RATE)

    assert digits.accuracy(smaller) >= digits.accuracy(dense) - 2
