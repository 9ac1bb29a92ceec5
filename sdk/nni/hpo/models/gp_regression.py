"""Gaussian process regression with a partly additive Matern kernel.

The kernel is a weighted sum: one correlation over all axes together, and the mean of correlations
of each axis alone. Effects of single axes are learnt from far fewer observations than interactions;
the weight of the two parts is a hyperparameter. Pure functions and frozen values.

Hyperparameters `(a + 2,)`: logarithms of the lengthscales of the axes, logarithm of the noise
variance (relative to the output scale), logit of the additive share.

Shapes: n observations, f features, a axes, m predictions.

Source: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1 and
section 5.4.1; Duvenaud, Nickisch and Rasmussen, Additive Gaussian Processes, NIPS 2011 (orders one
and d of their sum); prior: see `gp_prior`.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats, Ints
from nni.hpo.models.gp_algebra import GaussianPosterior, condition, negative_log_posterior
from nni.hpo.models.gp_prior import (
    HyperparameterPrior,
    initial_lengthscales_and_noise,
    lengthscale_and_noise_prior,
)
from nni.hpo.models.lbfgs import Differentiable, minimise
from nni.hpo.models.matern import Matern

_USUAL: Final = 2.5
"""Smoothness whose correlations are calculated in place, in half of the time."""
_LEAST_NOISE: Final = 1e-6
"""Variance added to the diagonal, so that the matrix can be factorised."""
_SHARE_MEAN: Final = 1.0
_SHARE_DEVIATION: Final = 2.0
_SHARE_BOUNDS: Final = (-7.0, 7.0)
"""Prior and bounds of the logit of the additive share: most effects are single ones."""
_FIT_TOLERANCE: Final = 1e-3
_BLOCK: Final = 128
"""Predictions whose correlations are calculated together, so that they stay in the cache."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """Partly additive Matern kernel, without its hyperparameters."""

    feature_axes: Ints
    """`(f,)`, the axis of each feature, ascending from 0; features of an axis share a
    lengthscale."""
    matern: Matern
    least_noise: float = 0.0
    """Least noise variance, relative to the output scale; `1e-6` is always added to it."""
    least_variance: float = 1e-6
    """Least variance of a prediction, relative to the output scale, > 0."""

    @property
    def axes(self) -> int:
        """Number of axes."""
        return int(self.feature_axes[-1]) + 1

    @property
    def hyperparameters(self) -> int:
        """Number of hyperparameters: a lengthscale per axis, noise and additive share."""
        return self.axes + 2


def initial_hyperparameters(axes: int) -> Floats:
    """Return where a fit starts: log lengthscales, log noise, logit of the share `(a + 2,)`."""
    return np.append(initial_lengthscales_and_noise(axes), _SHARE_MEAN)


def fit_hyperparameters(
    inputs: Floats, targets: Floats, kernel: Kernel, starts: list[Floats], *, evaluations: int
) -> Floats:
    """Return the hyperparameters `(a + 2,)` of greatest posterior density found from `starts`.

    Args:
        inputs: `(n, f)`.
        targets: `(n,)`, mean 0 and variance 1.
        kernel: of the process.
        starts: `(a + 2,)` each, where a search begins; the best end is returned.
        evaluations: of the density, per start.
    """
    objective, prior = fit_objective(inputs, targets, kernel), hyperparameter_prior(kernel.axes)
    ends = [
        minimise(objective, start, *prior.bounds, evaluations=evaluations, tolerance=_FIT_TOLERANCE)
        for start in starts
    ]
    return min(ends, key=lambda end: end[1])[0]


def hyperparameter_prior(axes: int) -> HyperparameterPrior:
    """Return the prior of the hyperparameters `(a + 2,)`."""
    return lengthscale_and_noise_prior(axes).with_parameter(
        _SHARE_MEAN, _SHARE_DEVIATION, _SHARE_BOUNDS
    )


def fit_objective(inputs: Floats, targets: Floats, kernel: Kernel) -> Differentiable:
    """Return the function that a fit minimises: negative log posterior of hyperparameters.

    The function maps `(a + 2,)` to its value and gradient `(a + 2,)`; infinite where the
    correlation matrix cannot be factorised. It reuses a buffer: not for several threads.

    Args:
        inputs: `(n, f)`.
        targets: `(n,)`, mean 0 and variance 1.
        kernel: of the process.
    """
    count = len(inputs)
    upper = np.triu_indices(count, 1)
    squares = _pairwise_squares(inputs, kernel.feature_axes, upper)
    axes, matern = len(squares), kernel.matern
    prior = hyperparameter_prior(axes)
    matrix = np.empty((count, count))
    diagonal = np.diag_indices(count)

    def objective(parameters: Floats) -> tuple[float, Floats]:
        scaled = squares * np.exp(-2.0 * parameters[:axes])[:, None]
        alone, alone_steepness = matern.correlation(axes * scaled)
        joint, joint_steepness = matern.correlation(scaled.sum(axis=0))
        share = _share(parameters[-1])
        additive = alone.mean(axis=0)
        correlation = share * additive + (1.0 - share) * joint
        noise = math.exp(parameters[axes])
        matrix[upper] = correlation
        matrix.T[upper] = correlation
        matrix[diagonal] = 1.0 + _LEAST_NOISE + kernel.least_noise + noise
        penalty, penalty_gradient = prior.penalty(parameters)
        found = negative_log_posterior(matrix, targets, penalty)
        if found is None:
            return math.inf, np.zeros_like(parameters)
        value, matrix_gradient = found
        # Off the diagonal everything counts twice, which the half of the formula takes away.
        pair_gradient = matrix_gradient[upper]
        gradient = np.empty_like(parameters)
        by_axis = (1.0 - share) * joint_steepness + share * alone_steepness
        gradient[:axes] = (scaled * by_axis) @ pair_gradient
        gradient[axes] = 0.5 * noise * float(np.trace(matrix_gradient))
        gradient[-1] = share * (1.0 - share) * float(pair_gradient @ (additive - joint))
        return value, gradient + penalty_gradient

    return objective


def _pairwise_squares(inputs: Floats, feature_axes: Ints, upper: tuple[Ints, Ints]) -> Floats:
    """Return the squared distances of pairs along each axis, `(a, n (n - 1) / 2)`."""
    squares: Floats = ((inputs[upper[0]] - inputs[upper[1]]) ** 2).T
    if feature_axes[-1] + 1 < len(feature_axes):
        squares = np.add.reduceat(squares, np.unique(feature_axes, return_index=True)[1], axis=0)
    return np.ascontiguousarray(squares)


def _share(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-logit))


@dataclass(frozen=True, slots=True)
class GPPosterior:
    """Posterior of a Gaussian process: mean, standard deviation, and the gradients of both.

    `gp_posterior` creates it, conditioned on the observations.
    """

    gaussian: GaussianPosterior
    kernel: Kernel
    lengthscales: Floats
    """`(f,)`"""
    additive_share: float
    """Share of the output scale that single axes have, in (0, 1)."""
    scaled_inputs: Floats
    """`(n, f)`, observed inputs divided by the lengthscales."""

    def predict(self, inputs: Floats) -> tuple[Floats, Floats]:
        """Return means and standard deviations `(m,)` at `(m, f)` inputs, free of noise."""
        correlation = _correlation(
            self.scaled_inputs, inputs / self.lengthscales, self.kernel, self.additive_share
        )
        return self.gaussian.predict(correlation)

    def predict_with_gradient(self, features: Floats) -> tuple[float, float, Floats, Floats]:
        """Return mean and standard deviation at one input `(f,)`, and both gradients `(f,)`.

        Gradients are right for features that are an axis of their own.
        """
        away = self.scaled_inputs - features / self.lengthscales
        squares = away * away
        feature_axes, axes = self.kernel.feature_axes, self.kernel.axes
        share, matern = self.additive_share, self.kernel.matern
        if axes < len(feature_axes):
            starts = np.unique(feature_axes, return_index=True)[1]
            squares = np.add.reduceat(squares, starts, axis=1)
        joint, joint_steepness = matern.correlation(squares.sum(axis=1))
        alone, alone_steepness = matern.correlation(axes * squares)
        correlation = share * alone.mean(axis=1) + (1.0 - share) * joint
        steepness = (1.0 - share) * joint_steepness[:, None] + share * alone_steepness
        # dk/dx = -k'(r)/r * (X - x) / lengthscale^2
        gradient = steepness[:, feature_axes] * away / self.lengthscales
        return self.gaussian.predict_with_gradient(correlation, gradient)


def gp_posterior(
    inputs: Floats, targets: Floats, kernel: Kernel, parameters: Floats
) -> GPPosterior:
    """Condition a Gaussian process of given hyperparameters on observations; return the posterior.

    Args:
        inputs: `(n, f)`.
        targets: `(n,)`, mean 0 and variance 1.
        kernel: of the process.
        parameters: `(a + 2,)`, hyperparameters.
    """
    axes = kernel.axes
    lengthscales = np.exp(parameters[:axes])[kernel.feature_axes]
    share = _share(float(parameters[-1]))
    scaled = inputs / lengthscales
    correlation = _correlation(scaled, scaled, kernel, share)
    noise = _LEAST_NOISE + kernel.least_noise + math.exp(parameters[axes])
    gaussian = condition(correlation, noise, targets, kernel.least_variance)
    return GPPosterior(gaussian, kernel, lengthscales, share, scaled)


def correlations(left: Floats, right: Floats, kernel: Kernel, parameters: Floats) -> Floats:
    """Return the correlations `(n, m)` of a process at inputs `(n, f)` and `(m, f)`.

    Args:
        left: `(n, f)`.
        right: `(m, f)`.
        kernel: of the process.
        parameters: `(a + 2,)`, hyperparameters; the noise is not used.
    """
    lengthscales = np.exp(parameters[: kernel.axes])[kernel.feature_axes]
    return _correlation(
        left / lengthscales, right / lengthscales, kernel, _share(float(parameters[-1]))
    )


def _correlation(left: Floats, right: Floats, kernel: Kernel, share: float) -> Floats:
    """Return the correlations `(n, m)` of scaled inputs `(n, f)` and `(m, f)`."""
    axes = kernel.axes
    columns = [np.flatnonzero(kernel.feature_axes == axis) for axis in range(axes)]
    found = np.empty((len(left), len(right)))
    for start in range(0, len(right), _BLOCK):
        part = slice(start, start + _BLOCK)
        block = right[part]
        together = np.zeros((len(left), len(block)))
        alone = np.zeros_like(together)
        for own in columns:
            squares = _squares(left, block, own)
            together += squares
            squares *= axes
            alone += _matern(squares, kernel.matern)
        alone *= share / axes
        joint = _matern(together, kernel.matern)
        joint *= 1.0 - share
        found[:, part] = np.add(alone, joint, out=joint)
    return found


def _squares(left: Floats, right: Floats, columns: Ints) -> Floats:
    """Return squared distances `(n, m)` of rows of two arrays, summed over some columns."""
    squares: Floats = left[:, columns[0], None] - right[None, :, columns[0]]
    squares *= squares
    for column in columns[1:]:
        gaps = left[:, column, None] - right[None, :, column]
        gaps *= gaps
        squares += gaps
    return squares


def _matern(squares: Floats, matern: Matern) -> Floats:
    """Return correlations at squared distances, whose array may be overwritten."""
    if matern.nu != _USUAL:
        return matern.correlation(squares)[0]
    squares *= 5.0
    away = np.sqrt(squares)
    squares *= 1.0 / 3.0
    squares += away
    squares += 1.0
    np.negative(away, out=away)
    np.exp(away, out=away)
    squares *= away
    return squares
