"""Balanced sparsity: every tile of a tensor loses equally many elements, as N:M patterns need."""

from collections.abc import Sequence

import torch
from torch import Tensor

from nni.compression.masking.granularity import from_blocks, to_blocks


def tile_sizes(shape: Sequence[int], gran: Sequence[int]) -> tuple[int, ...]:
    """Return a tile's size in each dimension, 1 if not given; raise unless it divides the shape.

    Args:
        shape: shape of the tensor.
        gran: sizes of the last dimensions; the ones before are 1.

    Raises:
        ValueError: there are more sizes than dimensions, or one does not divide its dimension.

    Examples:
        >>> tile_sizes((8, 16), (4,))
        (1, 4)
    """
    if len(gran) > len(shape):
        raise ValueError(f"balance_gran {list(gran)} has more sizes than the shape {tuple(shape)}")
    sizes = (*(1,) * (len(shape) - len(gran)), *gran)
    for dim, size in zip(shape, sizes, strict=True):
        if dim % size:
            raise ValueError(f"balance_gran {list(gran)} does not divide the shape {tuple(shape)}")
    return sizes


def balanced_kept(metric: Tensor, kept: Tensor, sizes: tuple[int, ...], ratio: float) -> Tensor:
    """Return a bool tensor, false for the part `ratio` of smallest elements of every tile.

    Elements that are masked already are masked first. Ties are broken by the lower index.

    Args:
        metric: any shape; the smallest are masked first; NaN counts as smallest.
        kept: bool, of the shape of `metric`: elements that an earlier round has not masked.
        sizes: from `tile_sizes`.
        ratio: in [0, 1]; the product with the elements of a tile is rounded down.

    Returns:
        bool, of the shape of `metric`.

    Examples:
        >>> metric = torch.tensor([[3.0, 1.0, 2.0, 4.0, 5.0, 8.0, 7.0, 6.0]])
        >>> balanced_kept(metric, metric > 0, (1, 4), 0.5).int()
        tensor([[1, 0, 0, 1, 0, 1, 1, 0]], dtype=torch.int32)
    """
    tiles = to_blocks(torch.nan_to_num(metric.double(), nan=-torch.inf), sizes)
    alive = to_blocks(kept, sizes)
    by_value = torch.argsort(tiles, dim=-1, stable=True)
    by_state = torch.argsort(alive.gather(-1, by_value).to(torch.int8), dim=-1, stable=True)
    order = by_value.gather(-1, by_state)
    stays = torch.ones_like(alive)
    stays.scatter_(-1, order[..., : int(tiles.shape[-1] * ratio)], value=False)
    return from_blocks(stays, sizes)
