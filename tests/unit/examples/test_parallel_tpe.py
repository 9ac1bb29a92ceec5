"""The example's study runs with fewer trials, and writes its table and its plot."""

import csv
from pathlib import Path

from tests.support.scripts import Scripts, scripts

__all__ = ["scripts"]  # a fixture


def test_study_writes_a_row_for_each_liar_and_concurrency(scripts: Scripts, tmp_path: Path) -> None:
    printed = scripts("parallel-tpe/study.py", "--seeds", 1, "--trials", 40, "--concurrency", 5, 20)

    with (tmp_path / "parallel-tpe.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 3
    assert len(printed.splitlines()) == 1 + len(rows)
    assert all(float(row["mean"]) >= 0 for row in rows)
    # Points drawn evenly have a mean of 54.
    assert all(float(row["mean"]) < 10 for row in rows if row["function"] == "Branin")
    assert (tmp_path / "parallel-tpe.png").stat().st_size > 1000
