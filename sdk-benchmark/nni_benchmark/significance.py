"""Statistical tests: Wilcoxon's for pairs, Friedman's and Nemenyi's for mean ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

_STUDENTIZED: Final = (
    1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164, 3.219, 3.268, 3.313, 3.354,
    3.391, 3.426, 3.458, 3.489, 3.517, 3.544,
)  # fmt: skip
"""Critical values of Nemenyi's test at 5 % for 2 to 20 searchers, as Demšar's table 5."""
_LARGEST_EXACT: Final = 50
"""Most pairs for Wilcoxon's exact distribution."""


def ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value, 1 for the least; equal values get their mean rank.

    The sum is always `n (n + 1) / 2`.
    """
    order = sorted(range(len(values)), key=lambda place: values[place])
    found = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for place in order[start:end]:
            found[place] = (start + 1 + end) / 2
        start = end
    return found


def wilcoxon(left: Sequence[float], right: Sequence[float]) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test, exact to 50 pairs; 1 if equal.

    Exact also with ties, over all sign assignments; equal pairs are dropped. 1 if all are equal.

    Source: Wilcoxon, Individual Comparisons by Ranking Methods, 1945.
    Departures: for more than 50 pairs the normal approximation.
    """
    # Pairs of infinities are equal, and their difference would be NaN.
    pairs = [(a, b) for a, b in zip(left, right, strict=True) if a != b]
    if not pairs:
        return 1.0
    gaps = [a - b for a, b in pairs]
    # Doubled ranks of ties are integers.
    doubled = [round(2 * rank) for rank in ranks([abs(gap) for gap in gaps])]
    positive = sum(rank for rank, gap in zip(doubled, gaps, strict=True) if gap > 0)
    smaller = min(positive, sum(doubled) - positive)
    if len(doubled) > _LARGEST_EXACT:
        deviation = math.sqrt(sum(rank * rank for rank in doubled)) / 2
        return math.erfc((sum(doubled) / 2 - smaller) / deviation / math.sqrt(2))
    counts = np.zeros(sum(doubled) + 1)
    counts[0] = 1.0
    for rank in doubled:
        counts[rank:] = counts[rank:] + counts[:-rank]
    return min(1.0, 2 * float(counts[: smaller + 1].sum() / counts.sum()))


@dataclass(frozen=True, slots=True)
class Ranking:
    """Mean ranks of searchers, Friedman's p-value and Nemenyi's critical difference."""

    means: tuple[float, ...]
    """Mean rank of each searcher."""
    tasks: int
    p_value: float
    """P-value of Friedman's test that all are equal."""
    critical_difference: float
    """Nemenyi's critical difference of two mean ranks at 5 %; NaN for more than 20 searchers."""


def ranking(table: Sequence[Sequence[float]]) -> Ranking:
    """Rank searchers on each task; return mean ranks with Friedman's and Nemenyi's tests.

    Args:
        table: a row per task, a column per searcher; at least one row and two columns.

    Source: Demšar, Statistical Comparisons of Classifiers over Multiple Data Sets, 2006.
    """
    count, tasks = len(table[0]), len(table)
    placed = np.array([ranks(row) for row in table])
    means = placed.mean(axis=0)
    middle = (count + 1) / 2
    # Ties reduce the variance of the ranks below that of 1 .. n.
    spread = float(((placed - middle) ** 2).sum()) / (count - 1)
    p_value = 1.0
    if spread > 0:
        statistic = tasks * tasks * float(((means - middle) ** 2).sum()) / spread
        p_value = chi_square_tail(statistic, count - 1)
    place = count - 2
    difference = math.nan
    if place < len(_STUDENTIZED):
        difference = _STUDENTIZED[place] * math.sqrt(count * (count + 1) / (6 * tasks))
    return Ranking(tuple(float(mean) for mean in means), tasks, p_value, difference)


def chi_square_tail(value: float, freedom: int) -> float:
    """Return the chi-square distribution's upper tail probability, by recursion."""
    half = value / 2
    if freedom % 2:
        chance, term, start = math.erfc(math.sqrt(half)), 2 * math.sqrt(half / math.pi), 3
        term *= math.exp(-half)
    else:
        chance, term, start = math.exp(-half), half * math.exp(-half), 4
    # Q(k + 2) = Q(k) + (x/2)^(k/2) e^(-x/2) / gamma(k/2 + 1)
    for degrees in range(start, freedom + 1, 2):
        chance += term
        term *= half / (degrees / 2)
    return min(1.0, chance)
