"""Surrogate of the trained cells, and the table of all cells that it fills.

`python -m nni_benchmark.nas.surrogate` fits it to the committed trainings, writes the table, and
prints the quality of the fit, which is stored in the table.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nni_benchmark.nas.cells import all_features
from nni_benchmark.nas.trained_cells import TrainedCell, read_trained

DATA: Final = Path(__file__).parents[1] / "data"
TRAINED_FILE: Final = DATA / "nas-trained-cells.json"
TABLE_FILE: Final = DATA / "nas-digits-table.npz"
HUNDREDTHS: Final = 100
"""Accuracies are stored as whole hundredths of a percent."""
_TREES: Final = 300
_FOLDS: Final = 10
_SEED: Final = 0

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FitQuality:
    """Cross-validated quality of the surrogate: R2, error in percent, rank correlation, seed noise.

    Examples:
        >>> FitQuality(240, 0.8, 3.0, 0.7, 2.0).cells
        240
    """

    cells: int
    """Number of trained cells."""
    r_squared: float
    """Explained part of the variance, in ten-fold cross-validation."""
    mean_absolute_error: float
    """Mean absolute error, in ten-fold cross-validation."""
    kendall_tau: float
    """Rank correlation, in ten-fold cross-validation."""
    noise: float
    """Standard deviation between trainings of one cell with different seeds."""


def fitted(trained: Sequence[TrainedCell], field: str) -> tuple[Vector, FitQuality]:
    """Fit a forest to trained cells; return predictions for all cells and cross-validated quality.

    Args:
        trained: trainings; those of one cell are averaged.
        field: `valid_acc` or `test_acc`.

    Returns:
        `(15625,)`, from 0 to 100; and the quality.
    """
    from scipy.stats import kendalltau
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.model_selection import KFold, cross_val_predict

    by_cell: dict[int, list[float]] = {}
    for one in trained:
        by_cell.setdefault(one.number, []).append(getattr(one, field))
    numbers = np.array(list(by_cell))
    accuracies = np.array([np.mean(values) for values in by_cell.values()])
    features = all_features()[numbers]
    forest = ExtraTreesRegressor(_TREES, min_samples_leaf=2, random_state=_SEED)
    folds = KFold(_FOLDS, shuffle=True, random_state=_SEED)
    guessed = cross_val_predict(forest, features, accuracies, cv=folds)
    errors = guessed - accuracies
    pairs = [values for values in by_cell.values() if len(values) > 1]
    quality = FitQuality(
        len(numbers),
        float(1 - np.mean(errors**2) / np.var(accuracies)),
        float(np.mean(np.abs(errors))),
        float(kendalltau(guessed, accuracies).statistic),
        float(np.sqrt(np.mean([np.var(values, ddof=1) for values in pairs]))),
    )
    predicted: Vector = forest.fit(features, accuracies).predict(all_features())
    return predicted, quality


def main() -> int:
    """Fit the surrogate, write the table file and print the quality; return 0."""
    trained = read_trained(TRAINED_FILE)
    columns: dict[str, Any] = {}
    quality = {}
    for field in ("valid_acc", "test_acc"):
        predicted, quality[field] = fitted(trained, field)
        columns[field] = np.round(predicted * HUNDREDTHS).astype(np.uint16)
    text = json.dumps({field: asdict(one) for field, one in quality.items()}, indent=1)
    np.savez_compressed(TABLE_FILE, **columns, quality=np.array(text))
    sys.stdout.write(f"{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
