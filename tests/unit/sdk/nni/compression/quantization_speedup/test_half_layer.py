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
