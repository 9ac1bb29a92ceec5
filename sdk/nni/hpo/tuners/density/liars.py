"""Constant liar: made-up results of running trials, from the losses known so far.

Source: Ginsbourger, Le Riche and Carraro, Kriging Is Well-Suited to Parallelize Optimization, 2010,
section 4.2.
"""

import sys
from dataclasses import dataclass
from typing import Final

from nni.hpo.tuners.density.rankings import Outcome

LIARS: Final = ("min", "max", "mean")
"""Kinds of made-up results."""


@dataclass(slots=True)
class Extent:
    """Least, largest and mean loss, per objective, of feasible results."""

    count: int = 0
    _least: tuple[float, ...] = ()
    _largest: tuple[float, ...] = ()
    _sums: tuple[float, ...] = ()

    def add(self, outcome: Outcome) -> None:
        """Extend least, largest and sum by a result's losses, unless it is infeasible."""
        if outcome.excess > 0:
            return
        losses = outcome.losses
        if not self.count:
            self._least = self._largest = self._sums = losses
        else:
            self._least = tuple(map(min, self._least, losses))
            self._largest = tuple(map(max, self._largest, losses))
            self._sums = tuple(a + b for a, b in zip(self._sums, losses, strict=True))
        self.count += 1

    def lie(self, kind: str) -> Outcome:
        """Return the least, largest or mean losses as a made-up result; the worst before any.

        Args:
            kind: one of `LIARS`. While no result is feasible it has no effect: running trials rank
                behind all results.
        """
        if not self.count:
            return Outcome((), sys.float_info.max)
        if kind == "min":
            return Outcome(self._least)
        if kind == "max":
            return Outcome(self._largest)
        return Outcome(tuple(total / self.count for total in self._sums))
