"""Table of all cells."""

from __future__ import annotations

import pytest

from nni.nas.evaluator.trial_reports import reports_to
from nni_benchmark.nas.cells import CELLS, cell_of
from nni_benchmark.nas.surrogate import TABLE_FILE
from nni_benchmark.nas.table import DigitsBenchmark, DigitsTable


def evaluated(evaluator: DigitsBenchmark, number: int) -> float:
    with reports_to(None, print, lambda metric: None):
        return evaluator.evaluate(cell_of(number))


def test_table_has_all_cells_in_a_small_file() -> None:
    table = DigitsTable()

    accuracies = [table.accuracy(cell_of(number)) for number in range(CELLS)]

    assert len(accuracies) == 15_625
    assert min(accuracies) >= 0
    assert max(accuracies) <= 100
    assert TABLE_FILE.stat().st_size < 200_000


def test_evaluator_reports_the_table_as_a_fraction() -> None:
    assert evaluated(DigitsBenchmark(), 4711) == pytest.approx(
        DigitsTable().accuracy(cell_of(4711)) / 100
    )
    assert evaluated(DigitsBenchmark("test_acc"), 4711) == pytest.approx(
        DigitsTable().accuracy(cell_of(4711), "test_acc") / 100
    )


def test_noise_repeats_with_its_seed() -> None:
    first, second = (DigitsBenchmark(noisy=True, seed=3) for _ in range(2))
    found = [evaluated(first, 4711) for _ in range(5)]

    assert found == [evaluated(second, 4711) for _ in range(5)]
    assert len(set(found)) == 5
    assert all(0 <= one <= 1 for one in found)


def test_space_has_every_cell() -> None:
    assert len(list(DigitsBenchmark().default_space().grid())) == CELLS
