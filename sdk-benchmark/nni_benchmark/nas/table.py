"""Table of the accuracy of all 15,625 cells on digits, and an evaluator that looks them up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from nni.mutable import Categorical, Sample
from nni.nas.benchmark import BenchmarkEvaluator, SlimBenchmarkSpace
from nni.nas.benchmark.nasbench201.constants import EDGES, PRIMITIVES
from nni_benchmark.nas.cells import number_of
from nni_benchmark.nas.surrogate import HUNDREDTHS, TABLE_FILE, FitQuality


class DigitsTable:
    """Table of accuracies (percent) of all NAS cells, predicted by a surrogate, read from a file.

    Args:
        path: file of the table; None for the one that comes with the benchmark.

    Examples:
        >>> from nni_benchmark.nas.cells import cell_of
        >>> table = DigitsTable()
        >>> table.accuracy(cell_of(0)) < table.accuracy(dict.fromkeys(cell_of(0), "conv_3x3"))
        True
        >>> table.quality["valid_acc"].cells
        240
    """

    def __init__(self, path: str | Path | None = None) -> None:
        with np.load(TABLE_FILE if path is None else path, allow_pickle=False) as file:
            self._columns = {field: file[field] for field in ("valid_acc", "test_acc")}
            quality = json.loads(str(file["quality"]))
        self.quality = {field: FitQuality(**one) for field, one in quality.items()}
        """Quality of the fit by field."""

    def accuracy(self, cell: Mapping[str, str], field: str = "valid_acc") -> float:
        """Return a cell's accuracy in percent, by default on validation images.

        Args:
            cell: edge, such as `0_1`, to operation.
            field: `valid_acc` or `test_acc`.

        Returns:
            Percent.
        """
        return float(self._columns[field][number_of(cell)]) / HUNDREDTHS


@cache
def _table() -> DigitsTable:
    return DigitsTable()


class DigitsBenchmark(BenchmarkEvaluator):
    """Evaluator that looks accuracies up in the table; a search takes seconds and trains nothing.

    Args:
        metric: `valid_acc` or `test_acc`; it is reported as a number from 0 to 1.
        noisy: add the noise of a training to each result, as trainings with other seeds have it.
        seed: seed of the noise.

    Examples:
        >>> import nni
        >>> evaluator = DigitsBenchmark()
        >>> sample = dict.fromkeys(evaluator.names(), "none")
        >>> evaluator.evaluate(sample) < 0.2
        [...] INFO (nni) Final result: 0...
        True
    """

    def __init__(
        self, metric: str = "valid_acc", *, noisy: bool = False, seed: int | None = None
    ) -> None:
        super().__init__(metric, seed=seed)
        self.noisy = noisy

    def default_space(self) -> SlimBenchmarkSpace:
        """Return the space of all 15,625 cells: a categorical choice for each edge."""
        return SlimBenchmarkSpace(
            {edge: Categorical(list(PRIMITIVES), label=edge) for edge in EDGES}
        )

    def names(self) -> Sequence[str]:
        """Return the names of the edges."""
        return EDGES

    def trials(self, sample: Sample) -> list[dict[str, Any]]:
        """Return a list of one dict: `valid_acc`, `test_acc` in percent, with noise if `noisy`."""
        table = _table()
        fields = ("valid_acc", "test_acc")
        noise = {
            field: self._random.gauss(0, table.quality[field].noise) if self.noisy else 0.0
            for field in fields
        }
        return [
            {
                field: min(100.0, max(0.0, table.accuracy(sample, field) + noise[field]))
                for field in fields
            }
        ]
