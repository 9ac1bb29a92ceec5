"""Report of a comparison, as text and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from nni_benchmark.comparisons import (
    FEWEST_SEEDS,
    GROUPS,
    Cell,
    HeadToHead,
    RankTable,
    compare_with_best_peer,
    head_to_head,
    median_regrets,
    rank_table,
)
from nni_benchmark.problem import Problem
from nni_benchmark.runs import Runs
from nni_benchmark.suite import CLASSIC

DUELS: Final[Mapping[str, tuple[str, ...]]] = {
    "TPE": ("optuna-tpe", "optuna-tpe-univariate", "optuna-tpe-group"),
    "GPTuner": ("optuna-gp",),
    "SMAC": ("smac",),
    "NSGA2": ("optuna-nsga2",),
    "CmaEs": ("optuna-cma",),
    "ASHA": ("syne-asha",),
    "ASHA-stopping": ("syne-asha",),
    "BOHB": ("syne-bohb",),
}
"""Peers of the same algorithm, per searcher; of several, the best per cell counts."""


@dataclass(frozen=True, slots=True)
class Report:
    """Results of a comparison of searchers: median regrets, ranks, cells, head-to-heads."""

    regrets: dict[str, dict[int, dict[str, float]]]
    """Median regret by problem, number of trials and search."""
    ranks: tuple[RankTable, ...]
    cells: tuple[Cell, ...]
    """Cells of the selected searchers against their best peer."""
    duels: tuple[HeadToHead, ...]
    versions: dict[str, str]
    undecided: tuple[str, ...] = ()
    """Peers with too few seeds on some problem for a test."""

    def as_dict(self) -> dict[str, Any]:
        """Return the report as a JSON-ready dictionary, with None for infinite numbers."""
        return {
            "versions": self.versions,
            "regrets": {
                problem: {
                    str(after): {name: _finite(value) for name, value in medians.items()}
                    for after, medians in by_after.items()
                }
                for problem, by_after in self.regrets.items()
            },
            "ranks": [
                {
                    "group": table.group,
                    "after": table.after,
                    "problems": list(table.problems),
                    "mean_ranks": dict(zip(table.searchers, table.means, strict=True)),
                    "friedman_p": table.ranking.p_value,
                    "critical_difference": _finite(table.ranking.critical_difference),
                }
                for table in self.ranks
            ],
            "cells": [
                {key: _finite(value) for key, value in asdict(cell).items()} for cell in self.cells
            ],
            "undecided": list(self.undecided),
            "duels": [asdict(one) | {"mean_rank": _finite(one.mean_rank)} for one in self.duels],
        }

    def to_json(self) -> str:
        """Return the report as JSON text."""
        return json.dumps(self.as_dict(), indent=1, allow_nan=False)

    def to_text(self) -> str:
        """Return the report as text tables: regrets, ranks, comparisons with peers."""
        parts = [_regret_text(self.regrets)]
        parts += [_rank_text(table) for table in self.ranks]
        for name in dict.fromkeys(cell.searcher for cell in self.cells):
            parts.append(_cell_text(name, [cell for cell in self.cells if cell.searcher == name]))
        if self.cells and self.undecided:
            few = ", ".join(self.undecided)
            parts.append(
                f"No peer of a cell where they have fewer than {FEWEST_SEEDS} seeds: {few}"
            )
        if self.duels:
            parts.append(_head_to_head_text(self.duels))
        return "\n\n".join(part for part in parts if part) + "\n"


def report_of(
    runs: Runs, problems: Sequence[Problem], cells: Sequence[int], *, judge: Sequence[str] = ()
) -> Report:
    """Compute median regrets, mean ranks and comparisons with peers from recorded runs.

    Args:
        runs: runs of tuners and peers.
        problems: problems to report.
        cells: numbers of trials after which regrets are compared.
        judge: searchers whose cells against the best peer are listed.

    Returns:
        Median regrets, mean ranks, cells, and pairwise counts.

    Examples:
        >>> from nni_benchmark import chosen_problems, chosen_searchers, report_of, search_all
        >>> problems = chosen_problems(["branin"])
        >>> runs = search_all(chosen_searchers(["Random"]), problems, range(1), 5)
        >>> print(report_of(runs, problems, [5]).to_text())
        Median regret (@ trials)
                   Random
        branin @5    ...
    """
    names = [problem.name for problem in problems]
    ranks = [
        rank_table(runs, group, [one.name for one in problems if belongs(one)], after)
        for group, belongs in GROUPS.items()
        for after in cells
    ]
    return _made(runs, names, cells, [table for table in ranks if table], judge)


def schedule_report(runs: Runs, curves: Sequence[str], cells: Sequence[int]) -> Report:
    """Compute median regrets, mean ranks and head-to-heads of schedulers on learning curves."""
    ranks = [rank_table(runs, "curves", curves, after) for after in cells]
    return _made(runs, curves, cells, [table for table in ranks if table], ())


def _made(
    runs: Runs,
    names: Sequence[str],
    cells: Sequence[int],
    ranks: Sequence[RankTable],
    judge: Sequence[str],
) -> Report:
    peers = [name for name in runs.searchers if is_peer(name)]
    compared = [
        compare_with_best_peer(runs, searcher, peers, name, after)
        for searcher in judge
        for name in names
        for after in cells
    ]
    duels = [
        head_to_head(runs, name, rivals, names, cells)
        for name, rivals in DUELS.items()
        if name in runs.searchers and any(rival in runs.searchers for rival in rivals)
    ]
    regrets = {
        name: {after: medians for after in cells if (medians := median_regrets(runs, name, after))}
        for name in names
    }
    return Report(
        {name: by_after for name, by_after in regrets.items() if by_after},
        tuple(ranks),
        tuple(cell for cell in compared if cell),
        tuple(one for one in duels if one.wins + one.losses + one.ties),
        runs.versions,
        tuple(
            peer
            for peer in peers
            if any(
                0 < len(runs.regrets(peer, name, after)) < FEWEST_SEEDS
                for name in names
                for after in cells
            )
        ),
    )


def is_peer(name: str) -> bool:
    """Return whether a searcher is one of another library."""
    return name.startswith(("optuna-", "hyperopt-", "syne-")) or name == "smac"


def _finite(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
    lines = [
        "  ".join(
            text.rjust(width) if place else text.ljust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *rows)
    ]
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _regret_text(regrets: Mapping[str, Mapping[int, Mapping[str, float]]]) -> str:
    names = list(
        dict.fromkeys(
            name
            for by_after in regrets.values()
            for medians in by_after.values()
            for name in medians
        )
    )
    rows = [
        [f"{problem} @{after}", *(_number(medians.get(name)) for name in names)]
        for problem, by_after in regrets.items()
        for after, medians in by_after.items()
    ]
    return "Median regret (@ trials)\n" + _table(["", *names], rows) if rows else ""


def _rank_text(table: RankTable) -> str:
    ranked = table.ranking
    head = (
        f"Mean rank, {table.group} @{table.after}: {ranked.tasks} problems, Friedman "
        f"p = {ranked.p_value:.2g}, critical difference {ranked.critical_difference:.2f}"
    )
    pairs = zip(table.searchers, table.means, strict=True)
    return head + "\n" + _table(["", "rank"], [[name, f"{mean:.2f}"] for name, mean in pairs])


def _cell_text(name: str, cells: Sequence[Cell]) -> str:
    classic = [cell for cell in cells if cell.problem in CLASSIC]
    lines = [
        _tally(f"{name} against the best peer", cells),
        _tally("of these classic", classic),
    ]
    rows = [
        [
            f"{cell.problem} @{cell.after}",
            cell.verdict,
            _number(cell.median),
            cell.peer,
            _number(cell.peer_median),
            _number(cell.ratio),
            f"{cell.p_value:.3f}",
            str(cell.seeds),
        ]
        for cell in sorted(cells, key=lambda one: ("lost", "won", "even").index(one.verdict))
    ]
    head = ["", "verdict", "regret", "best peer", "regret", "ratio", "p", "seeds"]
    return "\n".join((*lines, _table(head, rows)))


def _tally(head: str, cells: Sequence[Cell]) -> str:
    count = len(cells)
    if not count:
        return f"{head}: no cells"
    lost = sum(cell.verdict == "lost" for cell in cells)
    won = sum(cell.verdict == "won" for cell in cells)
    worst = max(cells, key=lambda cell: cell.ratio)
    return (
        f"{head}: {count} cells, lost {lost} ({lost / count:.0%}), won {won} ({won / count:.0%}), "
        f"largest ratio {worst.ratio:.2f} ({worst.problem} @{worst.after})"
    )


def _head_to_head_text(duels: Sequence[HeadToHead]) -> str:
    rows = [
        [
            one.searcher,
            one.peer,
            str(one.wins),
            str(one.losses),
            str(one.ties),
            f"{one.mean_rank:.2f}",
        ]
        for one in duels
    ]
    head = ["", "against", "better", "worse", "equal", "mean rank of 2"]
    return "Cells by median regret\n" + _table(head, rows)
