"""How far plateaus of a loss reach, learnt from exactly equal results.

A loss that is counted (an accuracy on few samples), looked up, or of parameters that a trial rounds
stays the same over small steps. A point on the plateau of a known one teaches nothing, though a
smooth model expects much of it when the plateau is the lowest so far. The chance that two points
have one result falls from 1 at the same point to 0 at some width along every axis, as it does where
an axis is cut into cells of that width; the widths are those that explain best which results are
equal. Where no results are equal nothing changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.arrays import Bools, Floats, Ints

_LATEST: Final = 200
"""Results that widths are learnt from."""
_REMEMBERED: Final = 400
"""Results whose plateaus are avoided."""
_NEAREST: Final = 2000
_MOST_STEPS: Final = 30_000
"""Pairs of results that widths are learnt from, at most, and the same times the number of axes."""
_FEWEST: Final = 3
"""Equal pairs below which there are no plateaus."""
_FIRST: Final = 8
_GROWTH: Final = 1.08
"""Results before widths are learnt, and by which factor they grow until they are learnt anew."""

_WIDTHS: Final = np.array([0.0, 0.03, 0.05, 0.08, 0.12, 0.17, 0.25, 0.35, 0.5, 0.8, np.inf])
"""That an axis may have; on one of infinite width nothing depends."""
_STARTS: Final = (0.05, 0.17, 0.5)
"""Widths of all axes to begin with."""
_SWEEPS: Final = 2
_WORTH: Final = 2.0
"""By how much widths must raise the logarithm of the likelihood."""
_FAR: Final = 0.5
"""Step from which two results are equal by chance only."""
_LEAST_CHANCE: Final = 0.003
_FEWEST_FAR: Final = 10
_USUAL_CHANCE: Final = 0.02
"""Chance that results are equal by chance: at least, and where there are few such pairs."""
_SURE: Final = 0.98
"""Chance that results of one plateau are equal, so that a single exception does not forbid it."""
_BLOCK: Final = 128
"""Points that are looked at together, so that they stay in the cache."""


@dataclass(frozen=True, slots=True)
class Familiar:
    """Known points, and how far each of them tells its surroundings."""

    widths: Floats
    """`(d,)`, of the plateaus; 0 where every step matters, inf where none does."""
    points: Floats
    """`(n, d)`, known or running."""

    def novelty(self, points: Floats) -> Floats:
        """Return the chance `(m,)` that `(m, d)` points lie on no plateau of a known one."""
        fresh = np.empty(len(points))
        for start in range(0, len(points), _BLOCK):
            part = slice(start, start + _BLOCK)
            fresh[part] = self._novelty(points[part])
        return fresh

    def reach(self) -> Floats:
        """Return how far `(d,)` one has to go along an axis to leave a plateau, where one can."""
        return np.where(np.isfinite(self.widths), self.widths, 0.0)

    def _novelty(self, points: Floats) -> Floats:
        same = np.ones((len(points), len(self.points)))
        for axis in np.flatnonzero(np.isfinite(self.widths)):
            gaps = np.abs(points[:, axis, None] - self.points[None, :, axis])
            same *= _sameness(gaps, self.widths[axis])
        fresh: Floats = np.prod(1.0 - same, axis=1)
        return fresh


class Plateaus:
    """What equal results say, kept up to date with the results of an experiment.

    Nothing of it needs to be stored: it follows from the results.

    Args:
        ordered: `(d,)`, false for axes of which any two coordinates are as different as others.
    """

    def __init__(self, ordered: Bools) -> None:
        self._ordered = ordered
        self._learnt_from = 0
        self._widths: Floats | None = None

    @property
    def found(self) -> bool:
        """Whether the results have plateaus, as learnt last."""
        return self._widths is not None

    def familiar(
        self, points: Sequence[Floats], losses: Sequence[float], running: Sequence[Floats]
    ) -> Familiar | None:
        """Return what is known already; None where every step matters.

        Args:
            points: `(d,)` each, of all results in their order.
            losses: of the points.
            running: `(d,)` each, points without a result yet.
        """
        told = _told(len(losses))
        if told != self._learnt_from:
            latest = slice(max(0, told - _LATEST), told)
            self._widths = plateau_widths(
                np.array(points[latest]), np.array(losses[latest]), self._ordered
            )
            self._learnt_from = told
        if self._widths is None:
            return None
        return Familiar(self._widths, np.array([*points[-_REMEMBERED:], *running]))

    def forget(self) -> None:
        """Begin again: the results are others."""
        self._learnt_from, self._widths = 0, None


def _told(count: int) -> int:
    """Return how many of `count` results widths are learnt from; always the same of as many."""
    told, following = 0, _FIRST
    while following <= count:
        told, following = following, int(following * _GROWTH) + 1
    return told


def plateau_widths(points: Floats, losses: Floats, ordered: Bools) -> Floats | None:
    """Return the widths `(d,)` of plateaus; None if results are equal by chance at most.

    Args:
        points: `(n, d)`.
        losses: `(n,)`
        ordered: `(d,)`, see `Plateaus`.
    """
    if len(losses) - len(np.unique(losses)) < _FEWEST:
        return None
    left, right = _pairs(points, losses, ordered)
    gaps, equal = np.abs(points[left] - points[right]), losses[left] == losses[right]
    if equal.sum() < _FEWEST:
        return None
    steps = gaps.max(axis=1)
    far = steps > _FAR
    enough = far.sum() >= _FEWEST_FAR
    chance = max(_LEAST_CHANCE, float(equal[far].mean())) if enough else _USUAL_CHANCE
    count = min(_NEAREST, _MOST_STEPS // len(ordered))
    near = np.argsort(steps, kind="stable")[:count]
    return _likeliest(gaps[near], equal[near], chance)


def _pairs(points: Floats, losses: Floats, ordered: Bools) -> tuple[Ints, Ints]:
    """Return the positions of pairs with the same options, one of which is good.

    Bad results say little about plateaus where it matters: training may fail alike in half of the
    space.
    """
    good = losses <= np.median(losses)
    left, right = np.triu_indices(len(losses), 1)
    chosen = good[left] | good[right]
    left, right = left[chosen], right[chosen]
    alike = (points[left][:, ~ordered] == points[right][:, ~ordered]).all(axis=1)
    return left[alike], right[alike]


def _likeliest(gaps: Floats, equal: Bools, chance: float) -> Floats | None:
    """Return the widths `(d,)` that explain best which pairs are equal.

    Args:
        gaps: `(p, d)`, steps between the points of each pair.
        equal: `(p,)`, whether their results are.
        chance: that results are equal though they lie on two plateaus.
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
    """Return the chance that points so far apart lie in one cell of an axis."""
    same: Floats = np.maximum(1.0 - gaps / width, 0.0) if width > 0 else 1.0 * (gaps == 0)
    return same
