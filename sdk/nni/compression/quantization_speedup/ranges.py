"""Largest magnitude that integers of 8 bits represent, from a histogram of magnitudes."""

from typing import Final

import torch
from torch import Tensor

BINS: Final = 2048
LEVELS: Final = 128
"""Magnitudes of signed integers of 8 bits."""
_LEGACY_QUANTILE: Final = 0.9999


def entropy_threshold(counts: Tensor, largest: float) -> float:
    """Return the threshold whose clipped and rounded histogram loses the least information.

    Of all thresholds the one with the smallest Kullback-Leibler divergence between the clipped
    histogram and its form with `LEVELS` levels is chosen.

    Args:
        counts: histogram of magnitudes between 0 and `largest`, with more bins than `LEVELS`.
        largest: largest magnitude.

    Source: Migacz, 8-bit Inference with TensorRT, GPU Technology Conference 2017.

    Examples:
        >>> counts = torch.zeros(256)
        >>> counts[:128] = 1.0
        >>> entropy_threshold(counts, 2.0)
        1.0
    """
    counts = counts.double().clone()
    counts[0] = 0.0  # zeros are exact at every threshold
    if not bool(counts.any()):
        return largest
    ends = torch.arange(LEVELS, len(counts) + 1, max(1, len(counts) // 256))
    divergences = [_divergence(counts, int(end)) for end in ends]
    best = int(torch.tensor(divergences).argmin())
    return largest * int(ends[best]) / len(counts)


def quantile_threshold(counts: Tensor, largest: float, quantile: float = _LEGACY_QUANTILE) -> float:
    """Return the magnitude below which this share of all values lies.

    Args:
        counts: histogram of magnitudes between 0 and `largest`.
        largest: largest magnitude.
        quantile: the share, between 0 and 1.

    Examples:
        >>> quantile_threshold(torch.tensor([99.0, 0.0, 0.0, 1.0]), 4.0, 0.5)
        1.0
    """
    shares = counts.double().cumsum(0) / counts.sum().clamp_min(1)
    end = int(torch.searchsorted(shares, quantile)) + 1
    return largest * min(end, len(counts)) / len(counts)


def _divergence(counts: Tensor, end: int) -> float:
    """Return the divergence of the histogram clipped at a bin from its rounded form."""
    clipped = counts[:end].clone()
    rounded = _rounded(clipped)
    clipped[-1] += counts[end:].sum()
    p, q = clipped / clipped.sum(), rounded / rounded.sum().clamp_min(1e-12)
    seen = p > 0
    return float((p[seen] * (p[seen] / q[seen].clamp_min(1e-12)).log()).sum())


def _rounded(counts: Tensor) -> Tensor:
    """Return a histogram with `LEVELS` levels; empty bins stay empty."""
    level = torch.arange(len(counts)) * LEVELS // len(counts)
    sums = torch.zeros(LEVELS, dtype=counts.dtype).index_add_(0, level, counts)
    bins = torch.zeros(LEVELS, dtype=counts.dtype).index_add_(0, level, (counts > 0).double())
    mean = sums / bins.clamp_min(1)
    return mean[level] * (counts > 0)
