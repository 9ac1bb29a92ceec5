"""Learning-curve extrapolation: a weighted sum of fitted families of curves.

Source: Domhan, Springenberg and Hutter, IJCAI 2015, sections 3.1 to 3.3.

Departures: the parameters of each family stay at their least-squares fit; only weights and noise
are sampled. Weights are not negative and sum to 1.
"""

from typing import Final

import numpy as np

from nni.hpo.arrays import Bools, Floats
from nni.hpo.assessors._curve_families import FAMILIES, Family

_ITERATIONS: Final = 60
_FIRST_DAMPING: Final = 1e-2
_DAMPING_LIMIT: Final = 1e10
_STEP: Final = 1e-6  # relative, of the numeric derivative
_ENOUGH: Final = 1e-10  # relative gain below which a fit has converged

_LEAST_FAMILIES: Final = 3
"""Least number of fitted families for a prediction."""

_OUTLIER: Final = 3.0
"""Median deviations from the median beyond which a prediction with a bad fit is an outlier."""

_WALKERS: Final = 32
_STEPS: Final = 300
_BURN_IN: Final = 100
_JUMP: Final = 0.3
"""Standard deviation of an MCMC step, in logarithms of weights and noise."""

_LEAST_NOISE: Final = 1e-3
"""Least standard deviation of the noise; the curve's scale is 1."""


def predict(curve: Floats, at: int, seed: int) -> float | None:
    """Return the value expected at `at`: a weighted mean of fitted families; None if too few fit.

    Args:
        curve: `(n,)` values at x = 1, ..., n; NaN where there is none, finite ones otherwise.
        at: x of the prediction, >= 1.
        seed: of the sampling.

    Returns:
        The prediction, or None if too few families could be fitted.
    """
    known = np.isfinite(curve)
    x, y = np.flatnonzero(known).astype(np.float64) + 1.0, curve[known]
    scale = float(np.abs(y).max()) or 1.0
    fits, predictions = _fitted(x, y / scale, float(at))
    if len(predictions) < _LEAST_FAMILIES:
        return None
    weights = sample_weights(fits, y / scale, np.random.default_rng(seed))
    return float(weights @ predictions) * scale


def _fitted(x: Floats, y: Floats, at: float) -> tuple[Floats, Floats]:
    """Fit all families; return values and predictions of those that converge, less outliers."""
    fits: list[Floats] = []
    predictions: list[float] = []
    with np.errstate(all="ignore"):  # outside of a formula's range is NaN, which is looked at
        for family in FAMILIES:
            theta = fit(family, x, y)
            if theta is None:
                continue
            later = float(family.curve(np.array([at]), *theta)[0])
            if np.isfinite(later):
                fits.append(family.curve(x, *theta))
                predictions.append(later)
    values, later_values = np.array(fits), np.array(predictions)
    if not fits:
        return values, later_values
    kept = ~outliers(((values - y) ** 2).mean(axis=1), later_values)
    return values[kept], later_values[kept]


def outliers(errors: Floats, predictions: Floats) -> Bools:
    """Return a mask of outliers: predictions far from the median whose fit is worse than most.

    Args:
        errors: `(k,)` mean squared errors of the fits.
        predictions: `(k,)`.

    Returns:
        `(k,)`, bool.
    """
    distance = np.abs(predictions - np.median(predictions))
    far: Bools = (distance > _OUTLIER * np.median(distance)) & (errors > np.median(errors))
    return far


def fit(family: Family, x: Floats, y: Floats) -> Floats | None:
    """Return least-squares parameters by Levenberg-Marquardt; None if the first guess is unusable.

    Source: Marquardt, An Algorithm for Least-Squares Estimation of Nonlinear Parameters, 1963.
    """
    theta = family.guess(x, y) if np.isfinite(y).all() else np.array([np.nan])
    if not np.isfinite(theta).all():
        return None
    residual = family.curve(x, *theta) - y
    cost = float(residual @ residual)
    if not np.isfinite(cost):
        return None
    damping = _FIRST_DAMPING
    for _ in range(_ITERATIONS):
        gradient = _jacobian(family, x, theta)
        if not np.isfinite(gradient).all():
            break
        normal, pull = gradient.T @ gradient, gradient.T @ residual
        floor = 1e-12 * float(np.trace(normal)) + 1e-300
        step = np.linalg.solve(normal + np.diag(damping * np.diag(normal) + floor), pull)
        moved = family.curve(x, *(theta - step)) - y
        moved_cost = float(moved @ moved)
        if moved_cost < cost:
            gain = cost - moved_cost
            theta, residual, cost = theta - step, moved, moved_cost
            damping /= 10
            if gain < _ENOUGH * cost:
                break
        else:
            damping *= 10
            if damping > _DAMPING_LIMIT:
                break
    return theta


def _jacobian(family: Family, x: Floats, theta: Floats) -> Floats:
    """Return the derivatives of the curve by its parameters, `(n, p)`, by central differences."""
    columns: list[Floats] = []
    for index in range(len(theta)):
        step = _STEP * max(abs(float(theta[index])), 1.0)
        up, down = theta.copy(), theta.copy()
        up[index] += step
        down[index] -= step
        columns.append((family.curve(x, *up) - family.curve(x, *down)) / (2 * step))
    return np.column_stack(columns)


def sample_weights(fits: Floats, y: Floats, rng: np.random.Generator) -> Floats:
    """Return posterior mean weights of families `(k,)`, by Metropolis sampling with unknown noise.

    Metropolis sampling of weights (uniform over the simplex a priori) and noise, by several walkers
    at once. They start at weights that favour good fits, and at the most likely noise there.

    Args:
        fits: `(k, n)` values of the families.
        y: `(n,)` data.
        rng: of the walkers.

    Returns:
        `(k,)`, >= 0, with the sum 1.
    """
    count = len(fits)
    errors = ((fits - y) ** 2).mean(axis=1) + _LEAST_NOISE**2
    start = np.append(-np.log(errors), 0.0)
    noise = np.sqrt(((_softmax(start[None, :-1])[0] @ fits - y) ** 2).mean())
    start[-1] = np.log(max(float(noise), _LEAST_NOISE))
    walkers = start + 0.1 * rng.standard_normal((_WALKERS, count + 1))
    walkers[:, -1] = np.maximum(walkers[:, -1], np.log(_LEAST_NOISE))
    score = _log_posterior(walkers, fits, y)
    total = np.zeros(count)
    for step in range(_STEPS):
        moved = walkers + _JUMP * rng.standard_normal(walkers.shape)
        moved_score = _log_posterior(moved, fits, y)
        accepted = np.log(rng.random(_WALKERS)) < moved_score - score
        walkers = np.where(accepted[:, None], moved, walkers)
        score = np.where(accepted, moved_score, score)
        if step >= _BURN_IN:
            total += _softmax(walkers[:, :-1]).sum(axis=0)
    weights: Floats = total / total.sum()
    return weights


def _log_posterior(walkers: Floats, fits: Floats, y: Floats) -> Floats:
    """Return the log posterior of walkers `(m, k + 1)` up to a constant, `(m,)`."""
    weights = _softmax(walkers[:, :-1])
    log_noise = walkers[:, -1]
    misses = ((weights @ fits - y) ** 2).sum(axis=1)
    likelihood = -0.5 * misses * np.exp(-2 * log_noise) - len(y) * log_noise
    # Uniform over the simplex is the product of the weights in terms of their logarithms; the
    # scale of these is free, so a weak bell keeps walkers from drifting off.
    prior = np.log(weights + 1e-300).sum(axis=1) - 0.5 * (walkers[:, :-1].mean(axis=1) / 10) ** 2
    posterior: Floats = likelihood + prior
    return np.where(log_noise < np.log(_LEAST_NOISE), -np.inf, posterior)


def _softmax(logits: Floats) -> Floats:
    """Return the softmax of each row of `(m, k)` logits."""
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    weights: Floats = exponentials / exponentials.sum(axis=1, keepdims=True)
    return weights
