"""Repetitions of a searched number of blocks."""

from typing import Any

import pytest
import torch
from torch import nn

from nni.mutable import Categorical, Numerical, SampleMissingError, SampleValidationError
from nni.nas.nn.pytorch import LayerChoice, ModelSpace, Repeat
from nni.nas.space import model_context


def linear(index: int) -> nn.Module:
    return nn.Linear(4, 4 + index * 0)


class Automatic(ModelSpace, label_prefix="auto"):
    """Choices with automatic labels, inside a repetition and after it."""

    def __init__(self, least: int = 1) -> None:
        super().__init__()
        self.body = Repeat(self._block, (least, 3), label="depth")
        self.last = LayerChoice([nn.ReLU(), nn.Tanh()])

    def _block(self, index: int) -> nn.Module:
        del index
        return LayerChoice([nn.ReLU(), nn.Tanh()])


@pytest.mark.claim("nas", 31)
def test_each_depth_is_a_sequence_of_that_length() -> None:
    networks = list(Repeat(nn.Linear(4, 4), (1, 3), label="depth").grid())

    assert [len(network) for network in networks] == [1, 2, 3]
    assert all(isinstance(network, nn.Sequential) for network in networks)


def test_copies_of_a_module_have_weights_of_their_own() -> None:
    repeat = Repeat(nn.Linear(4, 4), 2)

    assert repeat.blocks[0].weight is not repeat.blocks[1].weight


def test_copies_of_a_module_share_its_choices() -> None:
    block = LayerChoice([nn.ReLU(), nn.Tanh()], label="act")

    frozen = Repeat(block, (1, 2), label="depth").freeze({"depth": 2, "act": 1})

    assert [type(one) for one in frozen] == [nn.Tanh, nn.Tanh]


def test_factory_gets_the_position() -> None:
    seen: list[int] = []

    def block(index: int) -> nn.Module:
        seen.append(index)
        return nn.Identity()

    Repeat(block, (0, 3), label="depth")

    assert seen == [0, 1, 2]


def test_blocks_may_be_a_list_of_modules_or_functions() -> None:
    modules = [nn.Identity(), nn.ReLU()]

    assert list(Repeat(modules, (1, 2), label="depth").blocks) == modules
    assert len(Repeat([linear, linear], (1, 2), label="depth").blocks) == 2


def test_list_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="blocks must have the length of the greatest depth, 3"):
        Repeat([nn.Identity()], (1, 3), label="depth")


@pytest.mark.parametrize("depth", [0, -1, (2, 1), (-1, 2), (0, 0)])
def test_depth_outside_its_range_is_refused(depth: int | tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="depth must be"):
        Repeat(linear, depth, label="depth")


@pytest.mark.parametrize("depth", ["two", 1.5, True])
def test_depth_of_another_type_is_refused(depth: object) -> None:
    with pytest.raises(TypeError, match="depth must be a number"):
        Repeat(linear, depth, label="depth")  # type: ignore[arg-type]


def test_blocks_of_another_type_are_refused() -> None:
    with pytest.raises(TypeError, match="blocks must be a module, a function or a list"):
        Repeat(3, 2)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"blocks must return a torch.nn.Module, got 3 at 0"):
        Repeat(lambda index: 3, 2)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize("depth", [(1.0, 3.0), (1, 2, 3), (False, True), ("1", "3")])
def test_bounds_of_the_depth_are_two_integers(depth: Any) -> None:
    with pytest.raises(TypeError, match="depth must be a pair of integers"):
        Repeat(linear, depth, label="depth")


def test_frozen_sequence_is_in_the_mode_of_the_repetition() -> None:
    frozen = Repeat(linear, (1, 2), label="depth").eval().freeze({"depth": 2})

    assert not any(module.training for module in frozen.modules())


def test_depth_may_be_zero() -> None:
    frozen = Repeat(linear, (0, 2), label="depth").freeze({"depth": 0})

    assert torch.equal(frozen(torch.ones(1, 4)), torch.ones(1, 4))


def test_depth_may_be_an_expression() -> None:
    half = Categorical([2, 4], label="half")

    repeat = Repeat(linear, half * 2 + 1)

    assert (repeat.min_depth, repeat.max_depth, repeat.label) == (5, 9, None)
    assert len(repeat.freeze({"half": 4})) == 9


def test_depth_may_be_a_rounded_number() -> None:
    depth = Numerical(1, 4, quantize=1, label="depth").int()

    repeat = Repeat(linear, depth)

    assert (repeat.min_depth, repeat.max_depth) == (1, 4)
    assert len(repeat.freeze({"depth": 3.0})) == 3


def test_depth_that_is_no_integer_is_refused() -> None:
    with pytest.raises(ValueError, match="must be an expression of integers"):
        Repeat(linear, Categorical([1, 1.5], label="depth"))


def test_label_beside_a_mutable_depth_is_ignored_with_a_warning() -> None:
    with pytest.warns(RuntimeWarning, match="label 'other' of Repeat is ignored"):
        repeat = Repeat(linear, Categorical([1, 2], label="depth"), label="other")

    assert list(repeat.simplify()) == ["depth"]


def test_fixed_depth_is_no_dimension() -> None:
    repeat = Repeat(linear, 2)

    assert repeat.simplify() == {}
    assert len(repeat.freeze({})) == 2


def test_only_blocks_in_use_are_checked() -> None:
    blocks = [
        LayerChoice([nn.ReLU(), nn.Tanh()], label="one"),
        LayerChoice([nn.ReLU(), nn.Tanh()], label="two"),
    ]
    repeat = Repeat(blocks, (1, 2), label="depth")

    assert repeat.contains({"depth": 1, "one": 0})
    with pytest.raises(SampleMissingError, match=r"'two'.*in 1 -> two"):
        repeat.freeze({"depth": 2, "one": 0})


def test_depth_outside_the_choice_is_refused() -> None:
    with pytest.raises(SampleValidationError, match="must be one of"):
        Repeat(linear, (1, 2), label="depth").freeze({"depth": 3})


def test_unfrozen_repetition_computes_the_least_depth() -> None:
    class Add(nn.Module):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return inputs + 1

    assert Repeat(Add(), (2, 5), label="depth")(torch.zeros(1)).item() == 2


def test_context_builds_the_blocks_of_the_sample_only() -> None:
    seen: list[int] = []

    def block(index: int) -> nn.Module:
        seen.append(index)
        return nn.Identity()

    with model_context({"depth": 2}):
        module = Repeat(block, (1, 5), label="depth")

    assert isinstance(module, nn.Sequential)
    assert seen == [0, 1]


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_labels_after_a_shortened_repetition_are_those_of_the_space(depth: int) -> None:
    space = Automatic(least=0)
    sample = {**space.default_sample(), "auto/4": 1, "auto/depth": depth}

    with model_context(sample):
        network: Any = Automatic(least=0)

    assert list(space.simplify()) == ["auto/depth", "auto/1", "auto/2", "auto/3", "auto/4"]
    assert isinstance(network.last, nn.Tanh)
    assert len(network.body) == depth


def test_sample_needs_no_labels_of_blocks_beyond_the_depth() -> None:
    with model_context({"auto/depth": 1, "auto/1": 1, "auto/4": 1}):
        network: Any = Automatic(least=0)

    assert [type(one) for one in (*network.body, network.last)] == [nn.Tanh, nn.Tanh]
