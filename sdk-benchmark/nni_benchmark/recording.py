"""Recorder of the tables: models of scikit-learn on its bundled data sets, over grids.

`python -m nni_benchmark record FOLDER [NAME ...]`; all of them take about ten minutes on one
core. Losses are errors (for `diabetes` 1 - R²) of three-fold cross-validation.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from nni.hpo.json_value import JsonValue
from nni.hpo.simulation.curve_table import CurveTable, tabulate
from nni_benchmark.problem import Configuration, choice, loguniform, randint, uniform
from nni_benchmark.tables import CURVES, DATA_SETS, MODELS, GridTable, write_text

_FOLDS: Final = 3
_ROWS: Final = 300
"""Rows of `digits300`, and most rows of other tables of losses."""
_EPOCHS: Final = 27


@dataclass(frozen=True, slots=True)
class TabulatedModel:
    """scikit-learn model whose losses are recorded: search space, grid, fixed arguments."""

    space: dict[str, JsonValue]
    grid: dict[str, list[float]]
    classifier: str
    """Classifier of scikit-learn, `module.name`."""
    regressor: str
    """Regressor of scikit-learn, `module.name`."""
    fixed: dict[str, JsonValue]
    """Arguments outside the space."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Names of arguments that differ from the space's."""

    def build(self, point: Configuration, *, regression: bool) -> Any:  # noqa: ANN401 - scikit-learn is untyped
        """Construct the untrained scikit-learn model of a configuration."""
        path = self.regressor if regression else self.classifier
        module, _, name = path.rpartition(".")
        chosen = {self.names.get(key, key): value for key, value in point.items()}
        return getattr(import_module(f"sklearn.{module}"), name)(**chosen, **self.fixed)


def _decades(low: int, high: int, per_decade: int) -> list[float]:
    count = (high - low) * per_decade + 1
    return [float(f"{value:.3g}") for value in np.logspace(low, high, count)]


TABULATED_MODELS: Final[dict[str, TabulatedModel]] = {
    "svm": TabulatedModel(
        {
            "C": loguniform(1e-2, 1e3),
            "gamma": loguniform(1e-4, 10),
            "kernel": choice("rbf", "poly", "sigmoid"),
        },
        {"C": _decades(-2, 3, 2), "gamma": _decades(-4, 1, 2)},
        "svm.SVC",
        "svm.SVR",
        {"max_iter": 20_000},
    ),
    "forest": TabulatedModel(
        {
            "max_depth": randint(1, 17),
            "max_features": uniform(0.05, 1),
            "min_samples_leaf": randint(1, 21),
            "bootstrap": choice(*(False, True)),
        },
        {
            "max_depth": [1, 2, 4, 6, 10, 16],
            "max_features": [0.05, 0.2, 0.5, 1.0],
            "min_samples_leaf": [1, 3, 8, 20],
        },
        "ensemble.ExtraTreesClassifier",
        "ensemble.ExtraTreesRegressor",
        {"n_estimators": 20, "random_state": 0},
    ),
    "boosting": TabulatedModel(
        {
            "learning_rate": loguniform(1e-2, 1),
            "max_depth": randint(1, 6),
            "subsample": uniform(0.3, 1),
            "max_features": uniform(0.1, 1),
        },
        {
            "learning_rate": _decades(-2, 0, 3),
            "max_depth": [1, 2, 4],
            "subsample": [0.3, 1.0],
            "max_features": [0.1, 0.3, 1.0],
        },
        "ensemble.GradientBoostingClassifier",
        "ensemble.GradientBoostingRegressor",
        {"n_estimators": 12, "random_state": 0},
    ),
    "mlp": TabulatedModel(
        {
            "width": randint(4, 65),
            "rate": loguniform(1e-4, 1e-1),
            "alpha": loguniform(1e-6, 10),
            "activation": choice("relu", "tanh"),
        },
        {"width": [4, 16, 64], "rate": _decades(-4, -1, 2), "alpha": [1e-6, 1e-2, 10.0]},
        "neural_network.MLPClassifier",
        "neural_network.MLPRegressor",
        {"max_iter": 30, "random_state": 0},
        {"width": "hidden_layer_sizes", "rate": "learning_rate_init"},
    ),
}


def data_set(name: str, rows: int | None = _ROWS) -> tuple[Any, Any, bool]:
    """Return shuffled, standardised features and target of `rows` rows; whether a regression."""
    from sklearn import datasets

    base = name.removesuffix(str(_ROWS))
    x, y = getattr(datasets, f"load_{base}")(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[:rows]
    x, y = x[order], y[order]
    x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-9)
    regression = base == "diabetes"
    return x, (y - y.mean()) / y.std() if regression else y, regression


def record_grid(data: str, model: str) -> GridTable:
    """Cross-validate a model on a data set at every point of its grid; return the losses' table."""
    import sklearn
    from sklearn.model_selection import cross_val_score

    x, y, regression = data_set(data)
    architecture = TABULATED_MODELS[model]

    def train(point: Configuration) -> Iterator[float]:
        model = architecture.build(point, regression=regression)
        scores = cross_val_score(model, x, y, cv=_FOLDS)
        loss = 1 - float(np.nan_to_num(scores.mean(), nan=-1.0))
        # The loss of a diverged regression is clipped.
        yield min(loss, 2.0) if regression else max(loss, 0.0)

    kind = type(architecture.build(_first(architecture), regression=regression)).__name__
    about = (
        f"scikit-learn {sklearn.__version__} {kind} on {len(y)} rows of load_"
        f"{data.removesuffix(str(_ROWS))}: loss of {_FOLDS}-fold cross-validation"
    )
    table = tabulate(
        architecture.space,
        architecture.grid,
        train,
        optimize_mode="minimize",
        step="fit",
        about=about,
        digits=4,
        clock_s=time.process_time,
    )
    return GridTable(architecture.space, {"": table})


def _first(architecture: TabulatedModel) -> Configuration:
    return {
        name: architecture.grid[name][0] if name in architecture.grid else entry["_value"][0]
        for name, entry in architecture.space.items()
    }


def _split(name: str) -> tuple[Any, Any, Any, Any]:
    from sklearn.model_selection import train_test_split

    x, y, _ = data_set(name, None)
    train_x, test_x, train_y, test_y = train_test_split(x, y, test_size=0.33, random_state=0)
    return train_x, test_x, train_y, test_y


def _by_epochs(
    data: str, build: Callable[[Configuration], Any]
) -> Callable[[Configuration], Iterator[float]]:
    train_x, test_x, train_y, test_y = _split(data)

    def train(point: Configuration) -> Iterator[float]:
        model = build(point)
        for _ in range(_EPOCHS):
            model.partial_fit(train_x, train_y, classes=np.unique(train_y))
            yield float(model.score(test_x, test_y))

    return train


def _digits_mlp() -> CurveTable:
    from sklearn.neural_network import MLPClassifier

    def build(point: Configuration) -> Any:  # noqa: ANN401 - as above
        return MLPClassifier(
            (point["width"],),
            learning_rate_init=point["rate"],
            alpha=point["alpha"],
            batch_size=point["batch"],
            random_state=0,
        )

    space = {
        "rate": loguniform(1e-4, 1e-1),
        "alpha": loguniform(1e-5, 10),
        "width": choice(8, 32),
        "batch": choice(64, 256),
    }
    grid = {"rate": _decades(-4, -1, 2), "alpha": [1e-5, 1e-2, 1.0]}
    return tabulate(
        space,
        grid,
        _by_epochs("digits", build),
        digits=4,
        clock_s=time.process_time,
        about="MLPClassifier on load_digits, a third held out: accuracy after each epoch",
    )


def _digits_sgd() -> CurveTable:
    from sklearn.linear_model import SGDClassifier

    def build(point: Configuration) -> Any:  # noqa: ANN401 - as above
        return SGDClassifier(
            loss=point["loss"],
            alpha=point["alpha"],
            learning_rate="constant",
            eta0=point["rate"],
            random_state=0,
        )

    space = {
        "rate": loguniform(1e-5, 1),
        "alpha": loguniform(1e-6, 1),
        "loss": choice("hinge", "log_loss", "modified_huber"),
    }
    grid = {"rate": _decades(-5, 0, 2), "alpha": _decades(-6, 0, 1)[::2]}
    return tabulate(
        space,
        grid,
        _by_epochs("digits", build),
        digits=4,
        clock_s=time.process_time,
        about="SGDClassifier on load_digits, a third held out: accuracy after each epoch",
    )


def _cancer_boosting() -> CurveTable:
    from sklearn.ensemble import GradientBoostingClassifier

    train_x, test_x, train_y, test_y = _split("breast_cancer")

    def train(point: Configuration) -> Iterator[float]:
        model = GradientBoostingClassifier(n_estimators=_EPOCHS, random_state=0, **point)
        model.fit(train_x, train_y)
        for chances in model.staged_predict_proba(test_x):
            likely = np.clip(chances[np.arange(len(test_y)), test_y], 1e-6, 1)
            yield float(-np.log(likely).mean())

    space = {
        "learning_rate": loguniform(1e-2, 1),
        "max_depth": randint(1, 6),
        "subsample": uniform(0.2, 1),
        "max_features": uniform(0.05, 1),
    }
    grid: dict[str, list[float]] = {
        "learning_rate": _decades(-2, 0, 4),
        "max_depth": [1, 2, 3, 5],
        "subsample": [0.2, 0.6, 1.0],
        "max_features": [0.05, 0.3, 1.0],
    }
    return tabulate(
        space,
        grid,
        train,
        optimize_mode="minimize",
        step="tree",
        digits=4,
        clock_s=time.process_time,
        about="GradientBoostingClassifier on load_breast_cancer, a third held out: log loss",
    )


_CURVES: Final[dict[str, Callable[[], CurveTable]]] = dict(
    zip(CURVES, (_digits_mlp, _digits_sgd, _cancer_boosting), strict=True)
)


def recorded_names() -> tuple[str, ...]:
    """Return the names that `record` accepts: files of tables and curves without `.json.gz`."""
    return (*CURVES, *(f"{data}-{model}" for data in DATA_SETS for model in MODELS))


def record(name: str, folder: Path) -> Path:
    """Compute a table of losses or learning curves by name; write it to a folder; return its path.

    Raises:
        ValueError: the name is unknown.
    """
    if name not in recorded_names():
        raise ValueError(f"name must be one of {', '.join(recorded_names())}; got {name!r}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small models on grids do not converge everywhere
        table = _CURVES[name]() if name in _CURVES else record_grid(*name.rsplit("-", 1))
    path = folder / f"{name}.json.gz"
    write_text(path, table.to_json())
    return path
