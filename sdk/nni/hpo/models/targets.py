"""Transformations of losses into targets for a model with normal errors.

Source: Song et al., The Vizier Gaussian Process Bandit Algorithm, 2024, section 4.1.1 (half-rank
warping); that a scale can be learnt, since its slope makes predictions on one comparable with those
on another: Snelson, Rasmussen and Ghahramani, Warped Gaussian Processes, NIPS 2003, section 3.
"""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, TypeAlias

import numpy as np

from nni.hpo.arrays import Bools, Floats

_NORMAL: Final = NormalDist()
_FEW: Final = 4
"""Losses below which their tail is not transformed."""
_SAME: Final = 1e-12
"""Relative deviation that may be due to rounding."""
_UNDAMPED: Final = 2.0
"""Deviations of the better half, above the median, up to which a loss is not damped."""
_TINY: Final = 1e-280
"""Share of the greatest loss below which good ones count as equal."""


def standardised(losses: Floats) -> Floats:
    """Return losses `(n,)` with mean 0 and standard deviation 1; all 0 if they are equal."""
    # Divided first, so that squares of the greatest floats do not overflow.
    unit = float(np.abs(losses).max(initial=0.0)) or 1.0
    scaled = losses / unit
    centred: Floats = scaled - scaled.mean()
    deviation = float(np.sqrt((centred * centred).mean()))
    return centred / deviation if deviation > _SAME else np.zeros_like(centred)


def damped(losses: Floats) -> Floats:
    """Return losses `(n,)` with logarithms of those far above the median, standardised.

    For several losses that are weighed against each other: middling ones keep their proportions,
    which `warped` does not preserve.
    """
    good = _better_half(losses)
    # The floor keeps the greatest losses finite, however small the good ones are.
    unit = max(float(np.abs(losses[good]).max()), float(np.abs(losses).max()) * _TINY) or 1.0
    scaled = losses / unit
    middle = float(scaled[good].max())
    spread = float(np.sqrt(((scaled[good] - middle) ** 2).mean()))
    if spread <= _SAME:
        return standardised(losses)
    above = (scaled - middle) / spread
    damped_part = _UNDAMPED + np.log1p(np.maximum(above - _UNDAMPED, 0.0))
    return standardised(np.where(above > _UNDAMPED, damped_part, above))


def warped(losses: Floats) -> Floats:
    """Return losses `(n,)` with half-rank warping, standardised.

    The worse half is replaced by normal quantiles of its ranks, since a few huge losses would
    flatten all others. The better half keeps its proportions; the order of all results stays.
    """
    return scaled(losses, 0.0).values


Scale: TypeAlias = float | None
"""Transformation of the better half: linear at 0, the larger the closer to the logarithm of the
distance from the best. None: linear for all results, the worse half included."""

SCALES: Final[tuple[Scale, ...]] = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0, None)


@dataclass(frozen=True, slots=True)
class Targets:
    """Standardised losses on one scale, which of them are the better half, and its log slope."""

    values: Floats
    """`(n,)`, mean 0 and standard deviation 1; all 0 if they are equal."""
    better: Bools
    """`(n,)`, the better half."""
    log_slope: Floats
    """`(k,)` of the better half: logarithm of the derivative of values by losses, up to a constant
    that all scales of the same losses have in common."""


def scaled(losses: Floats, scale: Scale) -> Targets:
    """Return losses on a scale as `Targets`; scales other than None warp the worse half by rank."""
    better = _better_half(losses)
    # Only good losses enter sums: a bad one may overflow them.
    good = losses[better] / (float(np.abs(losses[better]).max()) or 1.0)
    span = float(good.max() - good.min())
    if span <= _SAME or len(losses) < _FEW:
        return Targets(standardised(losses), better, np.zeros_like(good))
    if scale is None:
        values = standardised(losses)
        # Too great bad losses leave no difference between the good ones.
        slope = np.ptp(values[better]) / span
        return Targets(values, better, np.full_like(good, np.log(slope) if slope else -np.inf))
    if scale:
        shares = (good - good.min()) / span
        heights, slopes = np.log1p(scale * shares), scale / span / (1.0 + scale * shares)
    else:
        heights, slopes = good, np.ones_like(good)
    values = np.empty_like(losses)
    values[better] = heights
    values[~better] = heights.max() + _above(losses[~better], heights)
    targets = standardised(values)
    widening = np.ptp(targets[better]) / np.ptp(heights)
    return Targets(targets, better, np.log(widening * slopes))


def _better_half(losses: Floats) -> Bools:
    """Return `(n,)`, true for losses that are not above the median."""
    better: Bools = losses <= np.sort(losses)[(len(losses) - 1) // 2]
    return better


def _above(bad: Floats, heights: Floats) -> Floats:
    """Return normal quantiles by rank for bad losses, scaled to the better half's spread."""
    spread = float(np.sqrt(((heights - heights.max()) ** 2).mean()))
    distinct, ranks = np.unique(bad, return_inverse=True)
    parts = 0.5 + 0.5 * (np.arange(len(distinct)) + 0.5) / max(len(distinct), 1)
    return np.array([spread * _NORMAL.inv_cdf(float(part)) for part in parts])[ranks]
