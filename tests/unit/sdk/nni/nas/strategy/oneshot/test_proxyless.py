"""ProxylessNAS: gradient descent on the probabilities of sampled paths."""

from typing import Any

import pytest
import torch

import nni
from nni.nas.nn.pytorch import Cell, ModelSpace, MutableLinear
from nni.nas.strategy.oneshot import Proxyless
from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import Branches, Scaled, Training


class Celled(ModelSpace):
    def __init__(self) -> None:
        super().__init__()
        self.part = Cell([Scaled(1.0)], 1, label="cell")


class Sized(ModelSpace):
    def __init__(self) -> None:
        super().__init__()
        self.part = MutableLinear(2, nni.choice("width", [1, 2]))


@pytest.mark.parametrize("space", [Celled, Sized])
def test_cells_and_sizes_are_not_supported(space: Any) -> None:
    with pytest.raises(TypeError, match="at 'part' is not supported by Proxyless"):
        Proxyless().mutate_model(space())


def test_export_is_the_most_probable_path_or_a_draw() -> None:
    torch.manual_seed(0)
    strategy = Proxyless()
    strategy.mutate_model(Branches())
    with torch.no_grad():
        strategy.architecture.logits("branch").copy_(torch.tensor([0.0, 1.0]))
    strategy._oneshot_module = strategy.configure_oneshot_module(Training(strategy.supernet))

    exported = {strategy.export()["branch"] for _ in range(30)}
    drawn = {strategy.export(sample=True)["branch"] for _ in range(30)}

    # The other branch has probability 0.27: none of 30 draws takes it once in 10,000.
    assert exported == {"line"}
    assert drawn == {"line", "zero"}
