"""A cell of NAS-Bench-201 connects each pair of tensors by one operator."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from nni.mutable import Categorical
from nni.nas.hub.pytorch.modules import NasBench201Cell
from nni.nas.hub.pytorch.nasbench201 import OPERATORS


class Times(nn.Module):
    def __init__(self, factor: int) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs * self.factor


def times(factor: int) -> Callable[[int, int], nn.Module]:
    return lambda _in_features, _out_features: Times(factor)


@pytest.mark.claim("nas", 33)
def test_five_operators_on_four_tensors_have_15625_points() -> None:
    leaves = NasBench201Cell(OPERATORS, 4, 4, label="cell").simplify()

    assert list(leaves) == [f"cell/{place}" for place in ("0_1", "0_2", "1_2", "0_3", "1_3", "2_3")]
    sizes = [len(leaf) for leaf in leaves.values() if isinstance(leaf, Categorical)]
    assert math.prod(sizes) == 15_625


def test_tensors_are_sums_of_operators_on_earlier_ones() -> None:
    cell = NasBench201Cell(
        {"1": times(1), "10": times(10), "100": times(100)},
        1,
        1,
        3,
        label="cell",
    )

    frozen = cell.freeze({"cell/0_1": "10", "cell/0_2": "1", "cell/1_2": "100"})

    assert float(frozen(torch.tensor(2.0))) == 2 + 20 * 100


def test_operators_on_the_input_have_its_channels() -> None:
    cell = NasBench201Cell([nn.Linear], 3, 5, 3, label="cell")

    shapes = {
        name: (one.in_features, one.out_features)
        for name, one in cell.freeze(
            {f"cell/{p}": 0 for p in ("0_1", "0_2", "1_2")}
        ).layers.named_modules()
        if isinstance(one, nn.Linear)
    }

    assert list(shapes.values()) == [(3, 5), (3, 5), (5, 5)]
    assert cell(torch.zeros(2, 3)).shape == (2, 5)


def test_list_of_operators_has_positions() -> None:
    leaf = NasBench201Cell([nn.Linear, nn.Linear], 3, 3, 2, label="c").simplify()["c/0_1"]

    assert isinstance(leaf, Categorical)
    assert leaf.values == [0, 1]


def test_one_tensor_is_refused() -> None:
    with pytest.raises(ValueError, match="num_tensors must be >= 2, got 1"):
        NasBench201Cell(OPERATORS, 4, 4, 1, label="cell")
