"""Densities of user priors, relative to the distribution of the space, and how they fade.

A coordinate's distribution in the space is uniform on [0, 1], or each option is equally likely.
Where the logarithm of a ratio is 0 the prior says nothing; above 0 it expects the best value.

Shapes: m points, k options.

Source: see `nni.hpo.space.user_priors`; of the exponent there section 4.1.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats, Ints
from nni.hpo.models.normal_distribution import approximate_normal_cdf
from nni.hpo.space.user_priors import SPACE_SHARE, NumberPrior, OptionPrior

_GRID: Final = np.linspace(0.0, 1.0, 513)
"""Coordinates between which the distribution function is linear: a tenth of the least deviation
holds 2.5 of them."""
_SQRT_2PI: Final = math.sqrt(2.0 * math.pi)


def prior_exponent(results: int, strength: float) -> float:
    """Return the prior's exponent beside an acquisition: `strength / max(results, 1)`.

    Args:
        results: known so far.
        strength: results after which the exponent is 1; the letter beta of the paper.
    """
    return strength / max(results, 1)


@dataclass(frozen=True, slots=True)
class NumberDensity:
    """Density of a number's user prior over its coordinate in [0, 1]."""

    prior: NumberPrior

    @property
    def mode(self) -> float:
        """Coordinate that is expected to be best."""
        return self.prior.centre

    def log_ratio(self, coordinates: Floats) -> Floats:
        """Return the log density `(m,)` at coordinates `(m,)`."""
        found: Floats = np.log(self._bell(coordinates) + SPACE_SHARE)
        return found

    def slope(self, coordinates: Floats) -> Floats:
        """Return the derivative `(m,)` of the log density by the coordinate."""
        bell = self._bell(coordinates)
        slope: Floats = (self.prior.centre - coordinates) / self.prior.deviation**2
        return slope * bell / (bell + SPACE_SHARE)

    def quantiles(self, shares: Floats) -> Floats:
        """Return the coordinates `(m,)` below which shares `(m,)` of the distribution lie."""
        z = (_GRID - self.prior.centre) / self.prior.deviation
        below = approximate_normal_cdf(z)
        below = (1.0 - SPACE_SHARE) * (below - below[0]) / (
            below[-1] - below[0]
        ) + SPACE_SHARE * _GRID
        return np.interp(shares, below, _GRID)

    def _bell(self, coordinates: Floats) -> Floats:
        prior = self.prior
        z = (coordinates - prior.centre) / prior.deviation
        height = (1.0 - SPACE_SHARE) / (prior.deviation * _SQRT_2PI * prior.mass)
        bell: Floats = height * np.exp(-0.5 * z * z)
        return bell


@dataclass(frozen=True, slots=True)
class OptionDensity:
    """Probabilities of a choice's user prior, by the index of the option."""

    probabilities: Floats
    """`(k,)`, > 0, with the sum 1."""

    @classmethod
    def of(cls, prior: OptionPrior) -> "OptionDensity":
        """Return the density of a prior over the positions of the options."""
        return cls(np.array(prior.probabilities))

    @property
    def mode(self) -> int:
        """Index that is expected to be best."""
        return int(self.probabilities.argmax())

    @property
    def log_ratios(self) -> Floats:
        """Logarithms `(k,)` of the probabilities relative to equal ones."""
        ratios: Floats = np.log(self.probabilities * len(self.probabilities))
        return ratios

    def quantiles(self, shares: Floats) -> Ints:
        """Return the indices `(m,)` at shares `(m,)` of the distribution, each in [0, 1)."""
        edges = np.cumsum(self.probabilities)[:-1]  # without the last: its rounding is harmless
        return np.searchsorted(edges, shares, side="right").astype(np.int64)
