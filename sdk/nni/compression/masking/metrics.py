"""Metrics of blocks: numbers by which pruners rank what they mask; the smallest are masked first.

All functions are pure, take elements of blocks as `nni.compression.masking.granularity.to_blocks`
returns them, and compute in at least float32.
"""

import torch
from torch import Tensor


def norms(blocks: Tensor, p: float) -> Tensor:
    """Return the p-norm of each block.

    Args:
        blocks: `(*grid, elements)`.
        p: order of the norm, 1 or 2.

    Returns:
        `grid`.

    Examples:
        >>> norms(torch.tensor([[3.0, 0.0], [2.0, 2.0]]), 1)
        tensor([3., 4.])
    """
    norm: Tensor = torch.linalg.vector_norm(_wide(blocks), ord=p, dim=-1)
    return norm


def distance_sums(blocks: Tensor) -> Tensor:
    """Return for each block the sum of its Euclidean distances to all blocks of the tensor.

    A block near all others is replaceable by them.

    Args:
        blocks: `(*grid, elements)`.

    Returns:
        `grid`.

    Source: He et al., Filter Pruning via Geometric Median, 2019, section 3.3.

    Examples:
        >>> distance_sums(torch.tensor([[0.0], [1.0], [10.0], [0.5]])).tolist()
        [11.5, 10.5, 28.5, 10.5]
    """
    flat = _wide(blocks).reshape(-1, blocks.shape[-1])
    # Without matrix products, whose rounding would part equal distances.
    distances = torch.cdist(flat, flat, compute_mode="donot_use_mm_for_euclid_dist")
    return distances.sum(1).reshape(blocks.shape[:-1])


def nonzero_shares(activations: Tensor) -> Tensor:
    """Return for each channel the share of its activations that are not zero: 1 - APoZ.

    Args:
        activations: `(samples, channels, ...)`, or `(samples, channels)`.

    Returns:
        `(channels,)`.

    Source: Hu et al., Network Trimming, 2016, section 3.1.

    Examples:
        >>> nonzero_shares(torch.tensor([[0.0, 1.0], [0.0, 0.0]])).tolist()
        [0.0, 0.5]
    """
    return (_by_channel(activations) != 0).to(torch.float32).mean(1)


def channel_means(activations: Tensor) -> Tensor:
    """Return the mean activation of each channel.

    Args:
        activations: `(samples, channels, ...)`, or `(samples, channels)`.

    Returns:
        `(channels,)`.

    Examples:
        >>> channel_means(torch.tensor([[1.0, 2.0], [3.0, 2.0]])).tolist()
        [2.0, 2.0]
    """
    return _wide(_by_channel(activations)).mean(1)


def first_order_contributions(weight: Tensor, gradient: Tensor) -> Tensor:
    """Return the squared first-order change of the loss for the removal of each element.

    Args:
        weight: any shape.
        gradient: of the loss, of the shape of `weight`.

    Returns:
        `(gradient * weight) ** 2`, of the shape of `weight`; sum it over a block for the block.

    Source: Molchanov et al., Importance Estimation for Neural Network Pruning, 2019, equation 8.

    Examples:
        >>> first_order_contributions(torch.tensor([2.0]), torch.tensor([-3.0]))
        tensor([36.])
    """
    return (_wide(gradient) * _wide(weight)).square()


def _by_channel(activations: Tensor) -> Tensor:
    return activations.transpose(0, 1).flatten(1)


def _wide(tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype == torch.float64 else tensor.to(torch.float32)
