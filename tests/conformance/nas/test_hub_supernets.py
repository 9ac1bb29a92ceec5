"""Spaces of the model hub are supernets of the one-shot strategies that suit them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from nni.nas.hub.pytorch import (
    NDS,
    AutoFormer,
    MobileNetV3Space,
    NasBench101,
    NasBench201,
    ProxylessNAS,
    ShuffleNetSpace,
)
from nni.nas.nn.pytorch import ModelSpace
from nni.nas.strategy import DARTS, ENAS, GumbelDARTS, OneShotStrategy, Proxyless, RandomOneShot

CELLS = ["skip_connect", "max_pool_3x3", "conv_1x1"]
SPACES: dict[str, Callable[[], ModelSpace]] = {
    "NasBench201": lambda: NasBench201(4, 1, num_labels=2),
    "ProxylessNAS": lambda: ProxylessNAS(2, width_mult=0.25),
    "ShuffleNetSpace": lambda: ShuffleNetSpace(2, width_mult=0.25),
    "NDS": lambda: NDS(CELLS, "all", 2, (4, 8), 3),
    "MobileNetV3Space": lambda: MobileNetV3Space(2, (8,) * 9, max_depth=2),
    "AutoFormer": lambda: AutoFormer((8, 12), (2.0, 3.0), (1, 2), (1, 2), 32, 16, 4, num_labels=2),
}
ALL = (DARTS, GumbelDARTS, RandomOneShot, Proxyless, ENAS)
WITHOUT_GATES = ("NDS", "MobileNetV3Space", "AutoFormer")
"""Spaces whose cells or sizes Proxyless does not know."""
PAIRS = [
    (name, strategy)
    for name in SPACES
    for strategy in ALL
    if not (strategy is Proxyless and name in WITHOUT_GATES)
]


@pytest.mark.parametrize(("name", "strategy"), PAIRS)
def test_supernet_computes(name: str, strategy: type[OneShotStrategy]) -> None:
    torch.manual_seed(0)
    supernet = strategy().mutate_model(SPACES[name]())

    output = supernet(torch.randn(2, 3, 32, 32))

    assert output.shape[0] == 2
    torch.autograd.backward(output.sum())
    assert any(one.grad is not None for one in supernet.parameters())


@pytest.mark.parametrize("strategy", ALL)
def test_graph_that_decides_channels_is_refused(strategy: type[OneShotStrategy]) -> None:
    with pytest.raises(TypeError, match=r"NasBench101Cell at 'features\.1' is not supported"):
        strategy().mutate_model(NasBench101(8, 1, 1))
