"""Blocks: the groups of elements of a tensor that are masked as one.

A tensor of shape `(d1, ..., dn)` with block sizes `(b1, ..., bn)` has a grid of
`(d1 / b1, ..., dn / bn)` blocks. Metrics and reduced masks have one value for each block.
"""

import math

import torch
from torch import Tensor

from nni.compression.config.settings import Granularity

WHOLE = -1
"""Block size that stands for the whole dimension."""


def block_sizes(
    granularity: Granularity, shape: torch.Size | tuple[int, ...], *, transposed: bool = False
) -> tuple[int, ...]:
    """Return a block's size in each dimension by granularity; raise unless it divides the shape.

    Args:
        granularity: `default`: single elements; `out_channel`: slices of dimension 0;
            `in_channel`, `per_channel`: slices of dimension 1; a tuple: block sizes, -1 for a
            whole dimension, and missing ones at the end count as -1.
        shape: shape of the tensor.
        transposed: the weight of a transposed convolution, whose channels are swapped.

    Returns:
        One size for each dimension, with -1 resolved.

    Raises:
        ValueError: too many sizes, or a size that does not divide its dimension.

    Examples:
        >>> block_sizes("out_channel", (20, 3, 5, 5))
        (1, 3, 5, 5)
        >>> block_sizes((4, -1), (8, 6))
        (4, 6)
    """
    sizes = _sizes(granularity, len(shape), transposed=transposed)
    if len(sizes) > len(shape):
        raise ValueError(
            f"granularity {granularity!r} has {len(sizes)} sizes, but the tensor has shape "
            f"{tuple(shape)}"
        )
    padded = (*sizes, *(WHOLE,) * (len(shape) - len(sizes)))
    resolved = tuple(
        dim if size == WHOLE else size for dim, size in zip(shape, padded, strict=True)
    )
    if any(dim % size for dim, size in zip(shape, resolved, strict=True)):
        raise ValueError(
            f"granularity {granularity!r} does not divide the shape {tuple(shape)}; choose sizes "
            "that do"
        )
    return resolved


def _sizes(granularity: Granularity, rank: int, *, transposed: bool) -> tuple[int, ...]:
    if not isinstance(granularity, str):
        return granularity
    first, second = (1,), (WHOLE, 1)
    match granularity:
        case "default":
            return (1,) * rank
        case "out_channel":
            return second if transposed else first
        case "in_channel":
            return first if transposed else second
        case "per_channel":
            return second


def grid(shape: torch.Size | tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the number of blocks in each dimension.

    Examples:
        >>> grid((8, 6), (4, 6))
        (2, 1)
    """
    return tuple(dim // size for dim, size in zip(shape, sizes, strict=True))


def to_blocks(tensor: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Return the elements of each block along a new last dimension, after those of the grid.

    Args:
        tensor: `(d1, ..., dn)`.
        sizes: from `block_sizes`.

    Returns:
        `(d1 / b1, ..., dn / bn, b1 * ... * bn)`.

    Examples:
        >>> to_blocks(torch.arange(4.0).reshape(2, 2), (1, 2)).shape
        torch.Size([2, 1, 2])
    """
    counts = grid(tensor.shape, sizes)
    split = [one for pair in zip(counts, sizes, strict=True) for one in pair]
    rank = tensor.dim()
    order = [*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)]
    return tensor.reshape(split).permute(order).reshape(*counts, math.prod(sizes))


def from_blocks(blocks: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Return the tensor that blocks make up: the inverse of `to_blocks`.

    Args:
        blocks: `(d1 / b1, ..., dn / bn, b1 * ... * bn)`.
        sizes: block sizes `(b1, ..., bn)`.

    Returns:
        `(d1, ..., dn)`.

    Examples:
        >>> tensor = torch.arange(8.0).reshape(2, 4)
        >>> bool((from_blocks(to_blocks(tensor, (1, 2)), (1, 2)) == tensor).all())
        True
    """
    counts = blocks.shape[:-1]
    rank = len(counts)
    split = blocks.reshape(*counts, *sizes)
    order = [axis for pair in zip(range(rank), range(rank, 2 * rank), strict=True) for axis in pair]
    shape = [count * size for count, size in zip(counts, sizes, strict=True)]
    return split.permute(order).reshape(shape)


def expanded(reduced: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Return a tensor of full size in which every element has the value of its block.

    Args:
        reduced: one value for each block, `(d1 / b1, ..., dn / bn)`.
        sizes: from `block_sizes`.

    Returns:
        `(d1, ..., dn)`.

    Examples:
        >>> expanded(torch.tensor([[1.0], [0.0]]), (1, 2))
        tensor([[1., 1.],
                [0., 0.]])
    """
    for dim, size in enumerate(sizes):
        reduced = reduced.repeat_interleave(size, dim)
    return reduced
