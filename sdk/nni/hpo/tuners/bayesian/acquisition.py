"""How promising a point is, given a normal prediction of its loss; larger is better.

All take means and deviations `(m,)` of the loss, the best loss so far, and a margin or weight; the
logarithms keep a slope where the plain values have underflowed.

Source: Ament et al., Unexpected Improvements to Expected Improvement, NeurIPS 2023, section 4.1.
"""

import math
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from nni.hpo.arrays import Floats

_LOG_SQRT_2PI: Final = 0.9189385332046727
_SQRT_HALF: Final = 0.7071067811865476
_TAIL: Final = -8.0
"""Below it the series of the tail is closer than the difference of two tiny numbers."""

Slopes: TypeAlias = tuple[Floats, Floats, Floats]
"""Value, its derivative by the mean, its derivative by the deviation; each `(m,)`."""

Acquisition: TypeAlias = Callable[[Floats, Floats, float], Slopes]
"""Called with means, deviations and the best loss."""

_erfc = np.frompyfunc(math.erfc, 1, 1)


def normal_cdf(z: Floats) -> Floats:
    """Return the standard normal distribution function."""
    return 0.5 * np.asarray(_erfc(-_SQRT_HALF * z), dtype=np.float64)


def _log_density(z: Floats) -> Floats:
    density: Floats = -0.5 * z * z - _LOG_SQRT_2PI
    return density


def log_cdf(z: Floats) -> Floats:
    """Return the logarithm of the standard normal distribution function."""
    inner = np.maximum(z, _TAIL)
    outer = np.minimum(z, _TAIL)
    near = np.log(normal_cdf(inner))
    far = _log_density(outer) - np.log(-outer) + np.log1p(-1 / outer**2 + 3 / outer**4)
    return np.where(z > _TAIL, near, far)


def log_gain(z: Floats) -> Floats:
    """Return the logarithm of phi(z) + z Phi(z)."""
    inner = np.maximum(z, _TAIL)
    outer = np.minimum(z, _TAIL)
    near = np.log(np.exp(_log_density(inner)) + inner * normal_cdf(inner))
    far = _log_density(outer) - 2 * np.log(-outer) + np.log1p(-3 / outer**2 + 15 / outer**4)
    return np.where(z > _TAIL, near, far)


def expected_improvement(margin: float) -> Acquisition:
    """Return the logarithm of the expected gain over the best loss less a margin."""

    def evaluate(mean: Floats, deviation: Floats, best: float) -> Slopes:
        z = (best - margin - mean) / deviation
        gain = log_gain(z)
        # d log h / dz = Phi / h, with h = phi + z Phi.
        ratio = np.exp(log_cdf(z) - gain)
        by_mean = -ratio / deviation
        by_deviation = (1.0 - z * ratio) / deviation
        return np.log(deviation) + gain, by_mean, by_deviation

    return evaluate


def improvement_probability(margin: float) -> Acquisition:
    """Return the logarithm of the chance to beat the best loss by a margin."""

    def evaluate(mean: Floats, deviation: Floats, best: float) -> Slopes:
        z = (best - margin - mean) / deviation
        chance = log_cdf(z)
        ratio = np.exp(_log_density(z) - chance)
        return chance, -ratio / deviation, -z * ratio / deviation

    return evaluate


def confidence_bound(weight: float) -> Acquisition:
    """Return how low the loss may be: the negative mean plus `weight` deviations."""

    def evaluate(mean: Floats, deviation: Floats, best: float) -> Slopes:
        del best
        return weight * deviation - mean, np.full_like(mean, -1.0), np.full_like(mean, weight)

    return evaluate


def deviation_alone(mean: Floats, deviation: Floats, best: float) -> Slopes:
    """Return how little is known: the deviation itself."""
    del best
    return deviation, np.zeros_like(mean), np.ones_like(mean)
