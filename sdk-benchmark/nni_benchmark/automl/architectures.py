"""Learning methods and their search spaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from nni.hpo.json_value import JsonValue

_HIDDEN: Final = (
    [16], [64], [128], [256], [16, 16], [64, 64], [128, 128], [256, 256], [16, 16, 16],
    [64, 64, 64], [128, 128, 128], [256, 256, 256], [256, 128, 64, 16], [128, 64, 16], [64, 16],
    [16, 64, 128, 256], [16, 64, 128], [16, 64],
)  # fmt: skip
_RATES: Final = (0.1, 0.05, 0.01, 0.005, 0.001, 0.0005, 0.0001, 0.00005, 0.00001)
_BELOW_ONE: Final = 1 - 1e-6
_FEWEST_LEAVES: Final = 2
"""Smallest `max_leaf_nodes` that scikit-learn takes."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """Model family to tune: search space, constructor, and the parameter that scales its cost."""

    space: dict[str, JsonValue]
    numeric_space: dict[str, JsonValue]
    """Space of indices into the options, for tuners that support numbers only."""
    model: Callable[[dict[str, Any], bool, int], Any]
    """Constructor from hyperparameters of either space, whether it is a regression, and a seed."""
    effort: str
    """Integer hyperparameter that is proportional to the cost of training."""

    def cheaper(self, parameters: dict[str, Any], part: float) -> dict[str, Any]:
        """Return hyperparameters, the effort one times a part in (0, 1], not below its least."""
        lower = self.space[self.effort]["_value"][0]
        return {**parameters, self.effort: max(lower, round(part * parameters[self.effort]))}


def _choice(*options: JsonValue) -> dict[str, JsonValue]:
    return {"_type": "choice", "_value": list(options)}


def _integer(lower: int, upper: int) -> dict[str, JsonValue]:
    return {"_type": "randint", "_value": [lower, upper]}


LEAST_TREES: Final = 4
MOST_TREES: Final = 2048
"""Trees of a forest: at least the first number, fewer than the second."""
_UNIT: Final[dict[str, JsonValue]] = {"_type": "uniform", "_value": [0, 1]}

_FOREST_SPACE: Final[dict[str, JsonValue]] = {
    "n_estimators": _integer(LEAST_TREES, MOST_TREES),
    "max_depth": _choice(4, 8, 16, 32, 64, 128, 256, 0),
    "min_samples_leaf": _integer(1, 8),
    "min_samples_split": _integer(2, 16),
    "max_leaf_nodes": _integer(0, 4096),
}
_MLP_SPACE: Final[dict[str, JsonValue]] = {
    "hidden_layer_sizes": _choice(*_HIDDEN),
    "learning_rate_init": _choice(*_RATES),
    "alpha": _choice(*_RATES[:-2]),
    "momentum": _UNIT,
    "beta_1": _UNIT,
    "tol": _choice(0.001, 0.0005, 0.0001, 0.00005, 0.00001),
    "max_iter": _integer(2, 256),
}


def _forest(parameters: dict[str, Any], regression: bool, seed: int) -> Any:  # noqa: ANN401, FBT001 - scikit-learn is untyped
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    leaves = int(parameters["max_leaf_nodes"])
    return (RandomForestRegressor if regression else RandomForestClassifier)(
        n_estimators=int(parameters["n_estimators"]),
        max_depth=int(parameters["max_depth"]) or None,
        min_samples_leaf=int(parameters["min_samples_leaf"]),
        min_samples_split=int(parameters["min_samples_split"]),
        max_leaf_nodes=max(leaves, _FEWEST_LEAVES) if leaves else None,
        random_state=seed,
    )


def _mlp(parameters: dict[str, Any], regression: bool, seed: int) -> Any:  # noqa: ANN401, FBT001 - as above
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    sizes = parameters["hidden_layer_sizes"]
    network = (MLPRegressor if regression else MLPClassifier)(
        hidden_layer_sizes=tuple(_HIDDEN[int(sizes)] if isinstance(sizes, int | float) else sizes),
        learning_rate_init=parameters["learning_rate_init"],
        alpha=parameters["alpha"],
        momentum=parameters["momentum"],
        beta_1=min(parameters["beta_1"], _BELOW_ONE),
        tol=parameters["tol"],
        max_iter=int(parameters["max_iter"]),
        random_state=seed,
    )
    return make_pipeline(StandardScaler(), network)


ARCHITECTURES: Final[dict[str, Architecture]] = {
    "random_forest": Architecture(_FOREST_SPACE, _FOREST_SPACE, _forest, "n_estimators"),
    "mlp": Architecture(
        _MLP_SPACE,
        {**_MLP_SPACE, "hidden_layer_sizes": _choice(*range(len(_HIDDEN)))},
        _mlp,
        "max_iter",
    ),
}
