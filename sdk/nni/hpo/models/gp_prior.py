"""What Gaussian processes expect before any observation, and what observations make of them.

Pure functions and frozen values: n observations, a axes, p parameters, f features, m points.

Source: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1 and
section 5.4.1. Prior of the lengths, growing with the root of the dimension: Hvarfner, Hellsten and
Nardi, Vanilla Bayesian Optimization Performs Great in High Dimensions, ICML 2024.

Departures: the prior of the lengths is shorter than theirs, half the diagonal of the cube, which
keeps proposals out of the corners of ten dimensions. The variance of the process is not searched
for but set to its best value for given parameters, under a weak inverse gamma prior.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from nni.hpo.arrays import Floats

_SHAPE: Final = 0.5
_RATE: Final = 0.5
"""Inverse gamma prior of the process variance, whose targets have variance 1."""
_LENGTH_CENTRE: Final = math.log(0.5)
"""Of the logarithm of a length over the root of the number of axes."""
_LENGTH_SPREAD: Final = math.sqrt(3.0)
_LENGTH_BOUNDS: Final = (math.log(5e-3), math.log(1e3))
_NOISE_BOUNDS: Final = (math.log(1e-9), math.log(1.0))
_NOISE_CENTRE: Final = math.log(1e-6)
_NOISE_SPREAD: Final = 3.0
_FIRST_NOISE: Final = math.log(1e-4)
"""Where the search begins."""


@dataclass(frozen=True, slots=True)
class Prior:
    """Normal distributions of parameters, independent of each other, within bounds."""

    centre: Floats
    """`(p,)`"""
    spread: Floats
    """`(p,)`"""
    bounds: tuple[Floats, Floats]
    """`(p,)` each, the least and the greatest values."""

    def penalty(self, parameters: Floats) -> tuple[float, Floats]:
        """Return minus the logarithm of their density, but for a constant, and its gradient."""
        away = (parameters - self.centre) / self.spread
        return 0.5 * float(away @ away), away / self.spread

    def joined_by(self, centre: float, spread: float, bounds: tuple[float, float]) -> "Prior":
        """Return the prior with one more parameter, the last."""
        return Prior(
            np.append(self.centre, centre),
            np.append(self.spread, spread),
            (np.append(self.bounds[0], bounds[0]), np.append(self.bounds[1], bounds[1])),
        )


def lengths_and_noise_prior(axes: int) -> Prior:
    """Return what is expected of the logarithms of lengths and of the noise, `(a + 1,)`."""
    length = np.ones(axes)
    lengths = Prior(
        _length_centre(axes) * length,
        _LENGTH_SPREAD * length,
        (_LENGTH_BOUNDS[0] * length, _LENGTH_BOUNDS[1] * length),
    )
    return lengths.joined_by(_NOISE_CENTRE, _NOISE_SPREAD, _NOISE_BOUNDS)


def first_lengths_and_noise(axes: int) -> Floats:
    """Return `(a + 1,)` logarithms of lengths and of the noise, where a search may start."""
    return np.append(np.full(axes, _length_centre(axes)), _FIRST_NOISE)


def _length_centre(axes: int) -> float:
    return _LENGTH_CENTRE + 0.5 * math.log(max(axes, 1))


def implausibility(matrix: Floats, targets: Floats, penalty: float) -> tuple[float, Floats] | None:
    """Return minus the logarithm of the posterior of parameters, and how to change it.

    Args:
        matrix: `(n, n)`, the correlations that follow from the parameters, with their noise.
        targets: `(n,)`, mean 0 and variance 1.
        penalty: of the parameters, by their prior.

    Returns:
        The value, but for a constant, and twice its gradient by the matrix `(n, n)`; None where
        rounding keeps the matrix from being factorised.
    """
    try:
        factor = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None
    root = np.linalg.inv(factor)
    precision = root.T @ root
    weights = precision @ targets
    variance = _variance(targets, weights)
    value = 0.5 * (len(targets) + 2 * _SHAPE) * math.log(variance)
    value += float(np.log(np.diag(factor)).sum()) + penalty
    return value, precision - np.outer(weights, weights) / variance


@dataclass(frozen=True, slots=True)
class Conditioned:
    """A process after observations; a subclass knows how it correlates."""

    least_noise: ClassVar[float]
    """Of any observation, relative to the variance, so that the matrix can be factorised."""

    weights: Floats
    """`(n,)`, precision times targets."""
    precision: Floats
    """`(n, n)`, inverse of the correlation matrix with its noise."""
    root: Floats
    """`(n, n)`, inverse of its lower Cholesky factor."""
    variance: float
    """Of the process."""

    def left_out(self, targets: Floats) -> tuple[Floats, Floats]:
        """Return what is predicted at each observation `(n,)` without it: means and deviations.

        The deviations are those of a measurement, noise included.

        Args:
            targets: `(n,)`, mean 0 and variance 1: what was observed; other than what the process
                was made with, for what it would have predicted then.

        Source: Rasmussen and Williams, equations 5.12.
        """
        diagonal, weights = np.diag(self.precision), self.precision @ targets
        means: Floats = targets - weights / diagonal
        return means, np.sqrt(_variance(targets, weights) / diagonal)

    def _prediction(self, correlation: Floats) -> tuple[Floats, Floats]:
        """Return means and deviations `(m,)` of points that correlate `(n, m)` with the observed.

        The correlations are those of the function, free of noise.
        """
        explained = self.root @ correlation
        left = np.maximum(1.0 - np.einsum("nm,nm->m", explained, explained), self.least_noise)
        return correlation.T @ self.weights, np.sqrt(self.variance * left)

    def _slopes(self, correlation: Floats, rise: Floats) -> tuple[float, float, Floats, Floats]:
        """Return mean and deviation at a point, and the gradients `(f,)` of both.

        Args:
            correlation: `(n,)`, of the point with the observed ones.
            rise: `(n, f)`, gradients of that.
        """
        pull = self.precision @ correlation
        left = max(1.0 - float(correlation @ pull), self.least_noise)
        deviation = math.sqrt(self.variance * left)
        fall = -self.variance / deviation * (pull @ rise)
        return float(correlation @ self.weights), deviation, self.weights @ rise, fall


def conditioned(
    correlation: Floats, noise: float, targets: Floats
) -> tuple[Floats, Floats, Floats, float]:
    """Return weights, precision, root and variance; see `Conditioned`.

    Args:
        correlation: `(n, n)`, of the observed points.
        noise: relative to the variance, > 0; more where rounding makes it necessary.
        targets: `(n,)`, mean 0 and variance 1.
    """
    root = np.asarray(np.linalg.inv(_factor(correlation, noise)), dtype=np.float64)
    precision = root.T @ root
    weights = precision @ targets
    return weights, precision, root, _variance(targets, weights)


def _variance(targets: Floats, weights: Floats) -> float:
    return (float(targets @ weights) + 2 * _RATE) / (len(targets) + 2 * _SHAPE)


def _factor(correlation: Floats, noise: float) -> Floats:
    """Return the Cholesky factor, with more noise where rounding makes it necessary."""
    while True:
        matrix = correlation.copy()
        matrix[np.diag_indices(len(matrix))] = 1.0 + noise
        try:
            return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
        except np.linalg.LinAlgError:
            noise = 10.0 * noise  # a correlation matrix plus the identity can always be factorised
