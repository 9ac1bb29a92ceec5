"""Linear algebra of Gaussian process regression, given the correlations of the observations.

The prior mean is 0. A covariance is the output scale times a correlation; noise variances are
relative to the output scale. Shapes: n observations, m predictions, f features.

Source: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1 and
section 5.4.1.

Departures: the output scale is no hyperparameter; it has the value of greatest posterior density
for the other ones, under a weak inverse gamma prior.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats

_SHAPE: Final = 0.5
_RATE: Final = 0.5
"""Inverse gamma prior of the output scale; targets have variance 1."""


def negative_log_posterior(
    matrix: Floats, targets: Floats, penalty: float
) -> tuple[float, Floats] | None:
    """Return the negative log posterior and twice its gradient by the matrix; None if singular.

    Args:
        matrix: `(n, n)`, the correlations that follow from the hyperparameters, with their noise.
        targets: `(n,)`, mean 0 and variance 1.
        penalty: negative log prior density of the hyperparameters.

    Returns:
        The value, up to a constant, and twice its gradient by the matrix `(n, n)`; None where
        rounding keeps the matrix from being factorised.
    """
    try:
        factor = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None
    root = np.linalg.inv(factor)
    precision = root.T @ root
    weights = precision @ targets
    scale = _output_scale(targets, weights)
    value = 0.5 * (len(targets) + 2 * _SHAPE) * math.log(scale)
    value += float(np.log(np.diag(factor)).sum()) + penalty
    return value, precision - np.outer(weights, weights) / scale


@dataclass(frozen=True, slots=True)
class GaussianPosterior:
    """Gaussian process conditioned on observations, in terms of correlations with them."""

    weights: Floats
    """`(n,)`, precision times targets."""
    precision: Floats
    """`(n, n)`, inverse of the correlation matrix with its noise."""
    root: Floats
    """`(n, n)`, with `root.T @ root` the precision."""
    output_scale: float
    """Prior variance of the process."""
    least_variance: float
    """Floor of the variance of predictions, relative to the output scale, > 0."""

    def predict(self, correlation: Floats) -> tuple[Floats, Floats]:
        """Return means and standard deviations `(m,)` of the function, free of noise.

        Args:
            correlation: `(n, m)`, of the observations with the predictions.
        """
        explained = self.root @ correlation
        left = np.maximum(1.0 - np.einsum("nm,nm->m", explained, explained), self.least_variance)
        return correlation.T @ self.weights, np.sqrt(self.output_scale * left)

    def predict_with_gradient(
        self, correlation: Floats, gradient: Floats
    ) -> tuple[float, float, Floats, Floats]:
        """Return mean and standard deviation of one prediction, and the gradients `(f,)` of both.

        Args:
            correlation: `(n,)`, of the observations with the prediction.
            gradient: `(n, f)`, of the correlations.
        """
        solved = self.precision @ correlation
        left = max(1.0 - float(correlation @ solved), self.least_variance)
        deviation = math.sqrt(self.output_scale * left)
        deviation_gradient = -self.output_scale / deviation * (solved @ gradient)
        return (
            float(correlation @ self.weights),
            deviation,
            self.weights @ gradient,
            deviation_gradient,
        )

    def leave_one_out(self, targets: Floats) -> tuple[Floats, Floats]:
        """Return the prediction of each observation from all others: means, deviations `(n,)`.

        The deviations are those of a measurement, noise included.

        Args:
            targets: `(n,)`, mean 0 and variance 1; they may differ from those of the conditioning.

        Source: Rasmussen and Williams, equations 5.12.
        """
        diagonal, weights = np.diag(self.precision), self.precision @ targets
        means: Floats = targets - weights / diagonal
        return means, np.sqrt(_output_scale(targets, weights) / diagonal)


def condition(
    correlation: Floats, noise: float | Floats, targets: Floats, least_variance: float
) -> GaussianPosterior:
    """Return the posterior after observations; more noise is added where rounding needs it.

    Args:
        correlation: `(n, n)`, of the observations.
        noise: variance, relative to the output scale, > 0, or one for each observation `(n,)`;
            tenfold as long as rounding keeps the matrix from being factorised.
        targets: `(n,)`, mean 0 and variance 1.
        least_variance: see `GaussianPosterior`.
    """
    root = np.asarray(np.linalg.inv(_cholesky(correlation, noise)), dtype=np.float64)
    precision = root.T @ root
    weights = precision @ targets
    scale = _output_scale(targets, weights)
    return GaussianPosterior(weights, precision, root, scale, least_variance)


def _output_scale(targets: Floats, weights: Floats) -> float:
    return (float(targets @ weights) + 2 * _RATE) / (len(targets) + 2 * _SHAPE)


def _cholesky(correlation: Floats, noise: float | Floats) -> Floats:
    """Return the Cholesky factor of correlation plus noise, raised tenfold until it exists."""
    while True:
        matrix = correlation.copy()
        matrix[np.diag_indices(len(matrix))] = 1.0 + noise
        try:
            return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
        except np.linalg.LinAlgError:
            noise = 10.0 * noise  # a correlation matrix plus the identity can always be factorised
