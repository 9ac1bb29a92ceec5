"""Arguments of layers."""

from torch import nn

import nni
from nni.nas.nn.pytorch import MutableConv2d, MutableLinear
from nni.nas.profiler.pytorch.arguments import argument, component, has_bias, mutable_arguments


def test_mutable_argument_precedes_the_attribute_with_its_default() -> None:
    layer = MutableConv2d(3, nni.choice("width", [4, 8]), 3)

    assert argument(layer, "out_channels").label == "width"
    assert argument(layer, "in_channels") == 3
    assert mutable_arguments(nn.Conv2d(3, 4, 3)) == {}


def test_component_of_number_tuple_and_choice() -> None:
    kernel = component(nni.choice("kernel", [3, (5, 7)]), 0)

    assert component(3, 1) == 3
    assert component((5, 7), 1) == 7
    assert [kernel.freeze({"kernel": one}) for one in (3, (5, 7))] == [3, 5]


def test_bias_may_be_a_choice() -> None:
    layer = MutableLinear(3, 4, bias=nni.choice("bias", [True, False]))

    assert [has_bias(layer).freeze({"bias": one}) for one in (True, False)] == [1, 0]
    assert has_bias(nn.Linear(3, 4, bias=False)) == 0
