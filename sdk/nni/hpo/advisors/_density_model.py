"""BOHB's model of one budget: Parzen estimators of good and of bad results.

Source: Falkner, Klein and Hutter, BOHB: Robust and Efficient Hyperparameter Optimization at Scale,
ICML 2018, section 3.2.

Departures: the prior has the same share in both densities, that of one good kernel, so that far
from all results their ratio is 1. A choice slips to any option with a chance that takes the place
of its bandwidth. Kernels are at least as wide as a share of the range that shrinks with their
number: by the rule of thumb alone, proposals that lie close together make narrow kernels and these
make closer proposals still, before the region around them is known. On normal types they are no
wider than the prior: wider ones run off. No configuration without a result is among the good ones.
"""

import math
from bisect import insort
from dataclasses import dataclass

import numpy as np

from nni.hpo.advisors._proposals import ProposalSpace, dimension_of
from nni.hpo.arrays import Floats, Ints
from nni.hpo.encoding.columns import Row
from nni.hpo.json_value import JsonValue
from nni.hpo.models.feasible_rows import RowFeasibility
from nni.hpo.models.parzen import Frame, Mixture

_NORMAL_REFERENCE = 1.06
"""Factor of the rule of thumb for the width of a normal kernel (Silverman 1986, section 3.4.2)."""

_LEAST_SPREAD = 0.07
"""Spread of the rows, in coordinates, below which kernels get no narrower.

Between 0.05 and 0.1, the best of 0 to 0.2 on Branin, Hartmann6 and a mixed problem of 4 parameters:
150 trials with budgets 1 to 9 and noise that falls with the budget, 20 seeds."""

_FIRST_CAPACITY = 16

_LARGEST_SLIP = 0.95
"""At 1 a choice would no longer depend on its kernel."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Settings of BOHB's density model, named as the arguments of `BOHB`."""

    min_points_in_model: int | None
    top_n_percent: int
    num_samples: int
    bandwidth_factor: float
    min_bandwidth: float


class Results:
    """Growing ranking of one budget's results, as encoded rows; returns the best or the worst.

    Args:
        frame: of the rows.
    """

    def __init__(self, frame: Frame) -> None:
        self._ranked: list[tuple[float, int]] = []
        self._points = np.empty((_FIRST_CAPACITY, len(frame.bounded)))
        self._options = np.empty((_FIRST_CAPACITY, len(frame.counts)), dtype=np.int64)

    def __len__(self) -> int:
        """Return the number of results."""
        return len(self._ranked)

    def add(self, row: Row, loss: float) -> None:
        """Add a row with its loss to the arrays, ranked; an infinite loss ranks last."""
        index = len(self._ranked)
        if index == len(self._points):
            self._points = np.concatenate([self._points, np.empty_like(self._points)])
            self._options = np.concatenate([self._options, np.empty_like(self._options)])
        self._points[index], self._options[index] = row.coordinates, row.options
        insort(self._ranked, (loss, index))

    def can_model(self, least: int) -> bool:
        """Return whether there are `least` results, at least two of them finite."""
        return len(self) >= least and sum(loss < math.inf for loss, _ in self._ranked[:2]) > 1

    def best(self, count: int) -> tuple[Floats, Ints]:
        """Return points `(k, d)` and options `(k, c)` of the best `count` with a finite loss."""
        return self._rows([index for loss, index in self._ranked[:count] if loss < math.inf])

    def worst(self, count: int) -> tuple[Floats, Ints]:
        """Return points `(k, d)`, options `(k, c)` of the worst `count`; infinite losses count."""
        return self._rows([index for _, index in self._ranked[-count:]])

    def _rows(self, indices: list[int]) -> tuple[Floats, Ints]:
        return self._points[indices], self._options[indices]


def least_results(space: ProposalSpace, settings: ModelSettings) -> int:
    """Return how many results a model of a budget needs: parameters + 1, or the setting if more."""
    return max(dimension_of(space) + 1, settings.min_points_in_model or 0)


def propose(
    space: ProposalSpace,
    results: Results,
    settings: ModelSettings,
    rng: np.random.Generator,
    success: RowFeasibility | None = None,
) -> dict[str, JsonValue] | None:
    """Draw candidates; return the allowed configuration of best good/bad density ratio, or None.

    Args:
        space: of the candidates.
        results: of one budget that `can_model`.
        settings: of the model.
        rng: of the candidates.
        success: of the trials at all budgets, which weighs the candidates.
    """
    least = least_results(space, settings)
    share = settings.top_n_percent
    best = results.best(max(least, len(results) * share // 100))
    worst = results.worst(max(least, len(results) * (100 - share) // 100))
    prior_share = 1.0 / (1.0 + len(best[0]))
    good = density(space.frame, *best, settings.min_bandwidth, prior_share)
    bad = density(space.frame, *worst, settings.min_bandwidth, prior_share)
    points, options = widened(good, settings.bandwidth_factor).draw(settings.num_samples, rng)
    gain = good.log_density(points, options) - bad.log_density(points, options)
    weights = None if success is None else success.log_weights(points, options)
    if weights is not None:
        gain += weights
    for index in np.argsort(-gain, kind="stable"):
        row = Row(0, tuple(points[index].tolist()), tuple(options[index].tolist()))
        configuration = space.configuration(row)
        if configuration is not None:
            return configuration
    return None


def density(
    frame: Frame, points: Floats, options: Ints, min_bandwidth: float, prior_share: float
) -> Mixture:
    """Return a Parzen mixture of prior and a kernel per row; widths by the normal reference rule.

    Args:
        frame: the prior.
        points: `(k, d)` coordinates of the rows, k >= 1.
        options: `(k, c)` of the rows.
        min_bandwidth: least width of a kernel, in coordinates, and least slip of a choice.
        prior_share: weight of the prior in the density, in (0, 1).
    """
    count = len(points)
    narrowing = count ** (-1.0 / (4 + points.shape[1] + options.shape[1]))
    least = max(min_bandwidth, _LEAST_SPREAD * narrowing)
    widths = _NORMAL_REFERENCE * points.std(axis=0) * narrowing
    return Mixture(
        frame=frame,
        centres=points,
        widths=frame.narrowed(np.maximum(widths, least)),
        options=options,
        slip=np.clip(_disagreement(options) * narrowing, least, _LARGEST_SLIP),
        weights=np.ones(count),
        prior_weight=count * prior_share / (1.0 - prior_share),
    )


def _disagreement(options: Ints) -> Floats:
    """Return per choice the probability that two rows have different options, `(c,)`."""
    shares = [np.bincount(column) / len(column) for column in options.T]
    return np.array([1.0 - float((share**2).sum()) for share in shares])


def widened(mixture: Mixture, factor: float) -> Mixture:
    """Return the density with kernels `factor` times as wide, but no wider than a normal prior."""
    return Mixture(
        frame=mixture.frame,
        centres=mixture.centres,
        widths=mixture.frame.narrowed(mixture.widths * factor),
        options=mixture.options,
        slip=np.minimum(mixture.slip * factor, _LARGEST_SLIP),
        weights=mixture.weights,
        prior_weight=mixture.prior_weight,
    )
