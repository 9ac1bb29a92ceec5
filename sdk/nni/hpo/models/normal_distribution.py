"""Standard normal distribution: distribution function and logarithms, elementwise."""

import math
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats

LOG_SQRT_2PI: Final = 0.9189385332046727
_SQRT_HALF: Final = 0.7071067811865476
_TAIL: Final = -8.0
"""Below it the asymptotic series is closer than the difference of two tiny numbers."""

_erfc = np.frompyfunc(math.erfc, 1, 1)


def normal_cdf(z: Floats) -> Floats:
    """Return the standard normal distribution function, exact to rounding also in the tails."""
    return 0.5 * np.asarray(_erfc(-_SQRT_HALF * z), dtype=np.float64)


def approximate_normal_cdf(z: Floats) -> Floats:
    """Return the normal distribution function by a fast series, error below 1.5e-7.

    For masses of intervals. It is of no use in the tails, where differences or logarithms of tiny
    values count.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 1964, formula 7.1.26.
    """
    scaled = np.abs(z) * _SQRT_HALF
    t = 1.0 / (1.0 + 0.3275911 * scaled)
    series = t * (
        0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    )
    tail = 0.5 * series * np.exp(-scaled * scaled)
    return np.where(z > 0, 1.0 - tail, tail)


def log_normal_density(z: Floats) -> Floats:
    """Return the logarithm of the standard normal density, elementwise."""
    density: Floats = -0.5 * z * z - LOG_SQRT_2PI
    return density


def log_normal_cdf(z: Floats) -> Floats:
    """Return the logarithm of the distribution function, finite also where it underflows."""
    inner = np.maximum(z, _TAIL)
    outer = np.minimum(z, _TAIL)
    near = np.log(normal_cdf(inner))
    far = log_normal_density(outer) - np.log(-outer) + np.log1p(-1 / outer**2 + 3 / outer**4)
    return np.where(z > _TAIL, near, far)


def log_unit_improvement(z: Floats) -> Floats:
    """Return the logarithm of phi(z) + z Phi(z), the expected improvement of a unit normal.

    Source: Ament et al., Unexpected Improvements to Expected Improvement, NeurIPS 2023, section
    4.1.
    """
    inner = np.maximum(z, _TAIL)
    outer = np.minimum(z, _TAIL)
    near = np.log(np.exp(log_normal_density(inner)) + inner * normal_cdf(inner))
    far = log_normal_density(outer) - 2 * np.log(-outer) + np.log1p(-3 / outer**2 + 15 / outer**4)
    return np.where(z > _TAIL, near, far)
