"""Layers of torch under the names of NNI 2.x."""

import pytest

import nni.retiarii.nn.pytorch as legacy
from nni.nas.nn.pytorch import layers


def test_layers_are_those_whose_arguments_may_be_mutables() -> None:
    assert legacy.Conv2d is layers.Conv2d


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError):
        _ = legacy.NoSuchLayer
