"""An activation is composed of functions that are searched."""

import itertools

import pytest
import torch
from torch.nn import functional

from nni.mutable import Categorical, label_scope
from nni.nas.hub.pytorch.modules import AutoActivation
from nni.nas.space import model_context

SWISH = {"a/unary_0": "Identity", "a/unary_1": "Identity", "a/binary_0": "Sigmoid"}


@pytest.mark.claim("nas", 34)
def test_space_of_one_unit_has_5760_points() -> None:
    leaves = AutoActivation(unit_num=1, label="a").simplify()

    sizes = [len(leaf) for leaf in leaves.values() if isinstance(leaf, Categorical)]

    assert sorted(leaves) == ["a/binary_0", "a/unary_0", "a/unary_1"]
    assert sizes[0] * sizes[1] * sizes[2] == 24 * 24 * 10 == 5760


def test_grid_of_the_space_is_complete() -> None:
    activation = AutoActivation(1, ["Identity", "Sin"], ["Add", "Mul", "Max"], label="a")

    samples = list(activation.grid_samples())

    assert len(samples) == 2 * 2 * 3
    assert len({tuple(sample.values()) for sample in samples}) == 12


def test_swish_is_in_the_space() -> None:
    x = torch.linspace(-3, 3, 7)

    frozen = AutoActivation(label="a").freeze(SWISH)

    assert torch.allclose(frozen(x), functional.silu(x))


def test_context_gives_the_same_activation() -> None:
    x = torch.linspace(-3, 3, 7)
    with model_context(SWISH):
        built = AutoActivation(label="a")

    assert torch.allclose(built(x), functional.silu(x))
    assert built.simplify() == {}


def test_units_are_applied_in_turn() -> None:
    sample = {
        "a/unary_0": "Square",
        "a/unary_1": "Exp",
        "a/binary_0": "Minus",
        "a/unary_2": "Negative",
        "a/binary_1": "Mul",
    }
    x = torch.tensor([0.5, 2.0])

    frozen = AutoActivation(2, label="a").freeze(sample)

    assert torch.allclose(frozen(x), (x**2 - x.exp()) * -x)


def test_default_computes_without_a_sample() -> None:
    x = torch.tensor([1.0, -2.0])

    assert torch.equal(AutoActivation(label="a")(x), x + x)


def test_two_activations_of_one_label_share_their_choices() -> None:
    one, other = AutoActivation(label="a"), AutoActivation(label="a")

    assert all(
        leaf.equals(expected)
        for leaf, expected in zip(one.simplify().values(), other.simplify().values(), strict=True)
    )


def test_label_is_placed_in_the_scope() -> None:
    with label_scope("model"):
        labels = list(AutoActivation().simplify())

    assert labels[0] == "model/1/unary_0"


def test_random_formulas_have_gradients() -> None:
    activation = AutoActivation(2, ["Sin", "Mul", "Tanh"], ["Add", "ParamAdd"], label="a")
    for sample in itertools.islice(activation.grid_samples(), 10):
        x = torch.ones(3, requires_grad=True)
        activation.freeze(sample)(x).sum().backward()
        assert x.grad is not None
        assert torch.isfinite(x.grad).all()


def test_no_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="unit_num must be >= 1, got 0"):
        AutoActivation(0, label="a")


def test_unknown_function_is_refused() -> None:
    with pytest.raises(ValueError, match="got 'Swish'"):
        AutoActivation(1, ["Swish"], label="a")
