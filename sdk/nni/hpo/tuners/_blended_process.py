"""Gaussian process regression whose correlation is a blend: all axes together, and each alone.

What is due to single axes is learnt from far fewer observations than what is due to their
interplay; how much of either there is, is learnt with the lengths. Pure functions and frozen
values: n observations, f features, a axes, m points to predict.

Source: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1 and
section 5.4.1; Duvenaud, Nickisch and Rasmussen, Additive Gaussian Processes, NIPS 2011 (orders one
and d of their sum); prior of the lengths as in `_gaussian_process`.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.tuners._descent import minimise
from nni.hpo.tuners._matern import Matern
from nni.hpo.tuners._parzen import Floats, Ints

_KERNEL: Final = Matern.of(2.5)
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
_LEAST_NOISE: Final = 1e-6
"""Added to the diagonal, so that the matrix can be factorised."""
_BLEND_CENTRE: Final = 1.0
_BLEND_SPREAD: Final = 2.0
_BLEND_BOUNDS: Final = (-7.0, 7.0)
"""Prior and bounds of the logit of the part that axes have alone: most effects are single ones."""
_BLOCK: Final = 128
"""Points whose correlations are calculated together, so that they stay in the cache."""


def default_parameters(axes: int) -> Floats:
    """Return `(a + 2,)` logarithms of lengths and noise and the logit of the blend, to start at."""
    return np.concatenate([np.full(axes, _length_centre(axes)), [_FIRST_NOISE, _BLEND_CENTRE]])


def _length_centre(axes: int) -> float:
    return _LENGTH_CENTRE + 0.5 * math.log(max(axes, 1))


def fitted_parameters(
    points: Floats, targets: Floats, owners: Ints, starts: list[Floats], *, evaluations: int
) -> Floats:
    """Return the most plausible parameters `(a + 2,)`.

    Args:
        points: `(n, f)`.
        targets: `(n,)`, mean 0 and variance 1.
        owners: `(f,)`, the axis of each feature, ascending from 0.
        starts: where to begin; the best end is taken.
        evaluations: of the posterior, per start.
    """
    count = len(points)
    upper = np.triu_indices(count, 1)
    squares = _squares(points, owners, upper)
    axes = len(squares)
    centre = np.concatenate([np.full(axes, _length_centre(axes)), [_NOISE_CENTRE, _BLEND_CENTRE]])
    spread = np.concatenate([np.full(axes, _LENGTH_SPREAD), [_NOISE_SPREAD, _BLEND_SPREAD]])
    matrix = np.empty((count, count))
    diagonal = np.diag_indices(count)

    def negative_log_posterior(parameters: Floats) -> tuple[float, Floats]:
        scaled = squares * np.exp(-2.0 * parameters[:axes])[:, None]
        alone, alone_steep = _KERNEL.correlation(axes * scaled)
        joint, joint_steep = _KERNEL.correlation(scaled.sum(axis=0))
        blend = _share(parameters[-1])
        single = alone.mean(axis=0)
        correlation = blend * single + (1.0 - blend) * joint
        noise = math.exp(parameters[axes])
        matrix[upper] = correlation
        matrix.T[upper] = correlation
        matrix[diagonal] = 1.0 + _LEAST_NOISE + noise
        try:
            factor = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            return math.inf, np.zeros_like(parameters)
        root = np.linalg.inv(factor)
        precision = root.T @ root
        weights = precision @ targets
        variance = _variance(targets, weights)
        gap = precision - np.outer(weights, weights) / variance
        # Off the diagonal everything counts twice, which the half of the formula takes away.
        pull = gap[upper]
        gradient = np.empty_like(parameters)
        by_axis = (1.0 - blend) * joint_steep + blend * alone_steep
        gradient[:axes] = (scaled * by_axis) @ pull
        gradient[axes] = 0.5 * noise * float(np.trace(gap))
        gradient[-1] = blend * (1.0 - blend) * float(pull @ (single - joint))
        away = (parameters - centre) / spread
        value = 0.5 * (count + 2 * _SHAPE) * math.log(variance)
        value += float(np.log(np.diag(factor)).sum()) + 0.5 * float(away @ away)
        return value, gradient + away / spread

    low = np.concatenate([np.full(axes, _LENGTH_BOUNDS[0]), [_NOISE_BOUNDS[0], _BLEND_BOUNDS[0]]])
    high = np.concatenate([np.full(axes, _LENGTH_BOUNDS[1]), [_NOISE_BOUNDS[1], _BLEND_BOUNDS[1]]])
    ends = [
        minimise(negative_log_posterior, start, low, high, evaluations=evaluations, tolerance=1e-3)
        for start in starts
    ]
    return min(ends, key=lambda end: end[1])[0]


def _squares(points: Floats, owners: Ints, upper: tuple[Ints, Ints]) -> Floats:
    """Return the squared distances of pairs along each axis, `(a, n (n - 1) / 2)`."""
    squares: Floats = ((points[upper[0]] - points[upper[1]]) ** 2).T
    if owners[-1] + 1 < len(owners):
        squares = np.add.reduceat(squares, np.unique(owners, return_index=True)[1], axis=0)
    return np.ascontiguousarray(squares)


def _share(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-logit))


def _variance(targets: Floats, weights: Floats) -> float:
    return (float(targets @ weights) + 2 * _RATE) / (len(targets) + 2 * _SHAPE)


@dataclass(frozen=True, slots=True)
class BlendedProcess:
    """What is believed about the function after observations."""

    owners: Ints
    """`(f,)`, the axis of each feature."""
    lengths: Floats
    """`(f,)`"""
    blend: float
    """The part of the variance that axes have alone."""
    scaled: Floats
    """`(n, f)`, observed points divided by the lengths."""
    weights: Floats
    """`(n,)`, precision times targets."""
    precision: Floats
    """`(n, n)`, inverse of the correlation matrix with its noise."""
    root: Floats
    """`(n, n)`, inverse of its lower Cholesky factor."""
    variance: float
    """Of the process."""

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Return means and standard deviations `(m,)` of the function at `(m, f)` points."""
        correlation = _correlation(self.scaled, points / self.lengths, self.owners, self.blend)
        explained = self.root @ correlation
        left = np.maximum(1.0 - np.einsum("nm,nm->m", explained, explained), _LEAST_NOISE)
        return correlation.T @ self.weights, np.sqrt(self.variance * left)

    def slopes(self, point: Floats) -> tuple[float, float, Floats, Floats]:
        """Return mean and deviation at a `(f,)` point, and the gradients `(f,)` of both.

        Gradients are right for features that are an axis of their own.
        """
        away = self.scaled - point / self.lengths
        squares = away * away
        axes = int(self.owners[-1]) + 1
        if axes < len(self.owners):
            starts = np.unique(self.owners, return_index=True)[1]
            squares = np.add.reduceat(squares, starts, axis=1)
        joint, joint_steep = _KERNEL.correlation(squares.sum(axis=1))
        alone, alone_steep = _KERNEL.correlation(axes * squares)
        correlation = self.blend * alone.mean(axis=1) + (1.0 - self.blend) * joint
        steepness = (1.0 - self.blend) * joint_steep[:, None] + self.blend * alone_steep
        rise = steepness[:, self.owners] * away / self.lengths
        pull = self.precision @ correlation
        left = max(1.0 - float(correlation @ pull), _LEAST_NOISE)
        deviation = math.sqrt(self.variance * left)
        fall = -self.variance / deviation * (pull @ rise)
        return float(correlation @ self.weights), deviation, self.weights @ rise, fall


def blended_process(
    points: Floats, targets: Floats, owners: Ints, parameters: Floats
) -> BlendedProcess:
    """Return the belief after observations; arguments as in `fitted_parameters`."""
    axes = int(owners[-1]) + 1
    lengths = np.exp(parameters[:axes])[owners]
    blend = _share(float(parameters[-1]))
    scaled = points / lengths
    matrix = _correlation(scaled, scaled, owners, blend)
    factor = _factor(matrix, _LEAST_NOISE + math.exp(parameters[axes]))
    root = np.asarray(np.linalg.inv(factor), dtype=np.float64)
    precision = root.T @ root
    weights = precision @ targets
    variance = _variance(targets, weights)
    return BlendedProcess(owners, lengths, blend, scaled, weights, precision, root, variance)


def _correlation(left: Floats, right: Floats, owners: Ints, blend: float) -> Floats:
    """Return the correlations `(n, m)` of scaled points `(n, f)` and `(m, f)`."""
    axes = int(owners[-1]) + 1
    columns = [np.flatnonzero(owners == axis) for axis in range(axes)]
    found = np.empty((len(left), len(right)))
    for start in range(0, len(right), _BLOCK):
        part = slice(start, start + _BLOCK)
        block = right[part]
        together = np.zeros((len(left), len(block)))
        alone = np.zeros_like(together)
        for own in columns:
            squares = _gaps(left, block, own)
            together += squares
            squares *= axes
            alone += _value(squares)
        alone *= blend / axes
        joint = _value(together)
        joint *= 1.0 - blend
        found[:, part] = np.add(alone, joint, out=joint)
    return found


def _gaps(left: Floats, right: Floats, columns: Ints) -> Floats:
    squares: Floats = left[:, columns[0], None] - right[None, :, columns[0]]
    squares *= squares
    for column in columns[1:]:
        gaps = left[:, column, None] - right[None, :, column]
        gaps *= gaps
        squares += gaps
    return squares


def _value(squares: Floats) -> Floats:
    """Return correlations at squared distances, which are overwritten."""
    squares *= 5.0
    away = np.sqrt(squares)
    squares *= 1.0 / 3.0
    squares += away
    squares += 1.0
    np.negative(away, out=away)
    np.exp(away, out=away)
    squares *= away
    return squares


def _factor(correlation: Floats, noise: float) -> Floats:
    """Return the Cholesky factor, with more noise where rounding makes it necessary."""
    while True:
        matrix = correlation.copy()
        matrix[np.diag_indices(len(matrix))] = 1.0 + noise
        try:
            return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
        except np.linalg.LinAlgError:
            noise = 10.0 * noise  # a correlation matrix plus the identity can always be factorised
