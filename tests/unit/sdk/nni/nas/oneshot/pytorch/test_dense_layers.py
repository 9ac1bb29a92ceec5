"""Shared weights of linear and convolutional layers and of normalizations.

The obvious version of a size is an ordinary layer with the slice of the weights, and that of a
mixture the weighted sum of the outputs of such layers.
"""

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.nas.oneshot.pytorch.layer_slicing import (
    LayerSlicing,
    expected_output,
    frozen_layer,
)
from nni.nas.oneshot.pytorch.slicing_registry import slicing_of

CASES: dict[str, tuple[type[nn.Module], list[dict[str, Any]], tuple[int, ...]]] = {
    "linear": (
        nn.Linear,
        [{"in_features": width, "out_features": size} for width, size in product((3, 5), (2, 4))],
        (2, 5),
    ),
    "linear without bias": (
        nn.Linear,
        [{"in_features": 4, "out_features": size, "bias": False} for size in (1, 3)],
        (2, 3, 4),
    ),
    "convolution": (
        nn.Conv2d,
        [
            {
                "in_channels": width,
                "out_channels": filters,
                "kernel_size": kernel,
                "padding": kernel // 2,
                "stride": 2,
            }
            for width, filters, kernel in product((2, 3), (2, 4), (1, 3, 5))
        ],
        (2, 3, 7, 7),
    ),
    "rectangular kernel": (
        nn.Conv2d,
        [
            {
                "in_channels": 2,
                "out_channels": 2,
                "kernel_size": (kernel, 3),
                "padding": "same",
                "padding_mode": "reflect",
                "dilation": 2,
            }
            for kernel in (1, 3)
        ],
        (1, 2, 9, 9),
    ),
    "depthwise": (
        nn.Conv2d,
        [
            {
                "in_channels": width,
                "out_channels": width,
                "groups": width,
                "kernel_size": kernel,
                "padding": kernel // 2,
            }
            for width, kernel in product((2, 4), (3, 5))
        ],
        (2, 4, 6, 6),
    ),
    "batch normalization": (
        nn.BatchNorm2d,
        [{"num_features": width} for width in (2, 4)],
        (3, 4, 5, 5),
    ),
    "layer normalization": (
        nn.LayerNorm,
        [{"normalized_shape": width} for width in (2, 4)],
        (3, 4),
    ),
    "layer normalization of two dimensions": (
        nn.LayerNorm,
        [{"normalized_shape": (3, width), "eps": 1e-3} for width in (2, 4)],
        (2, 3, 4),
    ),
}
IDS = list(CASES)


def slicing_for(kind: type[nn.Module]) -> LayerSlicing:
    slicing = slicing_of(kind)
    assert slicing is not None
    return slicing


def randomized(module: nn.Module) -> nn.Module:
    """Fill weights, else the scale and shift of a normalization would hide mistakes."""
    for value in module.parameters():
        nn.init.uniform_(value, 0.5, 1.5)
    return module


def narrow(slicing: LayerSlicing, option: dict[str, Any], inputs: Tensor) -> Tensor:
    """Return the part of an input of the largest size that one option reads."""
    match slicing.layer:
        case nn.Linear:
            return inputs[..., : option["in_features"]]
        case nn.Conv2d:
            return inputs[:, : option["in_channels"]]
    return slicing.narrowed(inputs, option)


@pytest.mark.parametrize("case", IDS)
def test_option_equals_an_ordinary_layer_with_the_slice(case: str) -> None:
    kind, options, shape = CASES[case]
    slicing = slicing_for(kind)
    storage = randomized(slicing.storage(options))
    inputs = torch.randn(shape, generator=torch.Generator().manual_seed(0))

    for option in options:
        part = narrow(slicing, option, inputs)
        layer = frozen_layer(slicing, storage, option)
        torch.testing.assert_close(slicing.run(storage, option, (part,)), layer(part))


@pytest.mark.parametrize("case", IDS)
def test_mixture_equals_the_weighted_sum_of_the_options(case: str) -> None:
    kind, options, shape = CASES[case]
    slicing = slicing_for(kind)
    storage = randomized(slicing.storage(options))
    inputs = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    logits = torch.linspace(-1, 1, len(options), requires_grad=True)
    plan = slicing.plan(storage, options)

    mixed = slicing.mix(storage, options, plan, logits.softmax(0), (inputs,))
    outputs = [
        frozen_layer(slicing, storage, option)(narrow(slicing, option, inputs))
        for option in options
    ]
    expected = expected_output(outputs, logits.softmax(0))

    torch.testing.assert_close(mixed, expected)
    weights = torch.linspace(0, 1, mixed.numel()).view_as(mixed)
    gradients = [
        torch.autograd.grad((output * weights).sum(), logits, retain_graph=True)[0]
        for output in (mixed, expected)
    ]
    # Sums of some hundred float32 products in different order.
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)


def test_slices_pass_gradients_to_the_storage_only_inside() -> None:
    slicing = slicing_for(nn.Linear)
    options = CASES["linear"][1]
    storage = slicing.storage(options)
    assert isinstance(storage, nn.Linear)

    slicing.run(storage, options[0], (torch.ones(1, 3),)).sum().backward()

    assert storage.weight.grad is not None
    assert storage.weight.grad.nonzero().max(0).values.tolist() == [1, 2]


def test_batch_normalization_updates_statistics_of_the_slice_only() -> None:
    slicing = slicing_for(nn.BatchNorm2d)
    options = CASES["batch normalization"][1]
    storage = slicing.storage(options)
    assert isinstance(storage, nn.BatchNorm2d)
    assert storage.running_mean is not None

    slicing.run(storage, options[0], (torch.ones(2, 2, 3, 3),))

    assert storage.running_mean.tolist() == pytest.approx([0.1, 0.1, 0.0, 0.0])
    assert storage.num_batches_tracked is not None
    assert int(storage.num_batches_tracked) == 1


def test_grouped_convolution_keeps_the_first_channels_of_each_group() -> None:
    slicing = slicing_for(nn.Conv2d)
    options = [
        {"in_channels": 4, "out_channels": 4, "groups": groups, "kernel_size": 1}
        for groups in (1, 2)
    ]
    storage = slicing.storage(options)

    state = slicing.sliced_state(storage, options[1])

    assert state["weight"].shape == (4, 2, 1, 1)
    assert torch.equal(state["weight"], storage.get_parameter("weight")[:, :2])


@pytest.mark.parametrize(
    "difference",
    [
        {"stride": 2},
        {"dilation": 2},
        {"kernel_size": 3},
        {"kernel_size": 2},
        {"groups": 2},
    ],
)
def test_options_with_different_outputs_cannot_be_mixed(difference: dict[str, int]) -> None:
    slicing = slicing_for(nn.Conv2d)
    option = {"in_channels": 2, "out_channels": 2, "kernel_size": 1, "padding": 0}
    options = [option, {**option, **difference}]

    with pytest.raises(ValueError, match="LayerChoice of convolutions"):
        slicing.plan(slicing.storage(options), options)
