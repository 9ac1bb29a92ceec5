"""Layers under the names of torch."""

import pytest
import torch

import nni.nas.nn.pytorch.layers as nn
from nni.common.serializer import dump
from nni.mutable import Categorical
from nni.nas.nn.pytorch.torch_modules import torch_module_names
from nni.nas.utils import is_basic_unit


def test_module_can_replace_that_of_torch() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(2, 3), nn.ReLU())

    assert set(torch_module_names()) < set(nn.__all__)
    assert [is_basic_unit(layer) for layer in Net().body] == [True, True]


def test_arguments_may_be_mutable() -> None:
    layer = nn.Linear(2, Categorical([3, 4], label="width"))

    assert layer.freeze({"width": 4}).out_features == 4


def test_layer_is_dumped_by_its_name() -> None:
    assert dump(nn.ReLU()) == '{"__symbol__": "path:nni.nas.nn.pytorch.layers.ReLU"}'


def test_other_names_are_those_of_torch() -> None:
    assert nn.Parameter is torch.nn.Parameter
    assert nn.functional is torch.nn.functional
    with pytest.raises(AttributeError, match="Absent"):
        _ = nn.Absent
