"""How results stand to each other: what is better than what, and which are good.

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
"""Of all results, those among which the good ones are."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial was found to be worth."""

    losses: tuple[float, ...]
    """What is to be minimised, finite, one number per objective."""
    excess: float = 0.0
    """By how much limits on outcomes are broken, finite; 0: they are kept. What breaks them is
    worse than what keeps them, whatever its losses are."""


class Ranking(Protocol):
    """Orders results that are known by a number, their position in the order of adding."""

    def add(self, position: int, outcome: Outcome) -> None:
        """Take in the result of a position that is new."""
        ...

    def best(self, count: int) -> tuple[list[int], Floats]:
        """Return the positions of the best results, best first, and what each is to weigh.

        Args:
            count: how many; fewer are returned if there are fewer.

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
        """Return how many results are better than an outcome, or came earlier and are as good."""
        ...


class LossRanking:
    """Orders by a single loss; of equal results the earlier one is better. See `Ranking`."""

    def __init__(self) -> None:
        self._order: list[tuple[float, float, int]] = []

    def add(self, position: int, outcome: Outcome) -> None:
        """See `Ranking`. Costs O(log n) comparisons."""
        insort(self._order, (*_key(outcome), position))

    def best(self, count: int) -> tuple[list[int], Floats]:
        """See `Ranking`. Weights fall with the logarithm of the rank.

        Results that are equal share one rank and its weight, and the newest stands for them: a
        plateau that was hit often does not crowd out all others, and the search wanders over it.
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
        """See `Ranking`."""
        taken = set(good)
        ranked = self._ranked(0, len(good) + limit)
        return [position for position in ranked if position not in taken][:limit]

    def place(self, outcome: Outcome) -> int:
        """See `Ranking`."""
        return bisect_right(self._order, (*_key(outcome), len(self._order)))

    def _spans(self, count: int) -> list[tuple[int, int]]:
        """Return the ranks, from and to, of up to `count` runs of equal results, the best first.

        Only the better part of all results is looked at: where few losses are possible, what
        comes after the best ones is not good.
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
    """Return `(count,)` weights, the best first, with the mean 1."""
    weights = np.log(count + 1) - np.log(np.arange(1, count + 1))
    scaled: Floats = weights * (count / weights.sum()) if count else weights
    return scaled


def _key(outcome: Outcome) -> tuple[float, float]:
    """Return what orders outcomes: beyond a limit only the excess counts."""
    return (outcome.excess, 0.0) if outcome.excess > 0 else (0.0, outcome.losses[0])
