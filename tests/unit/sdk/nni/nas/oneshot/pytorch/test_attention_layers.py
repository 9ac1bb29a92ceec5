"""Shared weights of multi-head attention, compared with ordinary layers."""

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.nas.oneshot.pytorch.layer_slicing import expected_output, frozen_layer
from nni.nas.oneshot.pytorch.slicing_registry import slicing_of

CASES: dict[str, list[dict[str, Any]]] = {
    "embedding and heads": [
        {"embed_dim": size, "num_heads": heads, "batch_first": True}
        for size, heads in product((4, 8), (1, 2))
    ],
    "own sizes of key and value": [
        {"embed_dim": size, "num_heads": 2, "kdim": 6, "vdim": 4, "add_bias_kv": True}
        for size in (4, 8)
    ],
    "without bias": [{"embed_dim": size, "num_heads": 2, "bias": False} for size in (4, 8)],
}


def inputs_of(option: dict[str, Any]) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(3, 5, 8, generator=generator) for _ in range(3))
    size = option["embed_dim"]
    return (
        query[..., :size],
        key[..., : option.get("kdim", size)],
        value[..., : option.get("vdim", size)],
    )


@pytest.mark.parametrize("case", CASES)
def test_option_equals_an_ordinary_attention_with_the_slice(case: str) -> None:
    options = CASES[case]
    slicing = slicing_of(nn.MultiheadAttention)
    assert slicing is not None
    storage = slicing.storage(options)

    for option in options:
        layer = frozen_layer(slicing, storage, option)
        output, weights = slicing.run(storage, option, inputs_of(option))
        expected, expected_weights = layer(*inputs_of(option))
        torch.testing.assert_close(output, expected)
        torch.testing.assert_close(weights, expected_weights)


@pytest.mark.parametrize("case", CASES)
def test_mixture_equals_the_weighted_sum_of_the_options(case: str) -> None:
    options = CASES[case]
    slicing = slicing_of(nn.MultiheadAttention)
    assert slicing is not None
    storage = slicing.storage(options)
    probabilities = torch.linspace(1, 2, len(options))
    largest = max(options, key=lambda option: option["embed_dim"])

    output, weights = slicing.mix(storage, options, {}, probabilities, inputs_of(largest))
    expected, expected_weights = expected_output(
        [frozen_layer(slicing, storage, option)(*inputs_of(option)) for option in options],
        probabilities,
    )

    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(weights, expected_weights)


def test_optional_inputs_are_passed_on_in_their_order() -> None:
    option = {"embed_dim": 4, "num_heads": 2, "batch_first": True}
    slicing = slicing_of(nn.MultiheadAttention)
    assert slicing is not None
    storage = slicing.storage([option])
    padding = torch.tensor([[False, False, True, True, True]] * 3)

    output, weights = slicing.run(storage, option, (*inputs_of(option), padding, False))
    expected, _ = frozen_layer(slicing, storage, option)(
        *inputs_of(option), key_padding_mask=padding, need_weights=False
    )

    torch.testing.assert_close(output, expected)
    assert weights is None
