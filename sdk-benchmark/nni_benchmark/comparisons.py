"""Comparisons of searchers: tests against the best peer, mean ranks, and pairwise counts."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from nni_benchmark.problem import Problem
from nni_benchmark.runs import Runs
from nni_benchmark.significance import Ranking, ranking, wilcoxon
from nni_benchmark.suite import CLASSIC

SIGNIFICANT: Final = 0.05
MARGIN: Final = 0.2
"""Least relative difference of median regrets that counts as better."""
EQUAL_FRACTION: Final = 1e-3
"""Fraction of random search's median regret below which regrets count as equal."""
FEWEST_SEEDS: Final = 6
"""Fewest pairs for a significant test at 5 %: its least p-value is 2 / 2^6 = 3 %."""
RANDOM_NAMES: Final = ("Random", "optuna-random")

CellResult = Literal["won", "even", "lost"]
"""Result of the paired test of one searcher against one peer."""
_SPECIAL: Final = frozenset({"constrained", "limited", "objectives"})
GROUPS: Final[Mapping[str, Callable[[Problem], bool]]] = {
    "classic": lambda problem: problem.name in CLASSIC,
    "flat": lambda problem: problem.flat and not problem.kinds & _SPECIAL,
    "nested": lambda problem: not problem.flat,
    "restricted": lambda problem: bool(problem.kinds & {"constrained", "limited"}),
    "objectives": lambda problem: "objectives" in problem.kinds,
}
"""Groups of problems that are ranked together, since not every searcher supports every kind."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Comparison of one searcher's median regret with its best peer's, on one problem."""

    searcher: str
    problem: str
    after: int
    median: float
    """Median regret of the searcher, clipped from below at `EQUAL_FRACTION` of random search's."""
    peer: str
    """Peer with the least median regret on the same seeds."""
    peer_median: float
    p_value: float
    seeds: int
    verdict: CellResult

    @property
    def ratio(self) -> float:
        """Median regret relative to the peer's; 1 if both count as equal."""
        return _ratio(self.median, self.peer_median)


def _ratio(left: float, right: float) -> float:
    if left == right:
        return 1.0
    return left / right if right > 0 else math.inf


def compare_with_best_peer(
    runs: Runs, searcher: str, peers: Sequence[str], problem: str, after: int
) -> Cell | None:
    """Return the `Cell` of a searcher against its best peer over common seeds; None below six.

    A cell is lost if the peer is better by a paired Wilcoxon test over the seeds (p < 0.05) and by
    more than 20 % in median regret; it is won by the same criterion.

    Returns:
        None if no peer has six seeds in common with the searcher.
    """
    least = equal_below(runs, problem, after)
    own = _floored(runs.regrets(searcher, problem, after), least)
    cells: list[Cell] = []
    for peer in peers:
        other = _floored(runs.regrets(peer, problem, after), least)
        seeds = sorted(own.keys() & other.keys())
        if peer == searcher or len(seeds) < FEWEST_SEEDS:
            continue
        left, right = [own[seed] for seed in seeds], [other[seed] for seed in seeds]
        medians = statistics.median(left), statistics.median(right)
        p_value = wilcoxon(left, right)
        cells.append(
            Cell(
                searcher,
                problem,
                after,
                medians[0],
                peer,
                medians[1],
                p_value,
                len(seeds),
                _cell_result(medians, p_value),
            )
        )
    # Peers may have different seeds; each median is over the common ones.
    return min(cells, key=lambda cell: (cell.peer_median, cell.peer), default=None)


def _cell_result(medians: tuple[float, float], p_value: float) -> CellResult:
    own, other = medians
    if p_value >= SIGNIFICANT:
        return "even"
    if other < (1 - MARGIN) * own:
        return "lost"
    return "won" if own < (1 - MARGIN) * other else "even"


def equal_below(runs: Runs, problem: str, after: int) -> float:
    """Return the regret that counts as 0: 0.1 % of random search's median; 0 without its runs."""
    for name in RANDOM_NAMES:
        regrets = runs.regrets(name, problem, after)
        finite = [regret for regret in regrets.values() if math.isfinite(regret)]
        if finite:
            return EQUAL_FRACTION * statistics.median(finite)
    return 0.0


def _floored(regrets: Mapping[int, float], least: float) -> dict[int, float]:
    return {seed: max(regret, least) for seed, regret in regrets.items()}


def median_regrets(runs: Runs, problem: str, after: int) -> dict[str, float]:
    """Return `{searcher: median regret >= equal_below}` after some trials; skip empty ones."""
    least = equal_below(runs, problem, after)
    found: dict[str, float] = {}
    for name in runs.searchers:
        regrets = _floored(runs.regrets(name, problem, after), least)
        if regrets:
            found[name] = statistics.median(regrets.values())
    return found


@dataclass(frozen=True, slots=True)
class RankTable:
    """Mean ranks of searchers over a group of problems, with their significance."""

    group: str
    after: int
    problems: tuple[str, ...]
    searchers: tuple[str, ...]
    """Searchers, best first."""
    means: tuple[float, ...]
    ranking: Ranking


def rank_table(
    runs: Runs, group: str, problems: Sequence[str], after: int, searchers: Sequence[str] = ()
) -> RankTable | None:
    """Return searchers' mean ranks by median regret, best first, with tests; None: fewer than two.

    Args:
        runs: the runs.
        group: name of the table.
        problems: names of problems; those without runs are left out.
        after: number of trials.
        searchers: searchers to rank, all if empty; those that lack a problem, or have fewer than
            half of the seeds of another one, are left out.

    Returns:
        None if fewer than two searchers or no problem is left.
    """
    by_problem = {name: _by_searcher(runs, name, after) for name in problems}
    by_problem = {name: found for name, found in by_problem.items() if found}
    chosen = [
        name
        for name in (searchers or runs.searchers)
        if by_problem and all(_has_enough_seeds(found, name) for found in by_problem.values())
    ]
    if len(chosen) < 2:  # noqa: PLR2004 - nothing to rank
        return None
    rows = [
        _medians([found[name] for name in chosen], equal_below(runs, problem, after))
        for problem, found in by_problem.items()
    ]
    found = ranking(rows)
    order = sorted(range(len(chosen)), key=lambda place: found.means[place])
    return RankTable(
        group,
        after,
        tuple(by_problem),
        tuple(chosen[place] for place in order),
        tuple(found.means[place] for place in order),
        found,
    )


def _by_searcher(runs: Runs, problem: str, after: int) -> dict[str, dict[int, float]]:
    found = {name: runs.regrets(name, problem, after) for name in runs.searchers}
    return {name: regrets for name, regrets in found.items() if regrets}


def _has_enough_seeds(found: Mapping[str, Mapping[int, float]], name: str) -> bool:
    """Return whether a searcher has at least half of the largest number of seeds."""
    return name in found and 2 * len(found[name]) >= max(len(one) for one in found.values())


def _medians(regrets: Sequence[Mapping[int, float]], least: float) -> list[float]:
    """Return medians >= `least` of searchers over their common seeds; if none, over their own."""
    common = set(regrets[0]).intersection(*regrets)
    return [max(least, statistics.median(one[seed] for seed in (common or one))) for one in regrets]


@dataclass(frozen=True, slots=True)
class HeadToHead:
    """Wins, losses and ties of a searcher against the best of one or more peers."""

    searcher: str
    peer: str
    wins: int
    """Number of cells with a smaller median regret."""
    losses: int
    ties: int

    @property
    def mean_rank(self) -> float:
        """Mean rank of the searcher among the two, from 1 to 2."""
        cells = self.wins + self.losses + self.ties
        return (self.wins + 1.5 * self.ties + 2 * self.losses) / cells if cells else math.nan


def head_to_head(
    runs: Runs, searcher: str, peers: Sequence[str], problems: Sequence[str], cells: Sequence[int]
) -> HeadToHead:
    """Count wins, losses, ties of a searcher's median regrets against the best peer's, per cell.

    Only seeds that all have on a problem count.
    """
    wins = losses = ties = 0
    for problem in problems:
        for after in cells:
            least = equal_below(runs, problem, after)
            own = _floored(runs.regrets(searcher, problem, after), least)
            others = [_floored(runs.regrets(peer, problem, after), least) for peer in peers]
            others = [other for other in others if other.keys() & own.keys()]
            if not others:
                continue
            seeds = set(own).intersection(*others)
            if not seeds:
                continue
            left = statistics.median(own[seed] for seed in seeds)
            right = min(statistics.median(other[seed] for seed in seeds) for other in others)
            wins, losses = wins + (left < right), losses + (left > right)
            ties += left == right
    return HeadToHead(searcher, " | ".join(peers), wins, losses, ties)
