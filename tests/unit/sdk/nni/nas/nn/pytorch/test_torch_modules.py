"""Classes made from those of `torch.nn`."""

import pickle

from torch import nn

from nni.nas.nn.pytorch import mutable_layers
from nni.nas.nn.pytorch.torch_modules import mutable_classes, torch_module_names


def test_names_are_those_of_modules() -> None:
    names = torch_module_names()

    assert {"Conv2d", "LSTM", "MultiheadAttention", "Sequential", "Transformer"} <= set(names)
    assert "Parameter" not in names


def test_class_is_a_subclass_with_the_documentation_of_torch() -> None:
    made = mutable_classes("example", "My")["MyLinear"]

    assert issubclass(made, nn.Linear)
    assert "affine linear transformation" in (made.__doc__ or "")
    assert (made.__name__, made.__module__) == ("MyLinear", "example")


def test_instances_can_be_pickled() -> None:
    layer = mutable_layers.MutableLinear(1, 2)

    assert pickle.loads(pickle.dumps(layer)).args == layer.args
