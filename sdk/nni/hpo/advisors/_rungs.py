"""Rungs of asynchronous successive halving: results at one budget, and their promotion.

Pure, without I/O or randomness. A rung holds the results at its budget; the best of every `eta`
results is promoted, or continues, as soon as that many are there.

Source: Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020, algorithm 2;
for several objectives: Schmucker et al., Multi-objective Asynchronous Successive Halving, 2021.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from nni.hpo.pareto import crowding_distances, ranks

Losses: TypeAlias = tuple[float, ...]
"""One number per objective, smaller is better; infinite without a result."""

Order: TypeAlias = Callable[[Sequence[Losses]], list[int]]
"""Ranking: returns positions of results, best first."""

_GUARD: Final = 1e-6
"""Tolerance for budgets that rounding puts a little above the greatest one."""


def budgets_of(least: float, greatest: float, eta: float, skipped: int) -> tuple[int, ...]:
    """Return one bracket's rung budgets: rounded, ascending by `eta`, the last is `greatest`.

    Args:
        least: budget of the first rung of the first bracket, >= 1.
        greatest: budget of the last rung.
        eta: factor between the budgets of two rungs, > 1.
        skipped: number of rungs that the bracket leaves out at the bottom.
    """
    count = math.floor(math.log(greatest / least, eta) + _GUARD) + 1
    budgets = [round(least * eta**rung) for rung in range(skipped, count)]
    if not budgets or budgets[-1] < greatest:
        budgets.append(round(greatest))
    return tuple(dict.fromkeys(budgets))


def best_first(results: Sequence[Losses]) -> list[int]:
    """Return indices of results by ascending first loss; equal ones in the order of arrival."""
    return sorted(range(len(results)), key=lambda index: results[index][0])


def front_first(results: Sequence[Losses]) -> list[int]:
    """Return positions by front, then by descending crowding distance; infinite losses come last.

    Results that are infinite in an objective come last.
    """
    finite = [index for index, losses in enumerate(results) if all(map(math.isfinite, losses))]
    order: list[int] = []
    fronts = ranks([results[index] for index in finite])
    for front in range(max(fronts, default=-1) + 1):
        members = [index for index, rank in zip(finite, fronts, strict=True) if rank == front]
        distances = crowding_distances([results[index] for index in members])
        order += [members[i] for i in sorted(range(len(members)), key=lambda i: -distances[i])]
    known = set(finite)
    return order + [index for index in range(len(results)) if index not in known]


class Rung:
    """Results so far at one budget; promotes one at a time, once in the best `1 / eta` of them.

    Args:
        eta: one of `eta` results is promoted, > 1.
        order: ranking of results.
    """

    def __init__(self, eta: float, order: Order) -> None:
        self._eta = eta
        self._order = order
        self._names: list[int] = []
        self._results: list[Losses] = []
        self._promoted: set[int] = set()

    def __len__(self) -> int:
        """Return the number of results."""
        return len(self._names)

    def add(self, name: int, losses: Losses) -> None:
        """Add the result of the configuration with this name; called once per name."""
        self._names.append(name)
        self._results.append(losses)

    def promote(self) -> int | None:
        """Mark as promoted, and return, the best unpromoted name of the top `1 / eta`; or None."""
        places = int(len(self._names) / self._eta + _GUARD)
        for position in self._order(self._results)[:places]:
            name = self._names[position]
            if name not in self._promoted and all(map(math.isfinite, self._results[position])):
                self._promoted.add(name)
                return name
        return None

    def goes_on(self, name: int) -> bool:
        """Return whether a configuration is in the best `1 / eta`; True below `eta` results."""
        places = int(len(self._names) / self._eta + _GUARD)
        if places == 0:
            return True  # too few to compare with
        best = self._order(self._results)[:places]
        return any(self._names[position] == name for position in best)
