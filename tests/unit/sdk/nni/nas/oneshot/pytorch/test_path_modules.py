"""Supernet that computes one sampled architecture."""

import copy
import random
from typing import Any

import pytest
import torch
from torch import nn

from nni.nas.nn.pytorch import Cell, InputChoice, LayerChoice, ModelSpace, Repeat
from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import Everything, Scaled, as_path


def test_each_sample_computes_what_its_frozen_network_computes() -> None:
    torch.manual_seed(0)
    space = Everything()
    path = as_path(space)
    inputs = torch.randn(2, 3)
    state = random.Random(0)

    for _ in range(12):
        path.sample = space.random_sample(random_state=state)
        torch.testing.assert_close(space(inputs), space.freeze(path.sample)(inputs))


def test_frozen_network_has_no_mutables_left() -> None:
    space = Everything()
    path = as_path(space)

    frozen = space.freeze(path.sample)

    assert not any("Path" in type(module).__name__ for module in frozen.modules())


class LooseEnds(ModelSpace):
    def __init__(self) -> None:
        super().__init__()
        self.cell = Cell([Scaled(2.0), Scaled(3.0)], 2, 1, 1, "loose_end", label="cell")

    def forward(self, inputs: Any) -> Any:
        return self.cell(inputs)


@pytest.mark.parametrize(("read", "width"), [(0, 2), (1, 1)])
def test_loose_ends_follow_the_sample(read: int, width: int) -> None:
    space = LooseEnds()
    path = as_path(space)
    path.sample = {**path.sample, "cell/input_2_0": [read]}

    output = space(torch.ones(1, 1))

    assert output.shape == (1, width)
    torch.testing.assert_close(output, space.freeze(path.sample)(torch.ones(1, 1)))


class ByInput(ModelSpace):
    """Cell whose operators know which tensor they read."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = Cell(
            {"a": lambda node, index, read: Scaled(10.0 * node + (read or 0))}, 2, 1, 1, label="c"
        )

    def forward(self, inputs: Any) -> Any:
        return self.cell(inputs)


@pytest.mark.parametrize(("read", "expected"), [(0, [10, 20]), (1, [10, 210])])
def test_operators_are_built_for_each_input(read: int, expected: list[float]) -> None:
    space = ByInput()
    path = as_path(space)
    path.sample = {**path.sample, "c/input_2_0": [read]}

    assert space(torch.ones(1, 1)).tolist() == [expected]
    assert space.freeze(path.sample)(torch.ones(1, 1)).tolist() == [expected]


def test_frozen_operator_is_the_one_of_the_supernet() -> None:
    space = ByInput()
    path = as_path(space)
    with torch.no_grad():
        for value in space.parameters():
            value.fill_(7.0)

    frozen = space.freeze(path.sample)

    assert [value.tolist() for value in frozen.parameters()] == [7.0, 7.0]


def test_depth_zero_returns_the_input() -> None:
    class Optional(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = Repeat(Scaled(2.0), (0, 1), label="depth")

    space = Optional()
    path = as_path(space)
    inputs = torch.ones(1)

    path.sample = {"depth": 0}

    assert space.blocks(inputs) is inputs


def test_copy_of_a_supernet_has_a_sample_of_its_own() -> None:
    space = Everything()
    path = as_path(space)
    copied = copy.deepcopy(space)
    before = copied(torch.ones(1, 3))

    path.sample = {**path.sample, "skip": [1]}

    assert torch.equal(copied(torch.ones(1, 3)), before)
    assert not torch.equal(space(torch.ones(1, 3)), before)


@pytest.mark.parametrize("arguments", [{"n_chosen": None}, {"reduction": "none"}])
def test_choice_of_any_number_of_inputs_is_refused(arguments: Any) -> None:
    class Skips(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.skip = InputChoice(2, **arguments, label="skip")

    with pytest.raises(TypeError, match="InputChoice at 'skip'"):
        as_path(Skips())


def test_candidates_take_any_arguments() -> None:
    class Bilinear(nn.Module):
        def forward(self, first: Any, *, second: Any) -> Any:
            return first * second

    class Two(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.layer = LayerChoice([Bilinear()], label="layer")

    space = Two()
    as_path(space)

    assert space.layer(torch.tensor(2.0), second=3.0) == 6


def test_operators_by_input_keep_mode_and_dtype_of_the_cell() -> None:
    class Net(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.cell = Cell([lambda *_: nn.Linear(2, 2)], 1, label="cell")

    space = Net().eval().double()
    as_path(space)

    assert not any(module.training for module in space.modules())
    assert {one.dtype for one in space.parameters()} == {torch.float64}
