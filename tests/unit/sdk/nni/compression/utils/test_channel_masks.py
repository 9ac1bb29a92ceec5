from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from nni.compression.utils.channel_masks import (
    common_channels,
    equal_losses,
    kept_channels,
    unmask_channels,
)

LAYERS: dict[str, Any] = {
    "conv": nn.Conv2d(4, 6, 3),
    "grouped": nn.Conv2d(4, 6, 3, groups=2),
    "transposed": nn.ConvTranspose2d(4, 6, 3),
    "transposed and grouped": nn.ConvTranspose2d(4, 6, 3, groups=2),
    "linear": nn.Linear(4, 6),
}


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_without_a_channel_computes_as_if_its_mask_had_none(name: str, dim: int) -> None:
    layer = LAYERS[name]
    mask, bias = torch.zeros_like(layer.weight), torch.zeros(6)
    places = np.array([1, 3])

    unmask_channels(layer, mask, bias, dim, places)

    assert np.flatnonzero(kept_channels(layer, mask, dim)).tolist() == [1, 3]
    assert bias.nonzero().flatten().tolist() == ([] if dim else [1, 3])
    # The reference: the channel is what the layer computes from, or what it returns.
    image = torch.rand(1, 4) if name == "linear" else torch.rand(1, 4, 4, 4)
    with torch.no_grad():
        bare = torch.func.functional_call
        state = {"weight": mask * torch.rand(mask.shape), "bias": torch.zeros(6)}
        if dim == 1:
            kept = torch.zeros_like(image)
            kept[:, [1, 3]] = image[:, [1, 3]]
            assert torch.equal(bare(layer, state, image), bare(layer, state, kept))
        else:
            output = bare(layer, state, image)
            assert output.transpose(0, 1).flatten(1).any(1).nonzero().flatten().tolist() == [1, 3]


def test_the_mask_of_a_batch_norm_is_a_vector() -> None:
    layer, mask, bias = nn.BatchNorm2d(3), torch.tensor([0.0, 1.0, 0.0]), torch.zeros(3)

    unmask_channels(layer, mask, bias, 0, np.array([2]))

    assert kept_channels(layer, mask, 0).tolist() == [False, True, True]
    assert bias.tolist() == [0, 0, 1]


def test_parts_lose_as_few_as_any_of_them() -> None:
    kept = np.array([0, 0, 0, 1, 0, 1, 0, 1], dtype=bool)

    assert equal_losses(kept, 2, 1).astype(int).tolist() == [0, 0, 1, 1, 0, 1, 0, 1]


def test_a_large_part_that_is_lost_as_a_whole_does_not_count() -> None:
    kept = np.array([0, 0, 0, 0, 1, 1, 0, 1], dtype=bool)

    assert equal_losses(kept, 4, 2).astype(int).tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert not equal_losses(np.zeros(4, dtype=bool), 2, 1).any()


def test_a_channel_stays_if_any_layer_keeps_its_unit() -> None:
    found = common_channels(
        {
            "a": (np.array([True, False]), np.array([0, 1])),
            "joined": (np.array([False, False, True]), np.array([0, 1, 2])),
        }
    )

    assert {name: one.tolist() for name, one in found.items()} == {
        "a": [True, False],
        "joined": [True, False, True],
    }
