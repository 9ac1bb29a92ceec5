import pytest
import torch

from nni.compression.config.settings import Granularity
from nni.compression.masking.granularity import (
    block_sizes,
    expanded,
    from_blocks,
    grid,
    to_blocks,
)


@pytest.mark.parametrize(
    ("granularity", "sizes"),
    [
        ("default", (1, 1, 1)),
        ("out_channel", (1, 6, 2)),
        ("in_channel", (4, 1, 2)),
        ("per_channel", (4, 1, 2)),
        ((2,), (2, 6, 2)),
        ((2, 3, -1), (2, 3, 2)),
    ],
)
def test_names_and_lists_mean_block_sizes(granularity: Granularity, sizes: tuple[int, ...]) -> None:
    assert block_sizes(granularity, (4, 6, 2)) == sizes


def test_channels_of_a_transposed_convolution_are_swapped() -> None:
    assert block_sizes("out_channel", (4, 6, 2), transposed=True) == (4, 1, 2)
    assert block_sizes("in_channel", (4, 6, 2), transposed=True) == (1, 6, 2)


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(3,\) does not divide the shape \(4, 6\)"):
        block_sizes((3,), (4, 6))
    with pytest.raises(ValueError, match="has 3 sizes, but the tensor has shape"):
        block_sizes((1, 1, 1), (4, 6))


def test_blocks_hold_the_elements_that_a_loop_finds() -> None:
    tensor = torch.arange(4 * 6 * 2).reshape(4, 6, 2)
    sizes = (2, 3, 1)

    blocks = to_blocks(tensor, sizes)

    assert blocks.shape == (*grid(tensor.shape, sizes), 6)
    for a in range(2):
        for b in range(2):
            for c in range(2):
                part = tensor[2 * a : 2 * a + 2, 3 * b : 3 * b + 3, c]
                assert blocks[a, b, c].tolist() == part.flatten().tolist()
    assert torch.equal(to_blocks(expanded(blocks[..., 0], sizes), sizes)[..., 5], blocks[..., 0])


@pytest.mark.parametrize("sizes", [(2, 3, 1), (4, 6, 2), (1, 1, 1), (1, 2, 2)])
def test_a_tensor_is_restored_from_its_blocks(sizes: tuple[int, ...]) -> None:
    tensor = torch.arange(4 * 6 * 2).reshape(4, 6, 2)

    assert torch.equal(from_blocks(to_blocks(tensor, sizes), sizes), tensor)
