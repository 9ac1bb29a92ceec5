"""What is believed of several outcomes at once: losses to lower, and limits to keep.

Every loss and every limited outcome has a Gaussian process of its own. A point is as promising as
the volume that it is expected to add to what the results dominate, times the chance that it keeps
all limits; while no result keeps them, the chance alone counts.

Source: Gardner et al., Bayesian Optimization with Inequality Constraints, ICML 2014, section 3.1
(the chance as a factor); see `improvement_volume` for the volume.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.arrays import Bools, Floats, Ints
from nni.hpo.encoding.encoded_space import TreeCube
from nni.hpo.json_value import JsonValue
from nni.hpo.models.gaussian_process import Posterior
from nni.hpo.models.gp_model import Belief
from nni.hpo.models.matern import Matern
from nni.hpo.models.subsets import covering
from nni.hpo.models.surrogate import MOST_MODELLED, Surrogate
from nni.hpo.models.targets import standardised, tamed
from nni.hpo.tuners.bayesian.acquisition import improvement_probability
from nni.hpo.tuners.bayesian.acquisition_optimizer import Ascent
from nni.hpo.tuners.bayesian.hypervolume_improvement import (
    Boxes,
    free_boxes,
    improvement_slopes,
    log_improvement,
)

_NOTABLE_NOISE: Final = 1e-3
"""Of a process, relative to its variance, from which single results are not to be trusted."""
_BEYOND_WORST: Final = 0.1
"""How far the reference lies beyond the worst known losses, relative to their ranges. What is
worst on the front is no bound: the ends of the front would never be found."""
_WITHIN: Final = 0.5
"""How far within a limit a result counts that keeps it barely, or is known to keep it only."""

_inside = improvement_probability(0.0)


@dataclass(frozen=True, slots=True)
class Limit:
    """What is believed of an outcome that has a limit."""

    model: Posterior
    threshold: float
    """The limit, on the model's scale."""


@dataclass(frozen=True, slots=True)
class Prospect(Ascent):
    """How promising points are."""

    losses: tuple[Posterior, ...]
    boxes: Boxes | None
    """What no result dominates; None while none keeps all limits."""
    limits: tuple[Limit, ...]

    def rate(self, points: Floats) -> Floats:
        """See the base."""
        features = self.cube.features(points)
        total = np.zeros(len(points))
        if self.boxes is not None:
            predictions = [model.predict(features) for model in self.losses]
            means = np.stack([mean for mean, _ in predictions], axis=1)
            deviations = np.stack([deviation for _, deviation in predictions], axis=1)
            total += log_improvement(means, deviations, self.boxes)
        for limit in self.limits:
            total += _inside(*limit.model.predict(features), limit.threshold)[0]
        return total

    def slope(self, features: Floats) -> tuple[float, Floats]:
        """See the base."""
        total, rise = 0.0, np.zeros_like(features)
        if self.boxes is not None:
            means, deviations, mean_rises, deviation_rises = zip(
                *(model.slopes(features) for model in self.losses), strict=True
            )
            total, by_mean, by_deviation = improvement_slopes(
                np.array(means), np.array(deviations), self.boxes
            )
            rise = by_mean @ np.array(mean_rises) + by_deviation @ np.array(deviation_rises)
        for limit in self.limits:
            mean, deviation, mean_rise, deviation_rise = limit.model.slopes(features)
            value, slope, spread = _inside(np.array([mean]), np.array([deviation]), limit.threshold)
            total += float(value[0])
            rise = rise + slope[0] * mean_rise + spread[0] * deviation_rise
        return total, rise


@dataclass(frozen=True, slots=True)
class Survey:
    """A prospect, and the results near which to look for better ones."""

    prospect: Prospect
    good: Ints
    """Positions of the results on the front, or of those that break the limits least."""
    modelled: int
    """Results that the models are made of."""


class OutcomeModels:
    """The processes of all outcomes, kept up to date.

    Args:
        losses: how many outcomes are to be lowered, >= 1; the others have the limit 0.
        outcomes: how many there are in all.
        kernel: the correlation.
        alpha: least noise, relative to the variance of a process.
        cube: the space.
    """

    def __init__(
        self, losses: int, outcomes: int, kernel: Matern, alpha: float, cube: TreeCube
    ) -> None:
        self._losses = losses
        self._cube = cube
        self._surrogates = [Surrogate(kernel, alpha, cube.owners) for _ in range(outcomes)]

    def survey(self, points: Floats, outcomes: Floats, running: list[Floats]) -> Survey:
        """Return what to expect after results.

        Args:
            points: `(n, d)`, n >= 1.
            outcomes: `(n, k)`; losses, then by how much limits are exceeded.
            running: `(d,)` points, that count as if they had come out as predicted.
        """
        losses, excess = outcomes[:, : self._losses], outcomes[:, self._losses :]
        within: Bools = np.all(excess <= 0, axis=1)
        merits = _merits(losses, excess, within)
        features = self._cube.features(points)
        kept = covering(features, merits, MOST_MODELLED)
        rows = features[kept]
        waiting = list(self._cube.features(np.array(running))) if running else []
        targets = [standardised(tamed(column)[kept]) for column in losses.T]
        beliefs = [
            surrogate.believe_in(rows, target, kept, len(points))
            for surrogate, target in zip(self._surrogates, targets, strict=False)
        ]
        models = [
            surrogate.expecting(belief, waiting)
            for surrogate, belief in zip(self._surrogates, beliefs, strict=False)
        ]
        limits = self._limits(rows, excess[kept], kept, len(points), waiting)
        boxes = None
        if within.any():
            known = np.stack(
                [self._trusted(index, belief) for index, belief in enumerate(beliefs)], axis=1
            )[within[kept]]
            boxes = _free(known, _expected(models, limits, waiting))
        good = np.flatnonzero(merits == merits.min())
        prospect = Prospect(self._cube, tuple(models), boxes, tuple(limits))
        return Survey(prospect, good, len(kept))

    def state(self) -> JsonValue:
        """Return what `load_state` needs, as JSON."""
        return [surrogate.state() for surrogate in self._surrogates]

    def load_state(self, state: JsonValue) -> None:
        """Take over what `state` gave."""
        for surrogate, kept in zip(self._surrogates, state, strict=True):
            surrogate.load_state(kept)

    def _trusted(self, index: int, belief: Belief[Posterior]) -> Floats:
        """Return the losses of the modelled results, or what is believed of them under noise."""
        if self._surrogates[index].noise() <= _NOTABLE_NOISE:
            return belief.targets
        return belief.model.predict(belief.points)[0]

    def _limits(
        self, rows: Floats, excess: Floats, kept: Ints, count: int, waiting: list[Floats]
    ) -> list[Limit]:
        """Return what is believed of the outcomes with a limit, of those that say something."""
        limits = []
        for index in range(excess.shape[1]):
            targets, threshold = limit_targets(excess[:, index])
            if threshold is None:
                continue
            surrogate = self._surrogates[self._losses + index]
            belief = surrogate.believe_in(rows, targets, kept, count)
            limits.append(Limit(surrogate.expecting(belief, waiting), threshold))
        return limits


def limit_targets(excess: Floats) -> tuple[Floats, float | None]:
    """Return what a process learns of an outcome with a limit, and where the limit lies there.

    How far beyond a limit a result is counts less the farther it is. Outcomes that only tell that
    the limit is kept, not by how much, are 0: they count as well within.

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


def _merits(losses: Floats, excess: Floats, within: Bools) -> Floats:
    """Return `(n,)`, smaller for better results: by how many each is dominated, or its excess."""
    merits = np.empty(len(losses))
    merits[within] = dominators(losses[within])
    # An outcome that is missing weighs like the largest; none counts more than another.
    broken = [_ranks(np.maximum(column, 0.0)) for column in excess[~within].T]
    merits[~within] = len(losses) + np.sum(broken, axis=0)
    return merits


def _ranks(values: Floats) -> Floats:
    return np.unique(values, return_inverse=True)[1].astype(np.float64)


def _free(known: Floats, expected: Floats) -> Boxes:
    """Return what neither known nor expected losses dominate, `(n, k)` and `(r, k)`."""
    worst = known.max(axis=0)
    extent = worst - known.min(axis=0)
    reference = worst + _BEYOND_WORST * np.where(extent > 0, extent, 1.0)
    front = np.concatenate([known[dominators(known) == 0], expected])
    return free_boxes(front, reference)


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


def _expected(models: list[Posterior], limits: list[Limit], waiting: list[Floats]) -> Floats:
    """Return the losses `(r, k)` predicted of running trials, of those likely to keep limits."""
    if not waiting:
        return np.empty((0, len(models)))
    rows = np.array(waiting)
    likely = np.ones(len(rows), dtype=bool)
    for limit in limits:
        likely &= limit.model.predict(rows)[0] <= limit.threshold
    return np.stack([model.predict(rows)[0] for model in models], axis=1)[likely]
