"""Weights of observations of a Gaussian process whose noise has heavy tails.

The noise has a Student-t distribution: a normal one whose variance differs between observations,
with a gamma prior of its inverse. Expectation maximisation alternates between the process, given a
noise variance for each observation, and these variances, given the residuals. An observation that
neither the process nor its own noise explains gets a small weight.

Shapes: n observations.

Source: Jylänki, Vanhatalo and Vehtari, Robust Gaussian Process Regression with a Student-t
Likelihood, Journal of Machine Learning Research 12, 2011, section 3 (scale mixture).

Departures: expectation maximisation of the noise alone, with the correlations given.
"""

from typing import Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.models.gp_algebra import condition

DEGREES: Final = 4.0
"""Degrees of freedom of the noise."""
_ROUNDS: Final = 20
_FIRST_NOISE: Final = 0.1
_NOISE_BOUNDS: Final = (1e-6, 1.0)
"""Noise variance at the start, and its bounds, relative to the output scale."""


def noise_weights(correlation: Floats, targets: Floats) -> tuple[Floats, Floats]:
    """Return weights, small for outliers, and residuals of observations, `(n,)` each.

    A weight is the inverse of the noise variance of the observation, relative to the usual one, in
    (0, (DEGREES + 1) / DEGREES]. A residual is the target less the mean of the process.

    Args:
        correlation: `(n, n)`, of the observations, without noise.
        targets: `(n,)`, mean 0 and variance 1.
    """
    weights, noise = np.ones(len(targets)), _FIRST_NOISE
    residuals = np.zeros(len(targets))
    for _ in range(_ROUNDS):
        variances = noise / weights
        posterior = condition(correlation, variances, targets, _NOISE_BOUNDS[0])
        residuals = variances * posterior.weights
        left = variances - variances**2 * np.diag(posterior.precision)
        squares = residuals**2 / posterior.output_scale + np.maximum(left, 0.0)
        weights = (DEGREES + 1.0) / (DEGREES + squares / noise)
        noise = float(np.clip((weights * squares).mean(), *_NOISE_BOUNDS))
    return weights, residuals
