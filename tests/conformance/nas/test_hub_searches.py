"""Every space of the model hub is searched end to end, on small shapes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

from nni import report_final_result
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.execution import SequentialExecutionEngine
from nni.nas.hub.pytorch import (
    DARTS,
    ENAS,
    PNAS,
    AmoebaNet,
    AutoFormer,
    MobileNetV3Space,
    NasBench101,
    NasBench201,
    NASNet,
    ProxylessNAS,
    ShuffleNetSpace,
)
from nni.nas.nn.pytorch import ModelSpace
from nni.nas.space import RawFormatModelSpace, SimplifiedModelSpace
from nni.nas.strategy import RegularizedEvolution

SPACES: dict[str, Callable[[], ModelSpace]] = {
    "NasBench101": lambda: NasBench101(8, 2, 1, num_labels=2),
    "NasBench201": lambda: NasBench201(4, 1, num_labels=2),
    "NASNet": lambda: NASNet((4, 6), 3),
    "ENAS": lambda: ENAS((4, 6), (3, 4)),
    "AmoebaNet": lambda: AmoebaNet(4, 3),
    "PNAS": lambda: PNAS(4, 3),
    "DARTS": lambda: DARTS((4, 6), 3),
    "ProxylessNAS": lambda: ProxylessNAS(2, width_mult=0.25),
    "MobileNetV3Space": lambda: MobileNetV3Space(2, (8,) * 9, max_depth=2),
    "ShuffleNetSpace": lambda: ShuffleNetSpace(2, width_mult=0.25),
    "AutoFormer": lambda: AutoFormer((8, 12), (2.0,), (1, 2), (1, 2), 16, 8, 4, num_labels=2),
}
MODELS = 4


def train(network: nn.Module) -> None:
    """Train one step on images of two classes and report the accuracy."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(8) % 2
    images = torch.randn(8, 3, 16, 16, generator=generator) + labels[:, None, None, None]
    optimizer = torch.optim.SGD(network.parameters(), 0.01)
    loss = functional.cross_entropy(network(images), labels)
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    optimizer.step()
    correct = network.eval()(images).argmax(1) == labels
    report_final_result(float(correct.float().mean()))


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("form", [RawFormatModelSpace, SimplifiedModelSpace])
def test_space_is_searched(
    name: str, form: type[RawFormatModelSpace] | type[SimplifiedModelSpace]
) -> None:
    space = form.from_model(SPACES[name](), FunctionalEvaluator(train))
    strategy = RegularizedEvolution(population_size=2, sample_size=1, mutation_prob=0.5, seed=0)

    strategy(space, SequentialExecutionEngine(max_model_count=MODELS))

    models = list(strategy.list_models(sort=False))
    assert len(models) == MODELS
    assert all(0 <= one.metric <= 1 for one in models)
