"""Losses as numbers that a model with normal errors can learn from.

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
"""Losses below which nothing can be said about their tail."""
_SAME: Final = 1e-12
"""Relative deviation that rounding alone can make."""
_TAME: Final = 2.0
"""Spreads of the better half above the median up to which a loss counts in full."""
_TINY: Final = 1e-280
"""Part of the greatest loss below which good ones are not told apart."""


def standardised(losses: Floats) -> Floats:
    """Return losses `(n,)` with mean 0 and standard deviation 1; all 0 if they are equal."""
    # Divided first, so that squares of the greatest floats do not overflow.
    unit = float(np.abs(losses).max(initial=0.0)) or 1.0
    scaled = losses / unit
    centred: Floats = scaled - scaled.mean()
    deviation = float(np.sqrt((centred * centred).mean()))
    return centred / deviation if deviation > _SAME else np.zeros_like(centred)


def tamed(losses: Floats) -> Floats:
    """Return losses `(n,)` of which only those far above the median are drawn in, standardised.

    Where several losses are weighed against each other, also the middling ones must keep their
    proportions, which `warped` gives up.
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
    drawn_in = _TAME + np.log1p(np.maximum(above - _TAME, 0.0))
    return standardised(np.where(above > _TAME, drawn_in, above))


def warped(losses: Floats) -> Floats:
    """Return losses `(n,)` whose worse half is as spread as a normal distribution's, standardised.

    How bad a bad result is does not matter, and a few huge losses would flatten all others. The
    better half keeps its proportions; the order of all results stays.
    """
    return scaled(losses, 0.0).values


Scale: TypeAlias = float | None
"""How results of the better half lie: at 0 in proportion, further on ever more like logarithms of
their distance from the best. None: all results are in proportion, the worse half too."""

SCALES: Final[tuple[Scale, ...]] = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0, None)


@dataclass(frozen=True, slots=True)
class Targets:
    """Losses on a scale."""

    values: Floats
    """`(n,)`, mean 0 and standard deviation 1; all 0 if they are equal."""
    better: Bools
    """`(n,)`, the better half."""
    stretch: Floats
    """`(k,)` of the better half: the logarithm of how fast values rise with losses, but for a
    constant that all scales of the same losses have in common."""


def scaled(losses: Floats, scale: Scale) -> Targets:
    """Return losses `(n,)` on a scale; all but None spread the worse half by its ranks only."""
    better = _better_half(losses)
    # Only good losses are calculated with: a bad one may be too great for any sum.
    good = losses[better] / (float(np.abs(losses[better]).max()) or 1.0)
    span = float(good.max() - good.min())
    if span <= _SAME or len(losses) < _FEW:
        return Targets(standardised(losses), better, np.zeros_like(good))
    if scale is None:
        values = standardised(losses)
        # Bad losses that are too great leave nothing of what is between the good ones.
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
    """Return which losses `(n,)` are not above the median."""
    better: Bools = losses <= np.sort(losses)[(len(losses) - 1) // 2]
    return better


def _above(bad: Floats, heights: Floats) -> Floats:
    """Return how far above the better half bad losses come: as in a normal distribution."""
    spread = float(np.sqrt(((heights - heights.max()) ** 2).mean()))
    distinct, ranks = np.unique(bad, return_inverse=True)
    parts = 0.5 + 0.5 * (np.arange(len(distinct)) + 0.5) / max(len(distinct), 1)
    return np.array([spread * _NORMAL.inv_cdf(float(part)) for part in parts])[ranks]
