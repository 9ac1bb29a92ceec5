"""Prior of the hyperparameters of a Gaussian process: lengthscales and noise variance.

Shapes: a axes, p hyperparameters. All hyperparameters are unbounded reals, logarithms where the
quantity is positive.

Source: the lengthscales grow with the root of the dimension as in Hvarfner, Hellsten and Nardi,
Vanilla Bayesian Optimization Performs Great in High Dimensions, ICML 2024.

Departures: the prior of the lengthscales is shorter than theirs, half the diagonal of the unit
cube, which keeps proposals out of the corners of ten dimensions.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats

_LENGTHSCALE_MEAN: Final = math.log(0.5)
"""Mean of the logarithm of a lengthscale over the root of the number of axes."""
_LENGTHSCALE_DEVIATION: Final = math.sqrt(3.0)
_LENGTHSCALE_BOUNDS: Final = (math.log(5e-3), math.log(1e3))
_NOISE_BOUNDS: Final = (math.log(1e-9), math.log(1.0))
_NOISE_MEAN: Final = math.log(1e-6)
_NOISE_DEVIATION: Final = 3.0
_INITIAL_NOISE: Final = math.log(1e-4)


@dataclass(frozen=True, slots=True)
class HyperparameterPrior:
    """Independent normal distributions of hyperparameters, within bounds."""

    mean: Floats
    """`(p,)`"""
    deviation: Floats
    """`(p,)`, standard deviations."""
    bounds: tuple[Floats, Floats]
    """`(p,)` each, the least and the greatest values."""

    def penalty(self, parameters: Floats) -> tuple[float, Floats]:
        """Return the negative log density of `(p,)`, up to a constant, and its gradient `(p,)`."""
        standardised = (parameters - self.mean) / self.deviation
        return 0.5 * float(standardised @ standardised), standardised / self.deviation

    def with_parameter(
        self, mean: float, deviation: float, bounds: tuple[float, float]
    ) -> "HyperparameterPrior":
        """Return a new prior with one more parameter, the last."""
        return HyperparameterPrior(
            np.append(self.mean, mean),
            np.append(self.deviation, deviation),
            (np.append(self.bounds[0], bounds[0]), np.append(self.bounds[1], bounds[1])),
        )


def lengthscale_and_noise_prior(axes: int) -> HyperparameterPrior:
    """Return the prior `(a + 1,)` of the logarithms of lengthscales and noise variance."""
    ones = np.ones(axes)
    lengthscales = HyperparameterPrior(
        _lengthscale_mean(axes) * ones,
        _LENGTHSCALE_DEVIATION * ones,
        (_LENGTHSCALE_BOUNDS[0] * ones, _LENGTHSCALE_BOUNDS[1] * ones),
    )
    return lengthscales.with_parameter(_NOISE_MEAN, _NOISE_DEVIATION, _NOISE_BOUNDS)


def initial_lengthscales_and_noise(axes: int) -> Floats:
    """Return `(a + 1,)` logarithms of lengthscales and noise variance where a fit may start."""
    return np.append(np.full(axes, _lengthscale_mean(axes)), _INITIAL_NOISE)


def _lengthscale_mean(axes: int) -> float:
    return _LENGTHSCALE_MEAN + 0.5 * math.log(max(axes, 1))
