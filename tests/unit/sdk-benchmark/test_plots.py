"""Plots of a comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from nni_benchmark.comparisons import rank_table
from nni_benchmark.runs import Run, Runs

pytest.importorskip("matplotlib")

PNG = b"\x89PNG"


def test_regrets_and_ranks_are_drawn_also_where_there_is_none(tmp_path: Path) -> None:
    from nni_benchmark.plots import save_ranks, save_regrets

    runs = Runs()
    for name, changes in {"a": ((1, 2.0), (3, 0.0)), "b": ()}.items():
        runs.add(Run(name, "p", 0, 5, changes))
    table = rank_table(runs, "group", ["p"], 5)
    assert table is not None

    save_regrets(runs, "p", tmp_path / "regret.png")
    save_ranks(table, tmp_path / "rank.png")

    assert (tmp_path / "regret.png").read_bytes().startswith(PNG)
    assert (tmp_path / "rank.png").read_bytes().startswith(PNG)
