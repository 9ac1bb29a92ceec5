"""Rankings of results: their order, the good ones, and the weights of these.

A ranking grows by one result at a time and never looks through all of them again, so that asking
for the good ones costs the same after many results. `LossRanking` is for one loss, `fronts` has
the one for several.
"""

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from nni.hpo.arrays import Floats

_GOOD_PART: Final = 0.25
"""Share of all results that can be good."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a trial: its losses and its violation of limits."""

    losses: tuple[float, ...]
    """Finite losses, one per objective; smaller is better."""
    excess: float = 0.0
    """Violation of the limits on outcomes, finite; 0 for a feasible result. An infeasible result is
    worse than every feasible one."""


class Ranking(Protocol):
    """Order of results; a result is known by its position in the order of arrival."""

    def add(self, position: int, outcome: Outcome) -> None:
        """Add the result of a new position."""
        ...

    def best(self, count: int) -> tuple[list[int], Floats]:
        """Return the positions of the best results, best first, and their weights.

        Args:
            count: number of results; fewer are returned if there are fewer.

        Returns:
            Positions, and as many weights >= 0 with the mean 1.
        """
        ...

    def others(self, good: Sequence[int], limit: int) -> list[int]:
        """Return up to `limit` positions, better ones first, that are not among `good`.

        Args:
            good: what `best` returned since the last `add`.
            limit: >= 0.
        """
        ...

    def place(self, outcome: Outcome) -> int:
        """Return the number of results that are at least as good as an outcome."""
        ...


class LossRanking:
    """Ranking by a single loss; of equal results the earlier one is better."""

    def __init__(self) -> None:
        self._order: list[tuple[float, float, int]] = []

    def add(self, position: int, outcome: Outcome) -> None:
        """Insert a result into the order of losses, by O(log n) comparisons."""
        insort(self._order, (*_key(outcome), position))

    def best(self, count: int) -> tuple[list[int], Floats]:
        """Return the positions of the least losses, with weights falling as the logarithm of rank.

        Equal results share one rank and its weight, and the newest represents them: results on a
        plateau do not displace all others, and the search moves over the plateau.
        """
        spans = self._spans(count)
        missing = count - len(spans)
        groups: list[list[int]] = []
        for start, stop in spans:
            group = self._ranked(max(start, stop - 1 - missing), stop)
            missing -= len(group) - 1
            groups.append(group[::-1])
        shares = rank_weights(len(groups))
        weights = [share / len(group) for share, group in zip(shares, groups, strict=True)]
        spread = np.repeat(weights, [len(group) for group in groups])
        scaled: Floats = spread * (len(spread) / spread.sum()) if len(spread) else spread
        return [position for group in groups for position in group], scaled

    def others(self, good: Sequence[int], limit: int) -> list[int]:
        """Return up to `limit` positions by ascending loss, without those in `good`."""
        taken = set(good)
        ranked = self._ranked(0, len(good) + limit)
        return [position for position in ranked if position not in taken][:limit]

    def place(self, outcome: Outcome) -> int:
        """Return the number of results that are at least as good as an outcome."""
        return bisect_right(self._order, (*_key(outcome), len(self._order)))

    def _spans(self, count: int) -> list[tuple[int, int]]:
        """Return start and end rank of up to `count` groups of equal results, best first.

        Only the better part of all results is examined: where few losses are possible, results
        after the best ones are not good.
        """
        spans: list[tuple[int, int]] = []
        start, end = 0, max(count, int(_GOOD_PART * len(self._order)))
        while len(spans) < count and start < min(end, len(self._order)):
            excess, loss, _ = self._order[start]
            stop = bisect_right(self._order, (excess, loss, len(self._order)), lo=start)
            spans.append((start, stop))
            start = stop
        return spans

    def _ranked(self, start: int, stop: int) -> list[int]:
        return [position for _, _, position in self._order[start:stop]]


def rank_weights(count: int) -> Floats:
    """Return `(count,)` weights, best first, falling as the logarithm of rank, with the mean 1."""
    weights = np.log(count + 1) - np.log(np.arange(1, count + 1))
    scaled: Floats = weights * (count / weights.sum()) if count else weights
    return scaled


def _key(outcome: Outcome) -> tuple[float, float]:
    """Return the sort key of an outcome; of infeasible ones it is the excess."""
    return (outcome.excess, 0.0) if outcome.excess > 0 else (0.0, outcome.losses[0])
