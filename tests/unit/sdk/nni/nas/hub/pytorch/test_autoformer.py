"""The space of vision transformers has searched sizes."""

import random

import pytest
import torch

from nni.nas.hub.pytorch import AutoFormer, AutoformerSpace
from nni.nas.hub.pytorch.autoformer import TransformerBlock


def small() -> AutoFormer:
    return AutoFormer((8, 12), (2.0, 3.0), (1, 2), (1, 2, 3), 8, 4, head_dim=4, num_labels=3)


def test_dimensions() -> None:
    assert sorted(small().simplify()) == sorted(
        [
            "autoformer/embed_dim",
            "autoformer/depth",
            *(f"autoformer/num_heads_{at}" for at in range(3)),
            *(f"autoformer/mlp_ratio_{at}" for at in range(3)),
        ]
    )


def test_chosen_sizes_are_built() -> None:
    memo = {
        "autoformer/embed_dim": 12,
        "autoformer/depth": 2,
        "autoformer/num_heads_1": 2,
        "autoformer/mlp_ratio_1": 3.0,
    }

    network = small().random(memo, random.Random(0))

    block = network.blocks[1]
    assert len(network.blocks) == 2
    assert (block.query.in_features, block.query.out_features) == (12, 8)
    assert block.feed_forward[1].out_features == 36
    assert network(torch.zeros(2, 3, 8, 8)).shape == (2, 3)


def test_published_range_of_sizes() -> None:
    assert list(AutoFormer().simplify()["autoformer/embed_dim"].grid()) == [192, 216, 240]


def test_positions_tell_patches_apart() -> None:
    network = small().default().eval()
    image = torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))

    assert not torch.equal(network(image), network(image.flip(3)))


def test_block_attends_to_all_tokens() -> None:
    block = TransformerBlock(8, 2, 2.0, head_dim=4)
    tokens = torch.randn(1, 5, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)

    block(tokens)[0, 0].square().sum().backward()

    assert tokens.grad is not None
    assert bool((tokens.grad.abs().sum(-1) > 0).all())


def test_size_of_images_is_a_multiple_of_patches() -> None:
    with pytest.raises(ValueError, match="img_size must be a multiple of 4, got 9"):
        AutoFormer(img_size=9, patch_size=4)


def test_both_names_are_one_class() -> None:
    assert AutoformerSpace is AutoFormer
