"""`Mutable…` for each module of `torch.nn`."""

import re
from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from torch import nn

from nni.mutable import Categorical
from nni.nas.nn.pytorch import (
    MutableBatchNorm2d,
    MutableConv2d,
    MutableLinear,
    MutableLSTM,
    MutableMultiheadAttention,
    MutableSequential,
    mutable_layers,
)
from nni.nas.nn.pytorch.torch_modules import torch_module_names


def test_every_module_of_torch_has_a_mutable_version() -> None:
    names = [f"Mutable{name}" for name in torch_module_names()]

    assert sorted(mutable_layers.__all__) == sorted(names)
    assert all(hasattr(mutable_layers, name) for name in names)


@pytest.mark.parametrize(("file", "prefix"), [("mutable_layers", "Mutable"), ("layers", "")])
def test_stub_declares_every_name(file: str, prefix: str) -> None:
    stub = Path(mutable_layers.__file__).with_name(f"{file}.pyi").read_text()
    declared = set(re.findall(r"^(?:class )?(\w+)(?:\(| = nn\.)", stub, re.MULTILINE))

    assert {f"{prefix}{name}" for name in torch_module_names()} <= declared


def test_choices_of_several_arguments() -> None:
    channels = Categorical([4, 8], label="channels")
    kernel = Categorical([3, 5], label="kernel")

    layer = MutableConv2d(channels, channels * 2, kernel, padding=kernel // 2, groups=channels)
    frozen = layer.freeze({"channels": 8, "kernel": 5})

    assert frozen(torch.zeros(1, 8, 6, 6)).shape == (1, 16, 6, 6)
    assert frozen.groups == 8


def test_buffers_have_the_size_of_the_sample() -> None:
    layer = MutableBatchNorm2d(Categorical([4, 8], label="channels"))

    assert layer.freeze({"channels": 8}).running_mean.shape == (8,)


def test_attention_of_a_chosen_number_of_heads() -> None:
    layer = MutableMultiheadAttention(6, Categorical([2, 3], label="heads"))

    assert layer.freeze({"heads": 3}).num_heads == 3


@pytest.mark.parametrize("named", [False, True])
def test_container_is_frozen_with_its_modules(named: bool) -> None:
    width = Categorical([2, 4], label="width")
    modules = [MutableLinear(1, width), nn.Linear(4, 1)]
    body = MutableSequential(OrderedDict(a=modules[0], b=modules[1]) if named else modules[0])

    frozen = body.freeze({"width": 4})

    assert isinstance(frozen, nn.Sequential)
    assert frozen[0].out_features == 4
    assert frozen.simplify() == {}


def test_arguments_without_names_are_recorded_by_position() -> None:
    layer = MutableLSTM(3, Categorical([4, 5], label="hidden"), num_layers=2)

    frozen = layer.freeze({"hidden": 5})

    assert (frozen.hidden_size, frozen.num_layers) == (5, 2)
