"""Gaussian processes of several outcomes, and the acquisition function that they make.

Every outcome, a loss or one with a limit, has a process of its own. The acquisition function is the
logarithm of the expected hypervolume improvement of the losses plus that of the probability that
all limits are kept; while no result keeps them, of the probability alone.

Shapes: n results, k losses, r running trials, d axes, f features.

Source: Gardner et al., Bayesian Optimization with Inequality Constraints, ICML 2014, section 3.1
(the probability as a factor); see `hypervolume_improvement` for the volume.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.arrays import Bools, Floats, Ints
from nni.hpo.encoding.encoded_space import EncodedSpace
from nni.hpo.json_value import JsonValue
from nni.hpo.models.gp_model import MOST_MODELLED, FittedGP, GPModel
from nni.hpo.models.gp_regression import GPPosterior, Kernel
from nni.hpo.models.matern import Matern
from nni.hpo.models.subsets import covering_subset
from nni.hpo.models.targets import damped, standardised
from nni.hpo.tuners.bayesian.acquisition import probability_of_improvement
from nni.hpo.tuners.bayesian.hypervolume_improvement import (
    Boxes,
    hypervolume_improvement_derivatives,
    log_hypervolume_improvement,
    non_dominated_boxes,
)

NOTABLE_NOISE: Final = 1e-3
"""Noise variance, relative to the output scale, from which predictions replace single results."""
_LEAST_VARIANCE: Final = 1e-8
"""Floor of the variance of predictions: a greater one makes hypervolumes of dense fronts coarse."""
_BEYOND_WORST: Final = 0.1
"""Distance of the reference beyond the worst known losses, relative to their ranges. The worst
losses of the front are no bound: the ends of the front would never be found."""
_WITHIN: Final = 0.5
"""Distance within a limit that a result counts with which keeps it barely, or has an unknown
one."""

_log_feasibility = probability_of_improvement(0.0)


@dataclass(frozen=True, slots=True)
class LimitPosterior:
    """Posterior of an outcome that has a limit."""

    posterior: GPPosterior
    threshold: float
    """The limit, on the model's scale."""


@dataclass(frozen=True, slots=True)
class OutcomeAcquisition:
    """Acquisition function of several outcomes; implements `Acquisition`."""

    space: EncodedSpace
    losses: tuple[GPPosterior, ...]
    boxes: Boxes | None
    """The non-dominated region; None while no result keeps all limits."""
    limits: tuple[LimitPosterior, ...]

    def values(self, vectors: Floats) -> Floats:
        """Return log expected hypervolume improvement plus log chance to keep the limits."""
        features = self.space.features(vectors)
        total = np.zeros(len(vectors))
        if self.boxes is not None:
            predictions = [posterior.predict(features) for posterior in self.losses]
            means = np.stack([mean for mean, _ in predictions], axis=1)
            deviations = np.stack([deviation for _, deviation in predictions], axis=1)
            total += log_hypervolume_improvement(means, deviations, self.boxes)
        for limit in self.limits:
            total += _log_feasibility(*limit.posterior.predict(features), limit.threshold)[0]
        return total

    def value_and_gradient(self, features: Floats) -> tuple[float, Floats]:
        """Return the acquisition at features `(f,)`, and its gradient `(f,)`."""
        total, gradient = 0.0, np.zeros_like(features)
        if self.boxes is not None:
            means, deviations, mean_gradients, deviation_gradients = zip(
                *(posterior.predict_with_gradient(features) for posterior in self.losses),
                strict=True,
            )
            total, by_mean, by_deviation = hypervolume_improvement_derivatives(
                np.array(means), np.array(deviations), self.boxes
            )
            gradient = by_mean @ np.array(mean_gradients)
            gradient += by_deviation @ np.array(deviation_gradients)
        for limit in self.limits:
            mean, deviation, mean_gradient, deviation_gradient = (
                limit.posterior.predict_with_gradient(features)
            )
            value, limit_by_mean, limit_by_deviation = _log_feasibility(
                np.array([mean]), np.array([deviation]), limit.threshold
            )
            total += float(value[0])
            gradient = gradient + limit_by_mean[0] * mean_gradient
            gradient = gradient + limit_by_deviation[0] * deviation_gradient
        return total, gradient


@dataclass(frozen=True, slots=True)
class OutcomeFit:
    """Acquisition function, with the positions of good results and of modelled ones."""

    acquisition: OutcomeAcquisition
    good: Ints
    """Positions of the results on the front, or of those that break the limits least."""
    modelled: int
    """Results that the posteriors are conditioned on."""


class OutcomeModels:
    """Gaussian process models of all outcomes: of losses, and of excesses over limits.

    Args:
        losses: number of outcomes to minimise, >= 1; the others have the limit 0.
        outcomes: number of all outcomes.
        matern: correlation of each process.
        least_noise: variance, relative to the output scale.
        space: of the results.
    """

    def __init__(
        self,
        losses: int,
        outcomes: int,
        matern: Matern,
        least_noise: float,
        space: EncodedSpace,
    ) -> None:
        self._losses = losses
        self._space = space
        self._models = [
            GPModel(Kernel(space.feature_axes, matern, least_noise, _LEAST_VARIANCE))
            for _ in range(outcomes)
        ]

    def update(self, vectors: Floats, outcomes: Floats, running: Floats) -> OutcomeFit:
        """Fit a GP to each outcome, and return the acquisition over the current front.

        Args:
            vectors: `(n, d)`, n >= 1.
            outcomes: `(n, o)`; losses, then by how much each limit is exceeded.
            running: `(r, d)`, vectors that count as if they had come out as predicted.
        """
        losses, excess = outcomes[:, : self._losses], outcomes[:, self._losses :]
        within: Bools = np.all(excess <= 0, axis=1)
        ranking = _ranking(losses, excess, within)
        features, pending = self._space.features(vectors), self._space.features(running)
        kept = covering_subset(features, ranking, MOST_MODELLED)
        inputs = features[kept]
        fits = [
            model.update(inputs, standardised(damped(column)[kept]), kept, len(vectors))
            for model, column in zip(self._models, losses.T, strict=False)
        ]
        posteriors = [
            model.with_pending(fitted, pending)
            for model, fitted in zip(self._models, fits, strict=False)
        ]
        limits = self._limits(inputs, excess[kept], kept, len(vectors), pending)
        boxes = None
        if within.any():
            known = np.stack(
                [self._denoised(index, fitted) for index, fitted in enumerate(fits)], axis=1
            )[within[kept]]
            boxes = _boxes(known, _expected(posteriors, limits, pending))
        good = np.flatnonzero(ranking == ranking.min())
        acquisition = OutcomeAcquisition(self._space, tuple(posteriors), boxes, tuple(limits))
        return OutcomeFit(acquisition, good, len(kept))

    def state(self) -> JsonValue:
        """Return the hyperparameters of each outcome's process as JSON, without results."""
        return [model.state() for model in self._models]

    def load_state(self, state: JsonValue) -> None:
        """Restore the hyperparameters of each outcome's process from a state."""
        for model, saved in zip(self._models, state, strict=True):
            model.load_state(saved)

    def _denoised(self, index: int, fitted: FittedGP) -> Floats:
        """Return the targets `(n,)` of a loss, or their posterior means under notable noise."""
        if self._models[index].noise_variance() <= NOTABLE_NOISE:
            return fitted.targets
        return fitted.posterior.predict(fitted.inputs)[0]

    def _limits(
        self, inputs: Floats, excess: Floats, kept: Ints, count: int, pending: Floats
    ) -> list[LimitPosterior]:
        """Return the posteriors of the limits from which results are not all equally far."""
        limits = []
        for index in range(excess.shape[1]):
            targets, threshold = limit_targets(excess[:, index])
            if threshold is None:
                continue
            model = self._models[self._losses + index]
            fitted = model.update(inputs, targets, kept, count)
            limits.append(LimitPosterior(model.with_pending(fitted, pending), threshold))
        return limits


def limit_targets(excess: Floats) -> tuple[Floats, float | None]:
    """Return the targets of a limited outcome, and the limit on their scale; None if all equal.

    Distances beyond a limit are logarithmic. Outcomes of which only is known that they keep the
    limit are 0, and count as well within.

    Args:
        excess: `(n,)`, by how much the limit is exceeded; infinite ones count as the largest.

    Returns:
        `(n,)`, standardised; and the limit, None if all results are equally far from it.
    """
    finite = np.isfinite(excess)
    sizes = np.abs(excess[finite & (excess != 0)])
    if not len(sizes):
        scaled = np.where(excess <= 0, -1.0, 1.0)
    else:
        known = np.where(finite, excess, sizes.max())
        scaled = np.sign(known) * np.log1p(np.abs(known) / np.median(sizes))
        scaled = np.where(excess <= 0, np.minimum(scaled, -_WITHIN), scaled)
    middle, deviation = float(scaled.mean()), float(scaled.std())
    if deviation == 0:
        return np.zeros(len(excess)), None
    return standardised(scaled), -middle / deviation


def dominators(losses: Floats) -> Floats:
    """Return by how many of `(n, k)` losses each is dominated, `(n,)`."""
    columns = list(np.ascontiguousarray(losses.T))
    counts = np.empty(len(losses))
    for index, loss in enumerate(losses):
        below = columns[0] <= loss[0]
        same = columns[0] == loss[0]
        for column, number in zip(columns[1:], loss[1:], strict=True):
            below &= column <= number
            same &= column == number
        counts[index] = np.count_nonzero(below) - np.count_nonzero(same)
    return counts


def _ranking(losses: Floats, excess: Floats, within: Bools) -> Floats:
    """Return `(n,)`, smaller for better results: dominators within the limits, ranks beyond."""
    ranking = np.empty(len(losses))
    ranking[within] = dominators(losses[within])
    # An outcome that is missing weighs like the largest; none counts more than another.
    broken = [_ranks(np.maximum(column, 0.0)) for column in excess[~within].T]
    ranking[~within] = len(losses) + np.sum(broken, axis=0)
    return ranking


def _ranks(values: Floats) -> Floats:
    return np.unique(values, return_inverse=True)[1].astype(np.float64)


def _boxes(known: Floats, expected: Floats) -> Boxes:
    """Return the region that neither known `(n, k)` nor expected `(r, k)` losses dominate."""
    worst = known.max(axis=0)
    extent = worst - known.min(axis=0)
    reference = worst + _BEYOND_WORST * np.where(extent > 0, extent, 1.0)
    front = np.concatenate([known[dominators(known) == 0], expected])
    return non_dominated_boxes(front, reference)


def _expected(
    posteriors: list[GPPosterior], limits: list[LimitPosterior], pending: Floats
) -> Floats:
    """Return the predicted losses `(r, k)` of those running trials that likely keep the limits."""
    if not len(pending):
        return np.empty((0, len(posteriors)))
    likely = np.ones(len(pending), dtype=bool)
    for limit in limits:
        likely &= limit.posterior.predict(pending)[0] <= limit.threshold
    return np.stack([posterior.predict(pending)[0] for posterior in posteriors], axis=1)[likely]
