"""Losses as numbers that a model with normal errors can learn from.

Source: Song et al., The Vizier Gaussian Process Bandit Algorithm, 2024, section 4.1.1 (half-rank
warping).
"""

from statistics import NormalDist
from typing import Final

import numpy as np

from nni.hpo.tuners._parzen import Floats

_NORMAL: Final = NormalDist()
_FEW: Final = 4
"""Losses below which nothing can be said about their tail."""


def standardised(losses: Floats) -> Floats:
    """Return losses `(n,)` with mean 0 and standard deviation 1; all 0 if they are equal."""
    # Divided first, so that squares of the greatest floats do not overflow.
    unit = float(np.abs(losses).max(initial=0.0)) or 1.0
    scaled = losses / unit
    centred: Floats = scaled - scaled.mean()
    deviation = float(np.sqrt((centred * centred).mean()))
    return centred / deviation if deviation > _SAME else np.zeros_like(centred)


_SAME: Final = 1e-12
"""Relative deviation that rounding alone can make."""


_TAME: Final = 2.0
"""Spreads of the better half above the median up to which a loss counts in full."""


_TINY: Final = 1e-280


def tamed(losses: Floats) -> Floats:
    """Return losses `(n,)` of which only those far above the median are drawn in, standardised.

    Where several losses are weighed against each other, also the middling ones must keep their
    proportions, which `warped` gives up.
    """
    good = losses <= np.sort(losses)[(len(losses) - 1) // 2]
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
    if len(losses) < _FEW:
        return standardised(losses)
    good = losses <= np.sort(losses)[(len(losses) - 1) // 2]
    # Only good losses are calculated with: a bad one may be too great for any sum.
    better = losses[good] / (float(np.abs(losses[good]).max()) or 1.0)
    middle = float(better.max())
    spread = float(np.sqrt(((better - middle) ** 2).mean()))
    if spread <= _SAME:
        return standardised(losses)
    targets = np.empty_like(losses)
    targets[good] = better
    bad, ranks = np.unique(losses[~good], return_inverse=True)
    shares = 0.5 + 0.5 * (np.arange(len(bad)) + 0.5) / max(len(bad), 1)
    heights = np.array([_NORMAL.inv_cdf(float(share)) for share in shares])
    targets[~good] = middle + spread * heights[ranks]
    return standardised(targets)
