"""Probability that a trial succeeds, learnt from where trials succeeded and where they failed.

The success of a trial, 1 or 0, is the target of a Gaussian process whose noise is fitted: failures
that depend on the configuration make a surface, failures that come at random make noise. How far
the surface is trusted is a matter of evidence: the probability is a mean of that of the process and
of the share of successes, weighted by how well each predicts every trial from all others. So
failures that are independent of the configuration do not move the search.

Shapes: n trials, f features, m predictions.

Source: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, section 6.5
(classification by regression on labels), equations 5.12 (leave one out); Gelbart, Snoek and Adams,
Bayesian Optimization with Unknown Constraints, UAI 2014, section 3 (the use of the probability).
"""

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nni.hpo.arrays import Bools, Floats, Ints
from nni.hpo.models.gp_regression import (
    GPPosterior,
    Kernel,
    gp_posterior,
)
from nni.hpo.models.matern import Matern
from nni.hpo.models.normal_distribution import (
    approximate_normal_cdf,
    log_normal_cdf,
    log_normal_density,
)
from nni.hpo.models.targets import standardised

_SMOOTHNESS: Final = Matern.of(0.5)
_NEWEST: Final = 150
"""Newest successes that are modelled, and as many failures."""
_NEWEST_FITTED: Final = 40
"""The same for the fit of the hyperparameters."""
_FIRST: Final = 4
_GROWTH: Final = 1.1
"""Trials before the first fit, and by which factor they grow until the next one."""
_LENGTHSCALES: Final = (0.15, 0.4, 1.0, 3.0, 10.0)
"""Lengthscales of an axis; that of no influence is the last."""
_USUAL_LENGTHSCALE: Final = 1
_NOISES: Final = (0.01, 0.1, 0.5)
"""Variances of a label around the surface, relative to that of the surface."""
_USUAL_NOISE: Final = 1
_SHARES: Final = (-4.0, 1.0)
"""Logits of the share of single axes in the surface: next to none, or most."""
_MOST_AXES: Final = 20
"""Axes of which each has a lengthscale of its own; of more all have the same, since the cost of a
search grows with the square of their number: 100 took 10 seconds."""
_SWEEPS: Final = 2
_STEP_PENALTY: Final = 1.0
"""Log likelihood that each step away from the usual hyperparameters has to gain."""
_LEAST_LIKELIHOOD: Final = 0.01
"""Least probability of an outcome: a single surprise does not refute the surface."""
SAFE: Final = 0.9
"""Share of the greatest probability of success from which a candidate is safe enough ..."""
_CAUTION: Final = 1000.0
"""... and by how much its log weight falls per log probability below that, beside the 1 of the
probability itself: as good as a constraint. Where the optimum lies at the border of a failing
region, an acquisition falls by many orders of magnitude on the side that is known, and a mere
factor would not be regarded."""
_DOUBT: Final = 4.0
"""Log odds against the surface before any trial; its fit is to the trials that it predicts."""


@dataclass(frozen=True, slots=True)
class Feasibility:
    """Probability of success over features, a mixture of a surface and a constant."""

    posterior: GPPosterior
    """Of the labels, standardised."""
    threshold: float
    """Standardised label halfway between failure and success."""
    noise: float
    """Variance of a label around the surface."""
    log_surface: float
    """Logarithm of the weight of the surface."""
    log_constant: float
    """Logarithm of the weight of the constant times the constant, the share of successes."""
    log_safe: float = -math.inf
    """Log probability below which a candidate is not safe."""

    def log_weight(self, features: Floats) -> Floats:
        """Return log weights `(m,)` at `(m, f)`: log success probability, lowered below a safe one.

        The weight is the probability of success, and falls steeply below a safe one.
        """
        chances = self.log_probability(features)
        found: Floats = chances - _CAUTION * np.maximum(self.log_safe - chances, 0.0)
        return found

    def log_weight_and_gradient(self, features: Floats) -> tuple[float, Floats]:
        """Return the log weight of one candidate `(f,)`, and its gradient `(f,)`."""
        chance, gradient = self.log_probability_and_gradient(features)
        lacking = self.log_safe - chance
        if lacking <= 0:
            return chance, gradient
        return chance - _CAUTION * lacking, (1.0 + _CAUTION) * gradient

    def log_probability(self, features: Floats) -> Floats:
        """Return the logarithms `(m,)` of the probabilities of success at `(m, f)` features."""
        means, deviations = self.posterior.predict(features)
        z = (means - self.threshold) / np.sqrt(deviations**2 + self.noise)
        found: Floats = np.logaddexp(self.log_surface + log_normal_cdf(z), self.log_constant)
        return found

    def log_probability_and_gradient(self, features: Floats) -> tuple[float, Floats]:
        """Return the logarithm of the probability at one point `(f,)`, and its gradient `(f,)`."""
        mean, deviation, mean_gradient, deviation_gradient = self.posterior.predict_with_gradient(
            features
        )
        variance = deviation**2 + self.noise
        z = np.array([(mean - self.threshold) / math.sqrt(variance)])
        value = float(
            np.logaddexp(self.log_surface + float(log_normal_cdf(z)[0]), self.log_constant)
        )
        # d log p / dz = weight * phi(z) / p
        by_z = math.exp(self.log_surface + float(log_normal_density(z)[0]) - value)
        z_gradient = mean_gradient / math.sqrt(variance)
        z_gradient = z_gradient - float(z[0]) * deviation / variance * deviation_gradient
        return value, by_z * z_gradient


class FeasibilityModel:
    """Estimator of a trial's probability of success by its features; None until one has failed.

    It has no state to save: all of it follows from the trials, which may only grow.

    Args:
        feature_axes: `(f,)`, the axis of each feature, ascending from 0.
        safe: share of the greatest probability from which a candidate is safe enough.
    """

    def __init__(self, feature_axes: Ints, safe: float = SAFE) -> None:
        self._safe = safe
        self._kernel: Kernel | None = None
        if len(feature_axes):
            self._kernel = Kernel(feature_axes, _SMOOTHNESS)
        self._known = 0
        self._fitted = 0
        self._parameters: Floats | None = None
        self._feasibility: Feasibility | None = None

    def update(self, features: Floats, succeeded: Bools) -> Feasibility | None:
        """Refit after new trials; return the probability of success, None if nothing is known.

        That is while all have ended alike, or failures seem to be independent of the features.

        Args:
            features: `(n, f)`, of all trials in their order.
            succeeded: `(n,)`, whether each has a result.
        """
        if self._kernel is None or succeeded.all() or not succeeded.any():
            return None
        if len(features) != self._known:
            parameters = self._hyperparameters(self._kernel, features, succeeded)
            kept = _newest_of_both(succeeded, _NEWEST)
            self._feasibility = _feasibility(
                features[kept], succeeded[kept], self._kernel, parameters, self._safe
            )
            self._known = len(features)
        return self._feasibility

    def _hyperparameters(self, kernel: Kernel, features: Floats, succeeded: Bools) -> Floats:
        """Return hyperparameters fitted to the first trials; refit as their number grows enough."""
        count = _fitted_count(len(features))
        if self._parameters is None or count != self._fitted:
            self._fitted = count
            labels = succeeded[:count]
            kept = _newest_of_both(labels, _NEWEST_FITTED)
            self._parameters = _likeliest(features[kept], labels[kept], kernel)
        return self._parameters


def _feasibility(
    features: Floats, succeeded: Bools, kernel: Kernel, parameters: Floats, safe: float
) -> Feasibility | None:
    """Return the mixture of process and share of successes; None if evidence is against it.

    None while the evidence is against the process.
    """
    posterior, evidence = _evidence(features, succeeded, kernel, parameters)
    share = float(succeeded.mean())
    odds = evidence - _constant_evidence(succeeded) - _DOUBT
    if odds < 0:
        return None
    found = Feasibility(
        posterior,
        _threshold(share),
        noise=posterior.gaussian.output_scale * math.exp(parameters[kernel.axes]),
        log_surface=-float(np.logaddexp(0.0, -odds)),
        log_constant=-float(np.logaddexp(0.0, odds)) + math.log(share),
    )
    greatest = float(found.log_probability(features).max())
    return replace(found, log_safe=greatest + math.log(safe))


def _threshold(share: float) -> float:
    """Return the label halfway between failure and success on the scale of standardised ones."""
    return (0.5 - share) / math.sqrt(share * (1.0 - share))


def _evidence(
    features: Floats, succeeded: Bools, kernel: Kernel, parameters: Floats
) -> tuple[GPPosterior, float]:
    """Return the process, and the summed log likelihood of outcomes predicted from the others."""
    labels = standardised(succeeded.astype(np.float64))
    posterior = gp_posterior(features, labels, kernel, parameters)
    means, deviations = posterior.gaussian.leave_one_out(labels)
    signs = np.where(succeeded, 1.0, -1.0)
    z = signs * (means - _threshold(float(succeeded.mean()))) / deviations
    likelihoods = np.maximum(approximate_normal_cdf(z), _LEAST_LIKELIHOOD)
    return posterior, float(np.log(likelihoods).sum())


def _likeliest(features: Floats, succeeded: Bools, kernel: Kernel) -> Floats:
    """Return hyperparameters `(a + 2,)`, of a grid, by which trials predict each other best.

    A coordinate search over a few values of each; one gradient of a likelihood is no guide, as a
    step has no slope, and lengthscales far below the distances of trials would fit any labels.
    """
    axes = kernel.axes
    values = [np.log(_LENGTHSCALES)] * axes + [np.log(_NOISES), np.array(_SHARES)]
    usual = [_USUAL_LENGTHSCALE] * axes + [_USUAL_NOISE, 0]
    if succeeded.all() or not succeeded.any():
        return _chosen(values, usual)

    def merit(places: list[int]) -> float:
        steps = sum(abs(place - other) for place, other in zip(places, usual, strict=True))
        _, evidence = _evidence(features, succeeded, kernel, _chosen(values, places))
        return evidence - _STEP_PENALTY * steps

    starts = [[place] * axes + usual[axes:] for place in range(3)]
    merits = [merit(start) for start in starts]
    best = int(np.argmax(merits))
    places, greatest = starts[best], merits[best]
    last = 0 if axes <= _MOST_AXES else axes
    for index in [*range(axes + 1, last - 1, -1)] * _SWEEPS:
        for place in (places[index] - 1, places[index] + 1):
            if not 0 <= place < len(values[index]):
                continue
            moved = [*places[:index], place, *places[index + 1 :]]
            found = merit(moved)
            if found > greatest:
                places, greatest = moved, found
    return _chosen(values, places)


def _chosen(values: list[Floats], places: list[int]) -> Floats:
    """Return the value of each hyperparameter at its place `(a + 2,)`."""
    return np.array([own[place] for own, place in zip(values, places, strict=True)])


def _constant_evidence(succeeded: Bools) -> float:
    """Return the summed log likelihood of outcomes, each by its kind's share among the others."""
    others = len(succeeded) - 1
    total = 0.0
    for kind in (int(succeeded.sum()), int((~succeeded).sum())):
        # Half a trial of each kind is added, so that the only one of its kind is not impossible.
        total += kind * math.log((kind - 1 + 0.5) / (others + 1.0))
    return total


def _newest_of_both(succeeded: Bools, limit: int) -> Ints:
    """Return the positions of the newest successes and failures, `limit` of each, in order."""
    kept: Ints = np.sort(
        np.concatenate([np.flatnonzero(succeeded)[-limit:], np.flatnonzero(~succeeded)[-limit:]])
    )
    return kept


def _fitted_count(count: int) -> int:
    """Return the largest size of a fit, up to `count`, in a growing series; 0 before the first."""
    fitted, following = 0, _FIRST
    while following <= count:
        fitted, following = following, int(following * _GROWTH) + 1
    return fitted
