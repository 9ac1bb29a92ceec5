"""Gaussian process regression on the unit cube, with a length for every axis.

Pure functions and frozen values: n observations, d axes, m points to predict.

Source: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1 and
section 5.4.1. Prior of the lengths, growing with the root of the dimension: Hvarfner, Hellsten and
Nardi, Vanilla Bayesian Optimization Performs Great in High Dimensions, ICML 2024.

Departures: the prior of the lengths is shorter than theirs, half the diagonal of the cube, which
keeps proposals out of the corners of ten dimensions. The variance of the process is not searched
for but set to its best value for given lengths and noise, under a weak inverse gamma prior.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.tuners._descent import minimise
from nni.hpo.tuners._matern import Matern
from nni.hpo.tuners._parzen import Floats, Ints

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
_LEAST_NOISE: Final = 1e-8
"""Added to the diagonal whatever `alpha` is, so that the matrix can be factorised."""


def default_parameters(dimensions: int) -> Floats:
    """Return `(d + 1,)` logarithms of lengths and of the noise, where a search may start."""
    return np.append(np.full(dimensions, _length_centre(dimensions)), _FIRST_NOISE)


def _length_centre(dimensions: int) -> float:
    return _LENGTH_CENTRE + 0.5 * math.log(max(dimensions, 1))


def fitted_parameters(
    points: Floats,
    targets: Floats,
    kernel: Matern,
    alpha: float,
    starts: list[Floats],
    *,
    evaluations: int,
    owners: Ints | None = None,
) -> Floats:
    """Return the most plausible logarithms of lengths and noise, `(a + 1,)`.

    Args:
        points: `(n, d)`.
        targets: `(n,)`, mean 0 and variance 1.
        kernel: the correlation.
        alpha: least noise, relative to the variance of the process.
        starts: where to begin; the best end is taken.
        evaluations: of the posterior, per start.
        owners: `(d,)`, for every column the one of `a` axes whose length it shares, ascending
            from 0; None for a length of each column's own.
    """
    count = len(points)
    squares = _squares(points, owners)
    dimensions = len(squares)
    centre = np.append(np.full(dimensions, _length_centre(dimensions)), _NOISE_CENTRE)
    spread = np.append(np.full(dimensions, _LENGTH_SPREAD), _NOISE_SPREAD)

    def negative_log_posterior(parameters: Floats) -> tuple[float, Floats]:
        inverse_squares = np.exp(-2.0 * parameters[:-1])
        noise = math.exp(parameters[-1])
        correlation, steepness = kernel.correlation(inverse_squares @ squares)
        matrix = correlation.reshape(count, count)
        matrix[np.diag_indices(count)] = 1.0 + alpha + _LEAST_NOISE + noise
        try:
            factor = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            return math.inf, np.zeros_like(parameters)
        root = np.linalg.inv(factor)
        precision = root.T @ root
        weights = precision @ targets
        variance = _variance(targets, weights)
        gap = precision - np.outer(weights, weights) / variance
        gradient = np.empty_like(parameters)
        gradient[:-1] = 0.5 * inverse_squares * (squares @ (gap.ravel() * steepness))
        gradient[-1] = 0.5 * noise * float(np.trace(gap))
        away = (parameters - centre) / spread
        value = 0.5 * (count + 2 * _SHAPE) * math.log(variance)
        value += float(np.log(np.diag(factor)).sum()) + 0.5 * float(away @ away)
        return value, gradient + away / spread

    low = np.append(np.full(dimensions, _LENGTH_BOUNDS[0]), _NOISE_BOUNDS[0])
    high = np.append(np.full(dimensions, _LENGTH_BOUNDS[1]), _NOISE_BOUNDS[1])
    ends = [
        minimise(negative_log_posterior, start, low, high, evaluations=evaluations, tolerance=1e-3)
        for start in starts
    ]
    return min(ends, key=lambda end: end[1])[0]


def _squares(points: Floats, owners: Ints | None) -> Floats:
    """Return the squared distances along each axis, `(a, n * n)`."""
    columns = points.shape[1]
    squares: Floats = ((points[:, None, :] - points[None, :, :]) ** 2).reshape(-1, columns).T
    if owners is not None:
        squares = np.add.reduceat(squares, np.unique(owners, return_index=True)[1], axis=0)
    return np.ascontiguousarray(squares)


def shared(parameters: Floats, owners: Ints) -> Floats:
    """Return logarithms of lengths and noise `(d + 1,)` of all columns, from those of axes."""
    return np.append(parameters[:-1][owners], parameters[-1])


def _variance(targets: Floats, weights: Floats) -> float:
    return (float(targets @ weights) + 2 * _RATE) / (len(targets) + 2 * _SHAPE)


@dataclass(frozen=True, slots=True)
class Posterior:
    """What is believed about the function after observations."""

    kernel: Matern
    lengths: Floats
    """`(d,)`"""
    scaled: Floats
    """`(n, d)`, observed points divided by the lengths."""
    weights: Floats
    """`(n,)`, precision times targets."""
    precision: Floats
    """`(n, n)`, inverse of the correlation matrix with its noise."""
    root: Floats
    """`(n, n)`, inverse of its lower Cholesky factor."""
    variance: float
    """Of the process."""

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Return means and standard deviations `(m,)` of the function at `(m, d)` points."""
        scaled = points / self.lengths
        squared = (
            (scaled * scaled).sum(axis=1)[None, :]
            + (self.scaled * self.scaled).sum(axis=1)[:, None]
            - 2.0 * (self.scaled @ scaled.T)
        )
        correlation, _ = self.kernel.correlation(np.maximum(squared, 0.0))
        explained = self.root @ correlation
        left = np.maximum(1.0 - np.einsum("nm,nm->m", explained, explained), _LEAST_NOISE)
        return correlation.T @ self.weights, np.sqrt(self.variance * left)

    def slopes(self, point: Floats) -> tuple[float, float, Floats, Floats]:
        """Return mean and deviation at a `(d,)` point, and the gradients `(d,)` of both."""
        away = self.scaled - point / self.lengths
        correlation, steepness = self.kernel.correlation(np.einsum("nd,nd->n", away, away))
        # dk/dx = -k'(r)/r * (X - x) / length^2
        rise = steepness[:, None] * away / self.lengths
        pull = self.precision @ correlation
        left = max(1.0 - float(correlation @ pull), _LEAST_NOISE)
        deviation = math.sqrt(self.variance * left)
        fall = -self.variance / deviation * (pull @ rise)
        return float(correlation @ self.weights), deviation, self.weights @ rise, fall

    def left_out(self, targets: Floats) -> tuple[Floats, Floats]:
        """Return what is predicted at each observation `(n,)` without it: means and deviations.

        The deviations are those of a measurement, noise included.

        Source: Rasmussen and Williams, equations 5.12.
        """
        diagonal = np.diag(self.precision)
        means: Floats = targets - self.weights / diagonal
        return means, np.sqrt(self.variance / diagonal)


def posterior(
    points: Floats, targets: Floats, kernel: Matern, alpha: float, parameters: Floats
) -> Posterior:
    """Return the belief after observations; arguments as in `fitted_parameters`."""
    lengths = np.exp(parameters[:-1])
    scaled = points / lengths
    norms = (scaled * scaled).sum(axis=1)
    squared = norms[:, None] + norms[None, :] - 2.0 * (scaled @ scaled.T)
    matrix, _ = kernel.correlation(np.maximum(squared, 0.0))
    noise = alpha + _LEAST_NOISE + math.exp(parameters[-1])
    factor = _factor(matrix, noise)
    root = np.asarray(np.linalg.inv(factor), dtype=np.float64)
    precision = root.T @ root
    weights = precision @ targets
    return Posterior(kernel, lengths, scaled, weights, precision, root, _variance(targets, weights))


def _factor(correlation: Floats, noise: float) -> Floats:
    """Return the Cholesky factor, with more noise where rounding makes it necessary."""
    while True:
        matrix = correlation.copy()
        matrix[np.diag_indices(len(matrix))] = 1.0 + noise
        try:
            return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
        except np.linalg.LinAlgError:
            noise = 10.0 * noise  # a correlation matrix plus the identity can always be factorised


def representatives(losses: Floats, limit: int) -> Ints:
    """Return the positions of at most `limit` observations that stand for all.

    Half of them are the best ones; the others are spread evenly over the rest in order of loss, so
    that the model also knows where not to look.
    """
    order = np.argsort(losses, kind="stable")
    if len(order) <= limit:
        return np.arange(len(order))
    best = limit // 2
    spread = np.linspace(best, len(order) - 1, limit - best).round().astype(np.int64)
    return np.sort(np.concatenate([order[:best], order[spread]]))
