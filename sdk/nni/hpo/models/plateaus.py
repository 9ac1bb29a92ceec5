"""Plateaus of a loss: their widths, fitted to which results are exactly equal.

A loss that is counted (an accuracy on few samples), looked up, or of parameters that a trial rounds
stays the same over small steps. A trial on the plateau of a known result yields no information,
though a smooth model has a high acquisition there when the plateau is the lowest so far. The
probability that two vectors have the same result falls from 1 to 0 at some width along every axis,
as if the axis were cut into cells of that width; the widths have the greatest likelihood of which
results are equal. Without equal results there are no plateaus.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.arrays import Bools, Floats, Ints

_LATEST: Final = 200
"""Results that widths are fitted to."""
_REMEMBERED: Final = 400
"""Results whose plateaus are known."""
_NEAREST: Final = 2000
_MOST_STEPS: Final = 30_000
"""Pairs of results that widths are fitted to, at most, and the same times the number of axes."""
_FEWEST: Final = 3
"""Equal pairs below which there are no plateaus."""
_FIRST: Final = 8
_GROWTH: Final = 1.08
"""Results before the first fit, and by which factor they grow until the next one."""

_WIDTHS: Final = np.array([0.0, 0.03, 0.05, 0.08, 0.12, 0.17, 0.25, 0.35, 0.5, 0.8, np.inf])
"""Widths of an axis; results do not depend on one of infinite width."""
_STARTS: Final = (0.05, 0.17, 0.5)
"""Widths of all axes where a fit starts."""
_SWEEPS: Final = 2
_WORTH: Final = 2.0
"""By how much widths must raise the log likelihood."""
_FAR: Final = 0.5
"""Step from which two results are equal by coincidence only."""
_LEAST_CHANCE: Final = 0.003
_FEWEST_FAR: Final = 10
_USUAL_CHANCE: Final = 0.02
"""Probability of a coincidence: at least, and where there are few pairs that are far apart."""
_SURE: Final = 0.98
"""Probability that results of one plateau are equal; below 1, so that an exception may occur."""
_BLOCK: Final = 128
"""Vectors that are evaluated together, so that they stay in the cache."""


@dataclass(frozen=True, slots=True)
class KnownPlateaus:
    """Vectors with known results, and the widths of the plateaus around them."""

    widths: Floats
    """`(d,)`, of the plateaus; 0 where every step matters, inf where none does."""
    vectors: Floats
    """`(n, d)`, observed or running."""

    def novelty(self, vectors: Floats) -> Floats:
        """Return the probability `(m,)` that `(m, d)` vectors lie on no known plateau."""
        novelty = np.empty(len(vectors))
        for start in range(0, len(vectors), _BLOCK):
            part = slice(start, start + _BLOCK)
            novelty[part] = self._novelty(vectors[part])
        return novelty

    def reach(self) -> Floats:
        """Return the distance `(d,)` along each axis that leaves a plateau; 0 where none does."""
        return np.where(np.isfinite(self.widths), self.widths, 0.0)

    def _novelty(self, vectors: Floats) -> Floats:
        same = np.ones((len(vectors), len(self.vectors)))
        for axis in np.flatnonzero(np.isfinite(self.widths)):
            gaps = np.abs(vectors[:, axis, None] - self.vectors[None, :, axis])
            same *= _sameness(gaps, self.widths[axis])
        novelty: Floats = np.prod(1.0 - same, axis=1)
        return novelty


class PlateauModel:
    """Estimator of the widths of plateaus, regions of equal results, refitted now and then.

    It has no state to save: the widths follow from the results.

    Args:
        ordered: `(d,)`, false for axes of which any two coordinates are as different as others.
    """

    def __init__(self, ordered: Bools) -> None:
        self._ordered = ordered
        self._fitted = 0
        self._widths: Floats | None = None

    @property
    def found(self) -> bool:
        """True if the last fit found plateaus in the results."""
        return self._widths is not None

    def update(
        self, vectors: Sequence[Floats], losses: Sequence[float], running: Sequence[Floats]
    ) -> KnownPlateaus | None:
        """Return the plateaus of the latest results and running trials; None if there are none.

        Args:
            vectors: `(d,)` each, of all results in their order.
            losses: of the vectors.
            running: `(d,)` each, without a result yet.
        """
        count = _fitted_count(len(losses))
        if count != self._fitted:
            latest = slice(max(0, count - _LATEST), count)
            self._widths = plateau_widths(
                np.array(vectors[latest]), np.array(losses[latest]), self._ordered
            )
            self._fitted = count
        if self._widths is None:
            return None
        return KnownPlateaus(self._widths, np.array([*vectors[-_REMEMBERED:], *running]))

    def reset(self) -> None:
        """Discard the fitted widths, because the results have changed."""
        self._fitted, self._widths = 0, None


def _fitted_count(count: int) -> int:
    """Return the largest size of a fit, up to `count`, in a growing series; 0 before the first."""
    fitted, following = 0, _FIRST
    while following <= count:
        fitted, following = following, int(following * _GROWTH) + 1
    return fitted


def plateau_widths(vectors: Floats, losses: Floats, ordered: Bools) -> Floats | None:
    """Return the likeliest widths `(d,)` of plateaus; None without evidence in equal results.

    Args:
        vectors: `(n, d)`.
        losses: `(n,)`
        ordered: `(d,)`, see `PlateauModel`.
    """
    if len(losses) - len(np.unique(losses)) < _FEWEST:
        return None
    left, right = _pairs(vectors, losses, ordered)
    gaps, equal = np.abs(vectors[left] - vectors[right]), losses[left] == losses[right]
    if equal.sum() < _FEWEST:
        return None
    steps = gaps.max(axis=1)
    far = steps > _FAR
    enough = far.sum() >= _FEWEST_FAR
    chance = max(_LEAST_CHANCE, float(equal[far].mean())) if enough else _USUAL_CHANCE
    count = min(_NEAREST, _MOST_STEPS // len(ordered))
    near = np.argsort(steps, kind="stable")[:count]
    return _likeliest(gaps[near], equal[near], chance)


def _pairs(vectors: Floats, losses: Floats, ordered: Bools) -> tuple[Ints, Ints]:
    """Return the positions of pairs with the same options, of which one result is good.

    Plateaus of bad results do not matter: training may fail alike in half of the space.
    """
    good = losses <= np.median(losses)
    left, right = np.triu_indices(len(losses), 1)
    chosen = good[left] | good[right]
    left, right = left[chosen], right[chosen]
    alike = (vectors[left][:, ~ordered] == vectors[right][:, ~ordered]).all(axis=1)
    return left[alike], right[alike]


def _likeliest(gaps: Floats, equal: Bools, chance: float) -> Floats | None:
    """Return maximum-likelihood widths `(d,)` by coordinate search; None if not worth it.

    Args:
        gaps: `(p, d)`, absolute differences of the vectors of each pair.
        equal: `(p,)`, whether their results are.
        chance: probability that results of two plateaus are equal.
    """
    axes = np.flatnonzero((gaps > 0).any(axis=0))
    factors = [np.stack([_sameness(gaps[:, axis], width) for width in _WIDTHS]) for axis in axes]

    def likelihood(same: Floats) -> Floats:
        chances = chance + (_SURE - chance) * same
        found: Floats = np.log(np.where(equal, chances, 1.0 - chances)).sum(axis=-1)
        return found

    best, found = float(likelihood(np.zeros(len(equal)))) + _WORTH, None
    for start in _STARTS:
        chosen = [int(np.abs(_WIDTHS - start).argmin())] * len(axes)
        value = -np.inf
        for place in list(range(len(axes))) * _SWEEPS:
            others = np.ones(len(equal))
            for other, factor in enumerate(factors):
                if other != place:
                    others *= factor[chosen[other]]
            values = likelihood(others * factors[place])
            chosen[place] = int(values.argmax())
            value = float(values.max())
        if value > best:
            best, found = value, chosen
    if found is None:
        return None
    widths = np.zeros(gaps.shape[1])
    widths[axes] = _WIDTHS[found]
    return widths


def _sameness(gaps: Floats, width: float) -> Floats:
    """Return the probability that two coordinates at such distances lie in one cell of an axis."""
    same: Floats = np.maximum(1.0 - gaps / width, 0.0) if width > 0 else 1.0 * (gaps == 0)
    return same
