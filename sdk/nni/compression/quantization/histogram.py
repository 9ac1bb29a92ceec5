"""Histograms of values, and the range in which their rounding errs least."""

from typing import Final

import torch
from torch import Tensor

from nni.compression.base.numerics import (
    IntegerType,
    Scheme,
    scale_and_zero_point,
    simulated,
)

BINS: Final = 2048
"""Number of bins; a range of bytes has 8 of them in each step."""
_CANDIDATES: Final = 64
"""Number of positions of each end of the range that are tried."""
_ROUNDS: Final = 3
"""Searches of each end with the other one fixed."""


def merged(
    histogram: Tensor, smallest: Tensor, largest: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return counts and bounds of a histogram after adding finite values; widened if needed.

    Args:
        histogram: `(bins,)`, counts.
        smallest: lower end of the first bin, without dimensions.
        largest: upper end of the last bin.
        value: any shape; values that are not finite do not count.

    Returns:
        Counts, smallest and largest value, of the same shapes. Counts from before are in the new
        bins that their middles are in.

    Examples:
        >>> zero = torch.zeros(())
        >>> counts, low, high = merged(torch.zeros(2), zero, zero, torch.tensor([0.0, 3.0, 4.0]))
        >>> counts, float(low), float(high)
        (tensor([1., 2.]), 0.0, 4.0)
    """
    value = value.flatten().to(histogram.dtype)
    value = value[value.isfinite()]
    if value.numel() == 0:
        return histogram, smallest, largest
    low, high = value.amin(), value.amax()
    if bool(histogram.any()):
        low, high = torch.minimum(low, smallest), torch.maximum(high, largest)
    old = middles(histogram, smallest, largest)
    spread = torch.zeros_like(histogram).index_add(0, _bins(old, low, high, histogram), histogram)
    added = torch.bincount(_bins(value, low, high, histogram), minlength=histogram.numel())
    return spread + added, low, high


def middles(histogram: Tensor, smallest: Tensor, largest: Tensor) -> Tensor:
    """Return the middle of each bin.

    Args:
        histogram: `(bins,)`.
        smallest: lower end of the first bin, without dimensions.
        largest: upper end of the last bin.

    Examples:
        >>> middles(torch.zeros(2), torch.tensor(0.0), torch.tensor(4.0))
        tensor([1., 3.])
    """
    bins = histogram.numel()
    places = torch.arange(bins, dtype=histogram.dtype, device=histogram.device) + 0.5
    return smallest + places * ((largest - smallest) / bins)


def best_range(
    histogram: Tensor, smallest: Tensor, largest: Tensor, integer: IntegerType, scheme: Scheme
) -> tuple[Tensor, Tensor]:
    """Return the range in which values are rounded with the smallest sum of squared errors.

    Args:
        histogram: `(bins,)`, counts.
        smallest: lower end of the first bin, without dimensions.
        largest: upper end of the last bin.
        integer: type of the quantized values.
        scheme: see `scale_and_zero_point`.

    Returns:
        Both ends, without dimensions: parts of the observed ones, in steps of 1/64, where the
        observed range is widened to contain 0.

    Examples:
        >>> counts = torch.tensor([1000.0, 1000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
        >>> ends = torch.tensor(0.0), torch.tensor(8.0)
        >>> best_range(counts, *ends, IntegerType(2, signed=False), "affine")[1] < 4
        tensor(True)
    """
    values = middles(histogram, smallest, largest)
    low, high = smallest.clamp(max=0), largest.clamp(min=0)
    parts = torch.arange(1, _CANDIDATES + 1, device=values.device) / _CANDIDATES
    best_low, best_high = low, high
    for _ in range(_ROUNDS):
        errors = _errors(
            values, histogram, (best_low.expand_as(parts), high * parts), integer, scheme
        )
        best_high = high * parts[errors.argmin()]
        errors = _errors(
            values, histogram, (low * parts, best_high.expand_as(parts)), integer, scheme
        )
        best_low = low * parts[errors.argmin()]
    return best_low, best_high


def _errors(
    values: Tensor,
    counts: Tensor,
    ranges: tuple[Tensor, Tensor],
    integer: IntegerType,
    scheme: Scheme,
) -> Tensor:
    """Return the sum of squared errors for each range, `(ranges,)`."""
    scale, zero_point = scale_and_zero_point(*ranges, integer, scheme)
    rounded = simulated(values[None], scale[:, None], zero_point[:, None], integer)
    return ((rounded - values).square() * counts).sum(1)


def _bins(values: Tensor, smallest: Tensor, largest: Tensor, histogram: Tensor) -> Tensor:
    """Return the bin of each value; of those out of range the first or the last."""
    bins = histogram.numel()
    width = (largest - smallest).clamp(min=torch.finfo(values.dtype).tiny) / bins
    return ((values - smallest) / width).long().clamp(0, bins - 1)
