"""Who won: cells of a comparison, and ranks over groups of problems."""

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
"""Part of a median regret by which another one must be smaller to count as better."""
EQUAL_PART: Final = 1e-3
"""Of random search's median regret, below which regrets count as equal."""
FEWEST_SEEDS: Final = 6
"""Pairs from which the test can say anything at 5 %: 2 / 2^6 = 3 %."""
RANDOM_NAMES: Final = ("Random", "optuna-random")

Verdict = Literal["won", "even", "lost"]
_SPECIAL: Final = frozenset({"constrained", "limited", "objectives"})
GROUPS: Final[Mapping[str, Callable[[Problem], bool]]] = {
    "classic": lambda problem: problem.name in CLASSIC,
    "flat": lambda problem: problem.flat and not problem.kinds & _SPECIAL,
    "nested": lambda problem: not problem.flat,
    "restricted": lambda problem: bool(problem.kinds & {"constrained", "limited"}),
    "objectives": lambda problem: "objectives" in problem.kinds,
}
"""Problems that are ranked together: not every search takes every kind."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One search against the best of its peers, on one problem after so many trials."""

    searcher: str
    problem: str
    after: int
    median: float
    """Regret of the search; like all here at least a thousandth of random search's."""
    peer: str
    """The one with the least median regret on the same seeds."""
    peer_median: float
    p_value: float
    seeds: int
    verdict: Verdict

    @property
    def ratio(self) -> float:
        """Regret relative to the peer's; 1 if both count as equal."""
        return _ratio(self.median, self.peer_median)


def _ratio(left: float, right: float) -> float:
    if left == right:
        return 1.0
    return left / right if right > 0 else math.inf


def judged(
    runs: Runs, searcher: str, peers: Sequence[str], problem: str, after: int
) -> Cell | None:
    """Compare a search with the best of its peers.

    Lost is a cell if the peer is better by a paired Wilcoxon test over the seeds (p < 0.05) and by
    more than 20 % in median regret; won by the same test.

    Returns:
        None if the search and a peer have fewer than six seeds in common.
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
                _verdict(medians, p_value),
            )
        )
    # Beside many seeds of one peer there may be few of another: its median on those counts.
    return min(cells, key=lambda cell: (cell.peer_median, cell.peer), default=None)


def _verdict(medians: tuple[float, float], p_value: float) -> Verdict:
    own, other = medians
    if p_value >= SIGNIFICANT:
        return "even"
    if other < (1 - MARGIN) * own:
        return "lost"
    return "won" if own < (1 - MARGIN) * other else "even"


def equal_below(runs: Runs, problem: str, after: int) -> float:
    """Return the regret up to which all count as equal; 0 if no random search was run."""
    for name in RANDOM_NAMES:
        regrets = runs.regrets(name, problem, after)
        finite = [regret for regret in regrets.values() if math.isfinite(regret)]
        if finite:
            return EQUAL_PART * statistics.median(finite)
    return 0.0


def _floored(regrets: Mapping[int, float], least: float) -> dict[int, float]:
    return {seed: max(regret, least) for seed, regret in regrets.items()}


def median_regrets(runs: Runs, problem: str, after: int) -> dict[str, float]:
    """Return the median regret of every search that has runs of this length."""
    least = equal_below(runs, problem, after)
    found: dict[str, float] = {}
    for name in runs.searchers:
        regrets = _floored(runs.regrets(name, problem, after), least)
        if regrets:
            found[name] = statistics.median(regrets.values())
    return found


@dataclass(frozen=True, slots=True)
class RankTable:
    """Mean ranks of searches over problems that all of them took."""

    group: str
    after: int
    problems: tuple[str, ...]
    searchers: tuple[str, ...]
    """The best first."""
    means: tuple[float, ...]
    ranking: Ranking


def rank_table(
    runs: Runs, group: str, problems: Sequence[str], after: int, searchers: Sequence[str] = ()
) -> RankTable | None:
    """Rank searches by their median regrets.

    Args:
        runs: what is compared.
        group: name of the table.
        problems: to rank on; those that no search was run on are left out.
        after: so many trials.
        searchers: to rank; none: all. Left out are those that lack a problem, or have fewer than
            half of the seeds that another one has.

    Returns:
        None if fewer than two searches or no problem is left.
    """
    by_problem = {name: _by_searcher(runs, name, after) for name in problems}
    by_problem = {name: found for name, found in by_problem.items() if found}
    chosen = [
        name
        for name in (searchers or runs.searchers)
        if by_problem and all(_often(found, name) for found in by_problem.values())
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


def _often(found: Mapping[str, Mapping[int, float]], name: str) -> bool:
    """Return whether a search has at least half of the seeds that the best known one has."""
    return name in found and 2 * len(found[name]) >= max(len(one) for one in found.values())


def _medians(regrets: Sequence[Mapping[int, float]], least: float) -> list[float]:
    """Return the median of each search over the seeds that all have; over its own if none is."""
    common = set(regrets[0]).intersection(*regrets)
    return [max(least, statistics.median(one[seed] for seed in (common or one))) for one in regrets]


@dataclass(frozen=True, slots=True)
class Duel:
    """One search against one peer, over all cells that both have."""

    searcher: str
    peer: str
    wins: int
    """Cells in which its median regret is less."""
    losses: int
    ties: int

    @property
    def mean_rank(self) -> float:
        """Of the search among the two, from 1 to 2."""
        cells = self.wins + self.losses + self.ties
        return (self.wins + 1.5 * self.ties + 2 * self.losses) / cells if cells else math.nan


def duel(
    runs: Runs, searcher: str, peers: Sequence[str], problems: Sequence[str], cells: Sequence[int]
) -> Duel:
    """Compare with one peer, or with several as if always the best of them had been used.

    Only seeds count that all have on a problem.
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
    return Duel(searcher, " | ".join(peers), wins, losses, ties)
