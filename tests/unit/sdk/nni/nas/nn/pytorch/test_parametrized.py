"""Modules whose constructor arguments are mutables."""

from typing import Any

import pytest
import torch
from torch import nn

from nni.common.serializer import dump, is_traceable, load
from nni.mutable import Categorical, MutableExpression, auto_label, label_scope
from nni.nas.nn.pytorch import (
    LayerChoice,
    MutableConv2d,
    MutableLinear,
    MutableReLU,
    ParametrizedModule,
)
from nni.nas.space import model_context
from nni.nas.utils import is_basic_unit


class Head(ParametrizedModule):
    """Module of a user."""

    def __init__(self, features: int, *, classes: int = 2) -> None:
        super().__init__()
        self.linear = nn.Linear(features, classes)


class DeepHead(Head):
    """Subclass that calls the constructor of a parametrized class."""

    def __init__(self, features: int, hidden: int) -> None:
        super().__init__(features * hidden, classes=hidden)
        self.hidden = hidden


class ChoiceInside(ParametrizedModule):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.activation = LayerChoice([nn.ReLU(), nn.Tanh()], label="activation")


class Wrapping(ParametrizedModule, nn.Linear, wraps=nn.Linear, copy_wrapped=True):
    """Class with the name of what it wraps."""


def width(*values: int) -> Any:
    return Categorical(values or (2, 4), label="width")


def test_constructor_sees_the_default() -> None:
    assert Head(width()).linear.in_features == 2


def test_freezing_constructs_with_the_value_of_the_sample() -> None:
    head = Head(width(), classes=3)

    frozen = head.freeze({"width": 4})

    assert isinstance(frozen, Head)
    assert (frozen.linear.in_features, frozen.linear.out_features) == (4, 3)
    assert frozen.simplify() == {}
    assert head.linear.in_features == 2


def test_expressions_are_arguments_as_well() -> None:
    choice = width()

    layer = MutableLinear(choice * 2, MutableExpression.max(choice, 3))

    assert layer.freeze({"width": 4}).weight.shape == (4, 8)
    assert layer.freeze({"width": 2}).weight.shape == (3, 4)


def test_torch_layer_is_frozen_to_the_class_of_torch() -> None:
    assert type(MutableConv2d(1, width(), 3).freeze({"width": 4})) is nn.Conv2d


def test_layer_without_mutable_arguments_keeps_its_weights() -> None:
    layer = MutableLinear(2, 3)

    assert layer.freeze({}) is layer


def test_context_builds_the_class_of_torch_at_once() -> None:
    with model_context({"width": 4}):
        layer, head = MutableLinear(1, width()), Head(width())

    assert type(layer) is nn.Linear
    assert (layer.out_features, head.linear.in_features) == (4, 4)
    assert head.mutables == []


def test_layer_without_arguments_can_be_built_in_a_context() -> None:
    with model_context({}):
        layer = MutableReLU()

    assert torch.equal(layer(torch.tensor([-1.0, 2.0])), torch.tensor([0.0, 2.0]))


def test_arguments_are_recorded_by_name() -> None:
    choice = width()

    layer = MutableLinear(3, choice, bias=False)

    assert layer.args == {"in_features": 3, "out_features": choice, "bias": False}
    assert layer.trace_symbol is MutableLinear
    assert is_traceable(layer)
    assert is_basic_unit(layer)


def test_subclass_records_its_own_arguments() -> None:
    head = DeepHead(3, width())

    assert list(head.args) == ["features", "hidden"]
    assert head.freeze({"width": 4}).linear.weight.shape == (4, 12)


def test_dumped_layer_is_constructed_again() -> None:
    layer = load(dump(MutableLinear(3, 4)))

    assert isinstance(layer, MutableLinear)
    assert layer.args == {"in_features": 3, "out_features": 4}


def test_shell_of_the_construction_can_be_changed() -> None:
    shell = MutableLinear(3, 4).trace_copy()

    shell.trace_kwargs["out_features"] = 5

    assert shell.get().out_features == 5


def test_choices_inside_are_frozen_as_well() -> None:
    module = ChoiceInside(width())

    frozen = module.freeze({"width": 4, "activation": 1})

    assert list(module.simplify()) == ["width", "activation"]
    assert isinstance(frozen.activation, nn.Tanh)


def test_labels_inside_keep_their_scope_when_the_module_is_rebuilt() -> None:
    with label_scope("model"):
        module = ChoiceInside(width())

    frozen = module.freeze({"model/width": 4, "model/activation": 1})

    assert isinstance(frozen.activation, nn.Tanh)


def test_modules_among_the_arguments_are_frozen() -> None:
    class Wrapper(ParametrizedModule):
        def __init__(self, body: nn.Module, factor: int) -> None:
            super().__init__()
            self.body = body
            self.factor = factor

    body = nn.Sequential(LayerChoice([nn.ReLU(), nn.Tanh()], label="activation"))

    frozen = Wrapper(body, width()).freeze({"activation": 1, "width": 4})

    assert isinstance(frozen.body[0], nn.Tanh)
    assert frozen.factor == 4


@pytest.mark.parametrize("hidden", [tuple, list])
def test_mutable_inside_a_sequence_is_not_seen_and_warned_of(hidden: type) -> None:
    class Padded(ParametrizedModule):
        def __init__(self, padding: object) -> None:
            super().__init__()
            self.padding = padding

    with pytest.warns(RuntimeWarning, match="'padding' of Padded holds a mutable inside a"):
        module = Padded(hidden([width(), 1]))

    assert module.mutables == []


def test_wrapped_class_gives_its_name() -> None:
    assert (Wrapping.__name__, Wrapping.__doc__) == ("Linear", nn.Linear.__doc__)


def test_rebuilt_module_has_fresh_weights() -> None:
    layer = MutableLinear(2, width())

    first, second = (layer.freeze({"width": 4}).get_parameter("weight") for _ in range(2))

    assert not torch.equal(first, second)


def test_labels_are_complete_strings() -> None:
    with label_scope("model"):
        layer = MutableLinear(1, Categorical([1, 2], label="width"))

    assert list(layer.simplify()) == [auto_label(layer.mutables[0].label)]  # type: ignore[attr-defined]


def test_module_without_mutable_arguments_keeps_its_weights() -> None:
    module = ChoiceInside(3)

    frozen: Any = module.freeze({"activation": 1})

    assert isinstance(frozen.activation, nn.Tanh)
    assert torch.equal(frozen.linear.weight, module.linear.weight)


def test_modules_in_lists_and_dicts_of_arguments_are_frozen() -> None:
    class Branches(ParametrizedModule):
        def __init__(
            self, named: dict[str, nn.Module], listed: list[nn.Module], width: int
        ) -> None:
            super().__init__()
            self.named = nn.ModuleDict(named)
            self.listed = nn.ModuleList(listed)
            self.width = width

    def choice(label: str) -> LayerChoice:
        return LayerChoice([nn.ReLU(), nn.Tanh()], label=label)

    module = Branches({"one": choice("one")}, [choice("two")], width())

    frozen: Any = module.freeze({"one": 1, "two": 1, "width": 4})

    assert isinstance(frozen.named["one"], nn.Tanh)
    assert isinstance(frozen.listed[0], nn.Tanh)


def test_rebuilt_module_is_in_the_mode_dtype_and_device_of_the_one_it_replaces() -> None:
    features: Any = Categorical([2, 3], label="features")
    head = Head(features).eval().to("meta", torch.float64)

    frozen = head.freeze({"features": 3})

    assert not any(module.training for module in frozen.modules())
    assert {(one.dtype, one.device.type) for one in frozen.parameters()} == {
        (torch.float64, "meta")
    }


def test_explicit_dtype_of_a_buffer_is_kept() -> None:
    class Precise(ParametrizedModule):
        def __init__(self, features: Any) -> None:
            super().__init__()
            self.linear = nn.Linear(features, 2)
            self.register_buffer("total", torch.zeros(1, dtype=torch.float64))

    frozen = Precise(Categorical([2, 3], label="features")).freeze({"features": 3})

    assert frozen.get_buffer("total").dtype == torch.float64


class Doubled(MutableLinear):
    """Layer of torch with a forward pass of its own."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(inputs)


def test_subclass_of_a_layer_of_torch_keeps_its_forward_pass() -> None:
    layer = Doubled(1, Categorical([1, 2], label="width"), bias=False)

    frozen = layer.freeze({"width": 2})
    with model_context({"width": 2}):
        built = Doubled(1, Categorical([1, 2], label="width"), bias=False)

    for network in (frozen, built):
        nn.init.ones_(network.get_parameter("weight"))
        assert network(torch.ones(1, 1)).tolist() == [[2.0, 2.0]]
