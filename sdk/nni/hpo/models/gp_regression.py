"""Gaussian process regression whose correlation is a blend: all axes together, and each alone.

What is due to single axes is learnt from far fewer observations than what is due to their
interplay; how much of either there is, is learnt with the lengths. Pure functions and frozen
values: n observations, f features, a axes, m points to predict.

Source: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1 and
section 5.4.1; Duvenaud, Nickisch and Rasmussen, Additive Gaussian Processes, NIPS 2011 (orders one
and d of their sum); prior: see `gp_prior`.
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

_USUAL: Final = 2.5
"""Smoothness whose correlations are calculated in place, in half of the time."""
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
    return np.append(first_lengths_and_noise(axes), _BLEND_CENTRE)


@dataclass(frozen=True, slots=True)
class Blend:
    """What a blended process is made of, whatever the observations are."""

    owners: Ints
    """`(f,)`, the axis of each feature, ascending from 0."""
    kernel: Matern
    alpha: float = 0.0
    """Least noise, relative to the variance of the process; a little is there anyway."""

    @property
    def axes(self) -> int:
        """How many axes there are."""
        return int(self.owners[-1]) + 1


def fitted_parameters(
    points: Floats, targets: Floats, blend: Blend, starts: list[Floats], *, evaluations: int
) -> Floats:
    """Return the most plausible parameters `(a + 2,)`.

    Args:
        points: `(n, f)`.
        targets: `(n,)`, mean 0 and variance 1.
        blend: what the process is made of.
        starts: where to begin; the best end is taken.
        evaluations: of the posterior, per start.
    """
    count = len(points)
    upper = np.triu_indices(count, 1)
    squares = _squares(points, blend.owners, upper)
    axes, kernel = len(squares), blend.kernel
    prior = lengths_and_noise_prior(axes).joined_by(_BLEND_CENTRE, _BLEND_SPREAD, _BLEND_BOUNDS)
    matrix = np.empty((count, count))
    diagonal = np.diag_indices(count)

    def negative_log_posterior(parameters: Floats) -> tuple[float, Floats]:
        scaled = squares * np.exp(-2.0 * parameters[:axes])[:, None]
        alone, alone_steep = kernel.correlation(axes * scaled)
        joint, joint_steep = kernel.correlation(scaled.sum(axis=0))
        share = _share(parameters[-1])
        single = alone.mean(axis=0)
        correlation = share * single + (1.0 - share) * joint
        noise = math.exp(parameters[axes])
        matrix[upper] = correlation
        matrix.T[upper] = correlation
        matrix[diagonal] = 1.0 + _LEAST_NOISE + blend.alpha + noise
        penalty, penalty_gradient = prior.penalty(parameters)
        found = implausibility(matrix, targets, penalty)
        if found is None:
            return math.inf, np.zeros_like(parameters)
        value, gap = found
        # Off the diagonal everything counts twice, which the half of the formula takes away.
        pull = gap[upper]
        gradient = np.empty_like(parameters)
        by_axis = (1.0 - share) * joint_steep + share * alone_steep
        gradient[:axes] = (scaled * by_axis) @ pull
        gradient[axes] = 0.5 * noise * float(np.trace(gap))
        gradient[-1] = share * (1.0 - share) * float(pull @ (single - joint))
        return value, gradient + penalty_gradient

    ends = [
        minimise(
            negative_log_posterior, start, *prior.bounds, evaluations=evaluations, tolerance=1e-3
        )
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


@dataclass(frozen=True, slots=True)
class BlendedProcess(Conditioned):
    """What is believed about the function after observations."""

    least_noise: ClassVar[float] = _LEAST_NOISE

    blend: Blend
    lengths: Floats
    """`(f,)`"""
    share: float
    """The part of the variance that axes have alone."""
    scaled: Floats
    """`(n, f)`, observed points divided by the lengths."""

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Return means and standard deviations `(m,)` of the function at `(m, f)` points."""
        correlation = _correlation(self.scaled, points / self.lengths, self.blend, self.share)
        return self._prediction(correlation)

    def slopes(self, point: Floats) -> tuple[float, float, Floats, Floats]:
        """Return mean and deviation at a `(f,)` point, and the gradients `(f,)` of both.

        Gradients are right for features that are an axis of their own.
        """
        away = self.scaled - point / self.lengths
        squares = away * away
        owners, axes, share = self.blend.owners, self.blend.axes, self.share
        if axes < len(owners):
            starts = np.unique(owners, return_index=True)[1]
            squares = np.add.reduceat(squares, starts, axis=1)
        joint, joint_steep = self.blend.kernel.correlation(squares.sum(axis=1))
        alone, alone_steep = self.blend.kernel.correlation(axes * squares)
        correlation = share * alone.mean(axis=1) + (1.0 - share) * joint
        steepness = (1.0 - share) * joint_steep[:, None] + share * alone_steep
        rise = steepness[:, owners] * away / self.lengths
        return self._slopes(correlation, rise)


def blended_process(
    points: Floats, targets: Floats, blend: Blend, parameters: Floats
) -> BlendedProcess:
    """Return the belief after observations; arguments as in `fitted_parameters`."""
    axes = blend.axes
    lengths = np.exp(parameters[:axes])[blend.owners]
    share = _share(float(parameters[-1]))
    scaled = points / lengths
    matrix = _correlation(scaled, scaled, blend, share)
    noise = _LEAST_NOISE + blend.alpha + math.exp(parameters[axes])
    weights, precision, root, variance = conditioned(matrix, noise, targets)
    return BlendedProcess(weights, precision, root, variance, blend, lengths, share, scaled)


def _correlation(left: Floats, right: Floats, blend: Blend, share: float) -> Floats:
    """Return the correlations `(n, m)` of scaled points `(n, f)` and `(m, f)`."""
    axes = blend.axes
    columns = [np.flatnonzero(blend.owners == axis) for axis in range(axes)]
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
            alone += _value(squares, blend.kernel)
        alone *= share / axes
        joint = _value(together, blend.kernel)
        joint *= 1.0 - share
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


def _value(squares: Floats, kernel: Matern) -> Floats:
    """Return correlations at squared distances, which are overwritten."""
    if kernel.nu != _USUAL:
        return kernel.correlation(squares)[0]
    squares *= 5.0
    away = np.sqrt(squares)
    squares *= 1.0 / 3.0
    squares += away
    squares += 1.0
    np.negative(away, out=away)
    np.exp(away, out=away)
    squares *= away
    return squares
