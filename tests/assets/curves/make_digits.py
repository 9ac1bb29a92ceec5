"""Makes `digits_mlp.json`: a small neural network on scikit-learn's digits, at 189 grid points.

Run: `OMP_NUM_THREADS=1 python tests/assets/curves/make_digits.py`; it takes one to three minutes.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sklearn
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from nni.hpo.simulation.curve_table import tabulate

EPOCHS = 27
SPACE = {
    "learning_rate": {"_type": "loguniform", "_value": [1e-4, 1e-1]},
    "alpha": {"_type": "loguniform", "_value": [1e-5, 1e-1]},
    "hidden": {"_type": "choice", "_value": [8, 32, 128]},
    "batch_size": {"_type": "choice", "_value": [16, 64, 256]},
}
GRID = {
    "learning_rate": [1e-4, 3.2e-4, 1e-3, 3.2e-3, 1e-2, 3.2e-2, 1e-1],
    "alpha": [1e-5, 1e-3, 1e-1],
}


def curves(data: Any) -> Any:
    """Give the function that trains with a configuration."""
    train_x, test_x, train_y, test_y = data

    def train(parameters: dict[str, Any]) -> Iterator[float]:
        model = MLPClassifier(
            (parameters["hidden"],),
            learning_rate_init=parameters["learning_rate"],
            alpha=parameters["alpha"],
            batch_size=parameters["batch_size"],
            random_state=0,
        )
        for _ in range(EPOCHS):
            model.partial_fit(train_x, train_y, classes=range(10))
            yield float(model.score(test_x, test_y))

    return train


def main() -> int:
    """Train everything and write the table."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    digits = load_digits()
    data = train_test_split(digits.data / 16, digits.target, test_size=0.33, random_state=0)
    about = (
        f"scikit-learn {sklearn.__version__} MLPClassifier on load_digits (1,203 train, 594 "
        "validation): validation accuracy after each epoch; one thread; make_digits.py"
    )
    table = tabulate(SPACE, GRID, curves(data), about=about, clock_s=time.process_time)
    path = Path(__file__).with_name("digits_mlp.json")
    table.save(path)
    print(f"{path}: {len(table.curves)} curves of {table.steps} epochs, best {table.best_value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
