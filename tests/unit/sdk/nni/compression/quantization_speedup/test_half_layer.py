"""Layers of 16 bits inside a model of 32."""

from __future__ import annotations

import torch
from torch import nn

from nni.compression.quantization_speedup.half_layer import with_half_layers


def test_named_layers_are_replaced() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2)))
    expected = model(torch.ones(1, 2))

    changed = with_half_layers(model, ("1.0",))

    assert [one.dtype for one in changed.parameters()] == [torch.float32] * 2 + [torch.float16] * 2
    torch.testing.assert_close(changed(torch.ones(1, 2)), expected, rtol=0, atol=1e-2)


def test_a_model_that_is_a_layer_is_replaced_itself() -> None:
    assert with_half_layers(nn.Linear(1, 1), ("",))(torch.ones(1, 1)).dtype == torch.float32


def test_a_layer_with_two_names_is_replaced_under_both() -> None:
    model = nn.Sequential(nn.Linear(1, 1))
    model.add_module("again", model[0])

    changed = with_half_layers(model, ("0",))

    assert changed.get_submodule("again") is changed.get_submodule("0")
    assert changed(torch.ones(1, 1)).dtype == torch.float32


def test_other_modules_that_share_the_parameters_keep_32_bits() -> None:
    model = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    model[1].weight = model[0].weight

    with_half_layers(model, ("0",))

    assert model[1].weight.dtype == torch.float32


def test_modules_that_read_the_weight_of_a_layer_compute_as_before() -> None:
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    values = torch.randn(2, 3, 4)
    with torch.no_grad():
        expected = model(values)

        found = with_half_layers(model, ("self_attn.out_proj", "linear1", "linear2"))(values)

    torch.testing.assert_close(found, expected, rtol=0, atol=1e-2)


def test_named_arguments_are_converted() -> None:
    changed = with_half_layers(nn.Linear(1, 1), ("",))

    assert changed(input=torch.ones(1, 1)).dtype == torch.float32
