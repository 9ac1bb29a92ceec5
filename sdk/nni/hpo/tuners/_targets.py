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


def warped(losses: Floats) -> Floats:
    """Return losses `(n,)` whose worse half is as spread as a normal distribution's, standardised.

    How bad a bad result is does not matter, and a few huge losses would flatten all others. The
    better half keeps its proportions; the order of all results stays.
    """
    if len(losses) < _FEW:
        return standardised(losses)
    unit = float(np.abs(losses).max()) or 1.0
    scaled = losses / unit
    middle = float(np.median(scaled))
    good = scaled <= middle
    spread = float(np.sqrt(((scaled[good] - middle) ** 2).mean()))
    if spread <= _SAME:
        return standardised(losses)
    bad, ranks = np.unique(scaled[~good], return_inverse=True)
    if len(bad):
        shares = 0.5 + 0.5 * (np.arange(len(bad)) + 0.5) / len(bad)
        heights = np.array([_NORMAL.inv_cdf(float(share)) for share in shares])
        scaled[~good] = middle + spread * heights[ranks]
    return standardised(scaled)
