"""Gaussian mixtures with diagonal covariances, fitted by expectation maximisation.

Source: Bishop, Pattern Recognition and Machine Learning, 2006, section 9.2.2.

Departures: variances have a floor, so that a component does not collapse.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats

_LOG_2PI: Final = 1.8378770664093453
_ROUNDS: Final = 30
_FLOOR: Final = 1e-3
"""Least variance of a coordinate in [0, 1]."""
_MOST_COMPONENTS: Final = 3


@dataclass(frozen=True, slots=True)
class GaussianMixture:
    """Gaussian mixture with diagonal covariances: k components in d dimensions."""

    log_weights: Floats
    """`(k,)`"""
    means: Floats
    """`(k, d)`"""
    variances: Floats
    """`(k, d)`"""

    def log_density(self, points: Floats) -> Floats:
        """Return the log density `(m,)` of the whole mixture at `(m, d)` points."""
        parts = self.log_parts(points)
        top = parts.max(axis=1)
        total: Floats = top + np.log(np.exp(parts - top[:, None]).sum(axis=1))
        return total

    def log_parts(self, points: Floats) -> Floats:
        """Return the weighted log density `(m, k)` of each component at `(m, d)` points."""
        away = (points[:, None, :] - self.means) ** 2 / self.variances
        parts: Floats = self.log_weights - 0.5 * (away + np.log(self.variances) + _LOG_2PI).sum(
            axis=2
        )
        return parts

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Return `(count, d)` points of the density, unbounded."""
        component = rng.choice(len(self.means), size=count, p=np.exp(self.log_weights))
        spread = np.sqrt(self.variances[component])
        points: Floats = self.means[component] + spread * rng.standard_normal(spread.shape)
        return points


def fitted_mixture(points: Floats, rng: np.random.Generator) -> GaussianMixture:
    """Return a mixture fitted to `(n, d)` points, n >= 1; one component per four points, 3 at most.

    Args:
        points: coordinates in [0, 1].
        rng: of the points that components are initialised with.
    """
    count = len(points)
    size = max(1, min(_MOST_COMPONENTS, count // 4))
    means = points[rng.choice(count, size=size, replace=False)]
    variances = np.tile(np.maximum(points.var(axis=0), _FLOOR), (size, 1))
    mixture = GaussianMixture(np.full(size, -np.log(size)), means, variances)
    for _ in range(_ROUNDS if size > 1 else 1):
        parts = mixture.log_parts(points)
        shares = np.exp(parts - parts.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        mixture = _maximised(points, shares)
    return mixture


def _maximised(points: Floats, shares: Floats) -> GaussianMixture:
    """Return the mixture of greatest likelihood for given responsibilities `(n, k)` (M step)."""
    sizes = shares.sum(axis=0) + 1e-10  # a component may have no responsibility left
    means = (shares.T @ points) / sizes[:, None]
    squares = (shares.T @ (points * points)) / sizes[:, None]
    variances = np.maximum(squares - means * means, _FLOOR)
    return GaussianMixture(np.log(sizes / sizes.sum()), means, variances)
