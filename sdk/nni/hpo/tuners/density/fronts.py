"""Non-dominated sorting of results with several losses, updated with each result.

Source: Ozaki et al., Multiobjective Tree-Structured Parzen Estimator, Journal of Artificial
Intelligence Research 73, 2022, section 4 (good results, and their weights); Li et al., Efficient
Nondomination Level Update Method for Steady-State Evolutionary Multiobjective Optimization, IEEE
Transactions on Cybernetics 47(9), 2017 (a result moves only those it dominates).

Departures: only the better results are kept, see `_KEPT`, which bounds the time per result;
volumes are measured along rays, see `hypervolume`; a result that adds no volume keeps some weight.
"""

import sys
from bisect import bisect_right, insort
from collections.abc import Sequence
from typing import Final

import numpy as np

from nni.hpo.arrays import Bools, Floats
from nni.hpo.pareto import crowding_distances
from nni.hpo.tuners.density.hypervolume import contributions, reaches, spread_choice
from nni.hpo.tuners.density.rankings import Outcome

_KEPT: Final = 500
"""Number of results that remain when twice as many are reached."""
_LEAST_WEIGHT: Final = 0.25
"""Weight of a good result that adds no volume, where 1 is the mean of the added volumes."""


class FrontRanking:
    """Ranking by non-domination front, and within a front by the volume dominated together.

    Args:
        objectives: number of losses of a result, >= 2.
    """

    def __init__(self, objectives: int) -> None:
        self._positions = np.empty(2 * _KEPT, dtype=np.int64)
        self._losses = np.empty((2 * _KEPT, objectives))
        self._fronts = np.empty(2 * _KEPT, dtype=np.int64)
        self._count = 0
        self._left_out = 0
        self._beyond: list[tuple[float, int]] = []
        self._known: tuple[int, int, list[int], Floats] | None = None
        """Count, last front that matters, positions and weights of the last `best`."""

    def add(self, position: int, outcome: Outcome) -> None:
        """Add the result of a new position; move the results that it dominates to later fronts."""
        if outcome.excess > 0:
            insort(self._beyond, (outcome.excess, position))
            self._known = None
            return
        if self._count == len(self._positions):
            self._make_room()
        losses = np.array(outcome.losses)
        front = self._front_of(losses)
        self._push_down(losses[None, :], front)
        self._positions[self._count] = position
        self._losses[self._count] = losses
        self._fronts[self._count] = front
        self._count += 1
        if self._known is not None and front <= self._known[1]:
            self._known = None

    def best(self, count: int) -> tuple[list[int], Floats]:
        """Return the positions of the best results, weighted by the volume only they dominate."""
        if self._known is None or self._known[0] != count:
            self._known = (count, *self._choose(count))
        _, _, positions, weights = self._known
        return positions, weights

    def others(self, good: Sequence[int], limit: int) -> list[int]:
        """Return up to `limit` positions by front, then infeasible ones, without `good`."""
        order = np.argsort(self._fronts[: self._count], kind="stable")
        most = len(good) + limit
        ordered: list[int] = self._positions[order][:most].tolist()
        ordered += [position for _, position in self._beyond[: most - len(ordered)]]
        taken = set(good)
        return [position for position in ordered if position not in taken][:limit]

    def place(self, outcome: Outcome) -> int:
        """Return how many results rank before an outcome; results of one front count as equal."""
        if outcome.excess > 0:
            before = bisect_right(self._beyond, outcome.excess, key=lambda pair: pair[0])
            return self._left_out + self._count + before
        front = self._front_of(np.array(outcome.losses))
        return int((self._fronts[: self._count] < front).sum())

    def _front_of(self, losses: Floats) -> int:
        """Return the first front without a result that dominates the losses `(m,)`."""
        known = self._losses[: self._count]
        beating = (known <= losses).all(axis=1) & (known < losses).any(axis=1)
        # A result that is dominated in a front is dominated in all fronts before it.
        return int(self._fronts[: self._count][beating].max(initial=-1)) + 1

    def _push_down(self, arriving: Floats, front: int) -> None:
        """Move the results that arriving ones `(k, m)` dominate to the next front, repeatedly."""
        while len(arriving):
            here = np.flatnonzero(self._fronts[: self._count] == front)
            beaten = here[_beaten(self._losses[here], arriving)]
            arriving = self._losses[beaten]
            front += 1
            self._fronts[beaten] = (
                front  # they do not dominate each other, so they may be among `here`
            )

    def _make_room(self) -> None:
        """Drop the worse half: whole fronts, then the smallest crowding distances."""
        fronts = self._fronts[: self._count]
        last = int(np.sort(fronts)[_KEPT - 1])
        before, cut = np.flatnonzero(fronts < last), np.flatnonzero(fronts == last)
        distances = np.array(crowding_distances(self._losses[cut].tolist()))
        kept = cut[np.argsort(-distances, kind="stable")[: _KEPT - len(before)]]
        rows = np.sort(np.concatenate([before, kept]))
        self._left_out += self._count - len(rows)
        self._count = len(rows)
        for column in (self._positions, self._losses, self._fronts):
            column[: len(rows)] = column[rows]
        self._known = None

    def _choose(self, count: int) -> tuple[int, list[int], Floats]:
        """Return the last front taken, the best positions by front, spread out, and weights."""
        fronts = self._fronts[: self._count]
        rows: list[int] = []
        last = -1
        while len(rows) < count and last < fronts.max(initial=-1):
            last += 1
            group = np.flatnonzero(fronts == last)
            wanted = min(count - len(rows), len(group))
            chosen = spread_choice(reaches(self._losses[group]), wanted)
            rows += group[chosen].tolist()
        weights = self._weights(rows)
        positions: list[int] = self._positions[rows].tolist()
        if len(rows) < count:
            last = sys.maxsize  # any new result would be among them
        beyond = [position for _, position in self._beyond[: count - len(rows)]]
        weights = np.concatenate([weights, np.full(len(beyond), _LEAST_WEIGHT)])
        scaled: Floats = weights / weights.mean() if len(weights) else weights
        return last, positions + beyond, scaled

    def _weights(self, rows: list[int]) -> Floats:
        if not rows:
            return np.empty(0)
        volumes = contributions(reaches(self._losses[rows]))
        weights: Floats = _LEAST_WEIGHT + volumes / (volumes.mean() or 1.0)
        return weights


def _beaten(losses: Floats, others: Floats) -> Bools:
    """Return `(k,)`, whether each of `(k, m)` losses is dominated by one of `(n, m)` others."""
    not_worse: Bools = np.logical_and.reduce(others[None, :, :] <= losses[:, None, :], axis=2)
    better: Bools = np.logical_or.reduce(others[None, :, :] < losses[:, None, :], axis=2)
    found: Bools = np.logical_or.reduce(not_worse & better, axis=1)
    return found
