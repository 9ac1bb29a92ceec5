"""Mixtures of all architectures, compared with the weighted sum of the single ones."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import nni
from nni.nas.nn.pytorch import InputChoice, LayerChoice, ModelSpace, Repeat
from nni.nas.oneshot.pytorch.architecture import ArchitectureWeights
from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import Scaled, as_mixture

INPUT = torch.ones(1)


def scalar(value: Tensor) -> float:
    return float(value.detach())


def set_probabilities(weights: ArchitectureWeights, **chances: list[float]) -> None:
    with torch.no_grad():
        for label, values in chances.items():
            weights.logits(label).copy_(torch.tensor(values).log())


def space_of(**modules: Any) -> Any:
    class Space(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            for name, build in modules.items():
                setattr(self, name, build())

    return Space()


def test_layers_are_mixed_by_their_probabilities() -> None:
    space = space_of(layer=lambda: LayerChoice([Scaled(2.0), Scaled(6.0)], label="layer"))
    weights = as_mixture(space)
    set_probabilities(weights, layer=[0.25, 0.75])

    assert scalar(space.layer(INPUT)) == pytest.approx(0.25 * 2 + 0.75 * 6)


@pytest.mark.parametrize(
    ("reduction", "number", "expected"), [("sum", 1, 2.3), ("sum", 2, 4.6), ("mean", 2, 2.3)]
)
def test_inputs_are_mixed_by_their_probabilities(
    reduction: Any, number: int, expected: float
) -> None:
    space = space_of(skip=lambda: InputChoice(3, number, reduction, label="skip"))
    weights = as_mixture(space)
    set_probabilities(weights, skip=[0.2, 0.3, 0.5])

    output: Tensor = space.skip([INPUT, 2 * INPUT, 3 * INPUT])

    assert scalar(output) == pytest.approx(expected)


def test_depths_are_mixed_by_their_probabilities() -> None:
    space = space_of(blocks=lambda: Repeat(Scaled(2.0), (1, 3), label="depth"))
    weights = as_mixture(space)
    set_probabilities(weights, depth=[0.2, 0.3, 0.5])

    assert scalar(space.blocks(INPUT)) == pytest.approx(0.2 * 2 + 0.3 * 4 + 0.5 * 8)


def test_depth_of_several_labels_adds_up_their_combinations() -> None:
    space = space_of(
        blocks=lambda: Repeat(Scaled(2.0), nni.choice("a", [0, 1]) + nni.choice("b", [1, 2]))
    )
    weights = as_mixture(space)
    set_probabilities(weights, a=[0.5, 0.5], b=[0.4, 0.6])

    assert scalar(space.blocks(INPUT)) == pytest.approx(0.2 * 2 + 0.5 * 4 + 0.3 * 8)


def test_fixed_depth_stays_as_it_is() -> None:
    space = space_of(blocks=lambda: Repeat(Scaled(2.0), 2))
    weights = as_mixture(space)

    assert scalar(space.blocks(INPUT)) == 4
    assert weights.values == {}


def test_frozen_candidate_is_the_one_of_the_mixture() -> None:
    space = space_of(layer=lambda: LayerChoice([Scaled(2.0), Scaled(6.0)], label="layer"))
    as_mixture(space)

    assert space.freeze({"layer": 1}).layer is space.layer[1]


def test_concatenation_cannot_be_mixed() -> None:
    with pytest.raises(TypeError, match="'sum' or 'mean'"):
        as_mixture(space_of(skip=lambda: InputChoice(2, 1, "concat", label="skip")))


def test_any_number_of_inputs_warns() -> None:
    with pytest.warns(UserWarning, match="exports one"):
        as_mixture(space_of(skip=lambda: InputChoice(2, None, label="skip")))


def test_depth_zero_cannot_be_mixed() -> None:
    with pytest.raises(TypeError, match="at least 1"):
        as_mixture(space_of(blocks=lambda: Repeat(Scaled(2.0), (0, 2), label="depth")))


class Stepped(nn.Module):
    """Block that passes on the last two outputs, as blocks of the NDS spaces do."""

    def __init__(self, grows: bool = False) -> None:
        super().__init__()
        self.grows = grows

    def forward(self, states: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        before = torch.cat([states[1], states[1]]) if self.grows else states[1]
        return before, 2 * states[1]


def test_depths_of_blocks_that_return_pairs_are_mixed_part_by_part() -> None:
    space = space_of(blocks=lambda: Repeat(lambda _: Stepped(), (1, 2), label="depth"))
    weights = as_mixture(space)
    set_probabilities(weights, depth=[0.25, 0.75])

    before, last = space.blocks((INPUT, INPUT))

    assert scalar(before) == pytest.approx(0.25 * 1 + 0.75 * 2)
    assert scalar(last) == pytest.approx(0.25 * 2 + 0.75 * 4)


def test_depths_whose_outputs_differ_in_size_are_refused_with_the_sizes() -> None:
    space = space_of(
        blocks=lambda: Repeat(lambda index: Stepped(index == 1), (1, 2), label="depth")
    )
    as_mixture(space)

    with pytest.raises(TypeError, match=r"keep the sizes .* \(\(1,\), \(1,\)\) at depth 1"):
        space.blocks((INPUT, INPUT))


@pytest.mark.parametrize(
    "network",
    [
        LayerChoice([nn.Identity(), nn.ReLU(inplace=True)], label="act"),
        Repeat(lambda _: nn.ReLU(inplace=True), (1, 2), label="depth"),
    ],
    ids=["layers", "depths"],
)
def test_alternatives_that_change_a_shared_tensor_are_refused(network: nn.Module) -> None:
    class Net(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.part = network

    space = Net()
    as_mixture(space)

    with pytest.raises(RuntimeError, match="changes its input in place"):
        space.part(torch.ones(1) * 2)
