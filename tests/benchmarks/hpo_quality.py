"""Figures of quality for `bench_hpo`: cells of `auto`, ten trials in parallel, ranks in pairs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from nni_benchmark import Problem, Runs
from nni_benchmark.comparisons import (
    EQUAL_FRACTION,
    MARGIN,
    Cell,
    CellResult,
    head_to_head,
    median_regrets,
)
from nni_benchmark.suite import CELLS, CLASSIC, suite_problems
from tests.benchmarks.figures import Figure, at_least, at_most

MEASURED: Final = Path(__file__).parents[1] / "assets" / "peers" / "quality.json"
MOST_LOST, LEAST_WON, LARGEST_RATIO = 20.0, 30.0, 2.0
IN_PARALLEL: Final = 10
LEAST_KEPT: Final = 0.9
"""Part of the gain over random search that ten trials at a time must keep."""
AFTER_PARALLEL: Final = 100
EVEN: Final = 1.5
"""Mean rank of two that are equally good."""
TPE_SETTINGS: Final = {
    "multivariate": "optuna-tpe",
    "univariate": "optuna-tpe-univariate",
    "group": "optuna-tpe-group",
}


def cell_figures(cells: Sequence[Cell], where: str) -> Iterator[Figure]:
    """Yield how many cells were lost and won, and the largest ratio of regrets."""
    if not cells:
        return
    lost = sum(cell.verdict == "lost" for cell in cells)
    won = sum(cell.verdict == "won" for cell in cells)
    worst = max(cells, key=lambda cell: cell.ratio)
    name, seeds = cells[0].searcher, sorted({cell.seeds for cell in cells})
    over = [cell for cell in cells if cell.ratio > LARGEST_RATIO]
    note = f"{len(cells)} cells, {seeds[0]} to {seeds[-1]} seeds"
    yield at_most(f"{name}, {where}: lost", 100 * lost / len(cells), MOST_LOST, " %", note)
    yield at_least(f"{name}, {where}: won", 100 * won / len(cells), LEAST_WON, " %", note)
    yield at_most(
        f"{name}, {where}: largest ratio of regrets",
        worst.ratio,
        LARGEST_RATIO,
        "",
        f"{worst.problem} @{worst.after} with_recorded {worst.peer}; {len(over)} cells are over",
    )


def measured_cells(runs: Runs, searcher: str, after: int) -> list[Cell]:
    """Return the cells beside the larger measurement of the peers, of which medians are known.

    A peer that was stopped earlier counts later as it stood: the bar never loosens. Without its
    seeds there is no test: more than a fifth better in the median is won, or lost.
    """
    measured = json.loads(MEASURED.read_text())["regrets"]
    cells = []
    for problem in CLASSIC:
        best = ("", math.inf)
        for cell in CELLS:
            regrets = measured[problem][str(cell)]
            best = min((best, *regrets.items()), key=lambda item: item[1])
            seeds = len(runs.regrets(searcher, problem, cell))
            if cell > after or not seeds:
                continue
            least = EQUAL_FRACTION * regrets["optuna-random"]
            own = max(least, median_regrets(runs, problem, cell)[searcher])
            bar = max(least, best[1])
            better, worse = own < (1 - MARGIN) * bar, bar < (1 - MARGIN) * own
            verdict: CellResult = "won" if better else "lost" if worse else "even"
            cells.append(Cell(searcher, problem, cell, own, best[0], bar, math.nan, seeds, verdict))
    return cells


def print_cells(cells: Iterable[Cell]) -> None:
    """Print cells one by one."""
    for cell in sorted(cells, key=lambda one: -one.ratio):
        print(
            f"   {f'{cell.problem} @{cell.after}':28} {cell.verdict:5} {cell.median:10.3g}   "
            f"{cell.peer_median:10.3g} {cell.peer:22} x {cell.ratio:.2f}"
        )


def parallel_figures(runs: Runs, tuner: str) -> Iterator[Figure]:
    """Yield by problem which part of the gain over random search ten trials at a time keep."""
    for problem in CLASSIC:
        medians = median_regrets(runs, problem, AFTER_PARALLEL)
        names = ("Random", tuner, f"{tuner}@{IN_PARALLEL}")
        if not medians.keys() >= set(names):
            continue
        chance, alone, together = (medians[name] for name in names)
        seeds = len(runs.regrets(names[2], problem, AFTER_PARALLEL))
        kept = (chance - together) / (chance - alone) if chance > alone else math.nan
        yield Figure(
            f"{tuner}, ten in parallel, {problem}",
            f"{kept:.3g}",
            f">= {LEAST_KEPT:g}",
            chance - together >= LEAST_KEPT * (chance - alone),
            f"regret {together:.3g}; alone {alone:.3g}, random {chance:.3g}; {seeds} seeds",
        )


def tpe_pair(runs: Runs, problems: Sequence[str], cells: Sequence[int]) -> Iterator[Figure]:
    """Yield the mean rank of TPE in a pair with each setting of Optuna's TPE."""
    everywhere = _with_group_everywhere(runs)
    for setting, peer in TPE_SETTINGS.items():
        yield from pair(everywhere, "TPE", peer, problems, cells, f"Optuna's TPE, {setting}")
    best = head_to_head(everywhere, "TPE", tuple(TPE_SETTINGS.values()), problems, cells)
    if not math.isnan(best.mean_rank):
        yield _rank_figure(
            "TPE against the best setting of each cell", best.mean_rank, best.wins, best.losses
        )


def pair(
    runs: Runs,
    searcher: str,
    peer: str,
    problems: Sequence[str],
    cells: Sequence[int],
    title: str = "",
) -> Iterator[Figure]:
    """Yield the mean rank of a search in a pair with a peer, over problems and cells."""
    found = head_to_head(runs, searcher, (peer,), problems, cells)
    if not math.isnan(found.mean_rank):
        what = f"{searcher} against {title or peer}"
        yield _rank_figure(what, found.mean_rank, found.wins, found.losses)


def _rank_figure(what: str, rank: float, wins: int, losses: int) -> Figure:
    note = f"better in {wins} cells, worse in {losses}"
    return Figure(f"mean rank, {what}", f"{rank:.3g}", f"< {EVEN:g}", rank < EVEN, note)


def _with_group_everywhere(runs: Runs) -> Runs:
    """Return runs with `group` on flat problems too, where it changes nothing."""
    found, flat = Runs(dict(runs.versions)), _flat(suite_problems().values())
    for run in runs:
        found.add(run)
        if run.searcher == TPE_SETTINGS["multivariate"] and run.problem in flat:
            found.add(replace(run, searcher=TPE_SETTINGS["group"]))
    return found


def _flat(problems: Iterable[Problem]) -> set[str]:
    return {problem.name for problem in problems if problem.flat}
