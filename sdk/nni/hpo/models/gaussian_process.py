"""Gaussian process regression on the unit cube, with a length for every axis.

Pure functions and frozen values: n observations, d axes, m points to predict.

Source: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1 and
section 5.4.1; priors and departures: see `gp_prior`.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from nni.hpo.arrays import Floats, Ints
from nni.hpo.models.gp_prior import (
    Conditioned,
    conditioned,
    first_lengths_and_noise,
    implausibility,
    lengths_and_noise_prior,
)
from nni.hpo.models.lbfgs import minimise
from nni.hpo.models.matern import Matern

_LEAST_NOISE: Final = 1e-8
"""Added to the diagonal whatever `alpha` is, so that the matrix can be factorised."""


def default_parameters(dimensions: int) -> Floats:
    """Return `(d + 1,)` logarithms of lengths and of the noise, where a search may start."""
    return first_lengths_and_noise(dimensions)


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
    prior = lengths_and_noise_prior(len(squares))

    def negative_log_posterior(parameters: Floats) -> tuple[float, Floats]:
        inverse_squares = np.exp(-2.0 * parameters[:-1])
        noise = math.exp(parameters[-1])
        correlation, steepness = kernel.correlation(inverse_squares @ squares)
        matrix = correlation.reshape(count, count)
        matrix[np.diag_indices(count)] = 1.0 + alpha + _LEAST_NOISE + noise
        penalty, penalty_gradient = prior.penalty(parameters)
        found = implausibility(matrix, targets, penalty)
        if found is None:
            return math.inf, np.zeros_like(parameters)
        value, gap = found
        gradient = np.empty_like(parameters)
        gradient[:-1] = 0.5 * inverse_squares * (squares @ (gap.ravel() * steepness))
        gradient[-1] = 0.5 * noise * float(np.trace(gap))
        return value, gradient + penalty_gradient

    ends = [
        minimise(
            negative_log_posterior, start, *prior.bounds, evaluations=evaluations, tolerance=1e-3
        )
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


@dataclass(frozen=True, slots=True)
class Posterior(Conditioned):
    """What is believed about the function after observations."""

    least_noise: ClassVar[float] = _LEAST_NOISE

    kernel: Matern
    lengths: Floats
    """`(d,)`"""
    scaled: Floats
    """`(n, d)`, observed points divided by the lengths."""

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Return means and standard deviations `(m,)` of the function at `(m, d)` points."""
        scaled = points / self.lengths
        squared = (
            (scaled * scaled).sum(axis=1)[None, :]
            + (self.scaled * self.scaled).sum(axis=1)[:, None]
            - 2.0 * (self.scaled @ scaled.T)
        )
        correlation, _ = self.kernel.correlation(np.maximum(squared, 0.0))
        return self._prediction(correlation)

    def slopes(self, point: Floats) -> tuple[float, float, Floats, Floats]:
        """Return mean and deviation at a `(d,)` point, and the gradients `(d,)` of both."""
        away = self.scaled - point / self.lengths
        correlation, steepness = self.kernel.correlation(np.einsum("nd,nd->n", away, away))
        # dk/dx = -k'(r)/r * (X - x) / length^2
        rise = steepness[:, None] * away / self.lengths
        return self._slopes(correlation, rise)


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
    weights, precision, root, variance = conditioned(matrix, noise, targets)
    return Posterior(weights, precision, root, variance, kernel, lengths, scaled)


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
