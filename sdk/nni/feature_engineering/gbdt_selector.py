"""Selection of columns by the importance that boosted trees assign to them.

LightGBM and scikit-learn come with `pip install 'nni[feature]'`; LightGBM is imported by `fit`.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from nni.feature_engineering._estimator import (
    SelectionEstimator,
    check_integer,
    class_codes,
    regression_target,
)
from nni.feature_engineering._scikit_learn import (
    check_is_fitted,
    check_random_state,
    train_test_split,
    type_of_target,
)
from nni.feature_engineering.feature_selector import Column, RandomState, Table

__all__ = ["GBDTSelector"]

IMPORTANCE_TYPES: Final = ("split", "gain")
_REQUIRED: Final = (
    "lgb_params",
    "eval_ratio",
    "early_stopping_rounds",
    "importance_type",
    "num_boost_round",
)
_OBJECTIVES: Final = ("objective", "objective_type", "app", "application", "loss")
"""Names that LightGBM has for the objective."""
_PROBABILITIES: Final = ("cross_entropy", "xentropy", "cross_entropy_lambda", "xentlambda")
"""Objectives whose labels are classes or probabilities."""
_CLASSIFICATION: Final = (
    *("binary", "multiclass", "softmax", "multiclassova", "multiclass_ova", "ova", "ovr"),
    *_PROBABILITIES,
)
_TRIALS_OF_A_SEED: Final = 2**31 - 1


class GBDTSelector(SelectionEstimator):
    """Selector of the columns that a LightGBM model uses most.

    It is a strong baseline where the model behind it is one of boosted trees, too; a linear model
    may need other columns. `fit` takes the training arguments, or uses those of the constructor:
    in a pipeline, which calls `fit` with table and target only, they stand there.

    Args:
        lgb_params: parameters of LightGBM; the objective decides on classification or regression.
        eval_ratio: share of the rows that early stopping is decided on, between 0 and 1.
        early_stopping_rounds: rounds without an improvement that end the training.
        importance_type: "split" counts how often a column is used, "gain" adds what its splits
            gain.
        num_boost_round: largest number of rounds.
        topk: number of columns that `transform` keeps; None for all that the model uses.
        random_state: seed of the split, and of LightGBM where `lgb_params` has none. None for
            another one each time.

    Attributes:
        feature_importances_: `(n_features,)`, importance of each column.
        selected_features_: all positions, most important first.

    Examples:
        >>> import numpy as np
        >>> table = np.random.default_rng(0).normal(size=(400, 10))
        >>> selector = GBDTSelector(
        ...     {"objective": "regression", "num_threads": 1}, 0.2, 5, "gain", 20, random_state=0
        ... )
        >>> selector.fit(table, 3 * table[:, 4] + table[:, 8]).get_selected_features(topk=2)
        [4, 8]
    """

    def __init__(
        self,
        lgb_params: Mapping[str, Any] | None = None,
        eval_ratio: float | None = None,
        early_stopping_rounds: int | None = None,
        importance_type: str | None = None,
        num_boost_round: int | None = None,
        *,
        topk: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.lgb_params = lgb_params
        self.eval_ratio = eval_ratio
        self.early_stopping_rounds = early_stopping_rounds
        self.importance_type = importance_type
        self.num_boost_round = num_boost_round
        self.topk = topk
        self.random_state = random_state

    def fit(
        self,
        X: Table,
        y: Column,
        lgb_params: Mapping[str, Any] | None = None,
        eval_ratio: float | None = None,
        early_stopping_rounds: int | None = None,
        importance_type: str | None = None,
        num_boost_round: int | None = None,
    ) -> Self:
        """Train a LightGBM model; record each column's importance and the order of the columns.

        Each argument but table and target has to stand here or in the constructor.

        Args:
            X: table, `(n_samples, n_features)`: an array, a data frame or a sparse matrix.
            y: `(n_samples,)`, labels of classes or real numbers.
            lgb_params: parameters of LightGBM, which are not changed.
            eval_ratio: share of the rows for early stopping, between 0 and 1.
            early_stopping_rounds: rounds without an improvement that end the training.
            importance_type: "split" or "gain".
            num_boost_round: largest number of rounds.

        Returns:
            The selector itself.

        Raises:
            ValueError: an argument is missing or outside its range, or the data do not fit
                together.
        """
        given = (lgb_params, eval_ratio, early_stopping_rounds, importance_type, num_boost_round)
        options = self._options(dict(zip(_REQUIRED, given, strict=True)))
        table, target = self._checked(X, y)
        parameters = copy.deepcopy(dict(options["lgb_params"]))
        is_classification = _is_classification(parameters, target)
        labels: NDArray[Any]
        if is_classification:
            classes, labels = class_codes(target)
            if parameters.get("num_class") is None and _is_multiclass(parameters):
                parameters["num_class"] = len(classes)
        else:
            labels = regression_target(target)
        random = check_random_state(self.random_state)
        parts = _split(table, labels, options["eval_ratio"], random, stratify=is_classification)
        if self.random_state is not None:
            parameters.setdefault("seed", int(random.randint(_TRIALS_OF_A_SEED)))
            parameters.setdefault("deterministic", True)
        importances = _train(parameters, parts, options)
        self.feature_importances_ = importances.astype(np.float64)
        self.selected_features_ = np.argsort(-importances, kind="stable").tolist()
        return self

    def get_selected_features(self, topk: int | None = None) -> list[int]:
        """Return the positions of the most important columns, best first.

        Args:
            topk: number of columns; more than there are returns all, with a warning. None for
                that of the constructor, else all that the model uses.

        Returns:
            Positions; columns that the model does not use come last.

        Raises:
            NotFittedError: `fit` was not called.
            TypeError: `topk` is no whole number.
            ValueError: `topk` is below 1.
        """
        check_is_fitted(self)
        wanted = self.topk if topk is None else topk
        if wanted is None:
            return self.selected_features_[: max(1, int((self.feature_importances_ > 0).sum()))]
        check_integer("topk", wanted, 1)
        if wanted > self.n_features_in_:
            warnings.warn(
                f"topk is {wanted}, but there are {self.n_features_in_} columns: all are returned",
                stacklevel=2,
            )
        return self.selected_features_[:wanted]

    def _positions(self) -> list[int]:
        """Return the positions that `transform` keeps."""
        return self.get_selected_features()

    def _options(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return a fit's arguments, the constructor's where None; raise if one is wrong.

        Raises:
            TypeError: an argument has another type.
            ValueError: an argument is missing or outside its range.
        """
        options = {
            name: getattr(self, name) if value is None else value for name, value in given.items()
        }
        for name, value in options.items():
            if value is None:
                raise ValueError(f"{name} is required: pass it to fit, or to GBDTSelector")
        if not isinstance(options["lgb_params"], Mapping):
            raise TypeError(f"lgb_params must be a dict, got {options['lgb_params']!r}")
        if not 0 < options["eval_ratio"] < 1:
            raise ValueError(f"eval_ratio must be between 0 and 1, got {options['eval_ratio']}")
        check_integer("early_stopping_rounds", options["early_stopping_rounds"], 1)
        check_integer("num_boost_round", options["num_boost_round"], 1)
        if options["importance_type"] not in IMPORTANCE_TYPES:
            raise ValueError(
                f"importance_type must be one of {', '.join(IMPORTANCE_TYPES)}, "
                f"got {options['importance_type']!r}"
            )
        return options


def _objective(parameters: Mapping[str, Any]) -> str:
    """Return the objective, LightGBM's default without one."""
    found = next((parameters[name] for name in _OBJECTIVES if name in parameters), "regression")
    return str(found)


def _is_classification(parameters: Mapping[str, Any], target: NDArray[Any]) -> bool:
    """Return whether the labels are classes; those of a cross entropy may be probabilities."""
    objective = _objective(parameters)
    if objective in _PROBABILITIES and type_of_target(target, input_name="y") == "continuous":
        return False
    return objective in _CLASSIFICATION


def _is_multiclass(parameters: Mapping[str, Any]) -> bool:
    return _objective(parameters).startswith(("multiclass", "softmax", "ov"))


def _split(
    table: Table, labels: NDArray[Any], ratio: float, random: RandomState, *, stratify: bool
) -> list[Any]:
    """Split rows into training and evaluation, stratified if possible; return rows, then labels.

    Classes have the same shares in both where every class has rows for both.
    """
    held_out = int(np.ceil(ratio * len(labels)))
    counts = np.bincount(labels) if stratify else np.zeros(0, dtype=np.intp)
    possible = (
        stratify and counts.min() > 1 and len(counts) <= min(held_out, len(labels) - held_out)
    )
    parts = train_test_split(
        table,
        labels,
        test_size=ratio,
        random_state=random,
        stratify=labels if possible else None,
    )
    return list(parts)


def _train(
    parameters: dict[str, Any], parts: list[Any], options: Mapping[str, Any]
) -> NDArray[Any]:
    """Train a model with early stopping; return its columns' importances at the best iteration."""
    lightgbm = _lightgbm()
    if not {"verbosity", "verbose"} & parameters.keys():
        parameters["verbosity"] = -1
    rows, held_out, labels, held_out_labels = parts
    training = lightgbm.Dataset(rows, labels)
    booster = lightgbm.train(
        parameters,
        training,
        num_boost_round=options["num_boost_round"],
        valid_sets=[lightgbm.Dataset(held_out, held_out_labels, reference=training)],
        callbacks=[lightgbm.early_stopping(options["early_stopping_rounds"], verbose=False)],
    )
    importances: NDArray[Any] = booster.feature_importance(
        options["importance_type"], iteration=booster.best_iteration
    )
    return importances


def _lightgbm() -> ModuleType:
    """Import and return LightGBM; raise ImportError with a remedy if it does not load.

    Raises:
        ImportError: it is not installed, or its OpenMP library is missing.
    """
    try:
        import lightgbm
    except ImportError as error:
        raise ImportError("GBDTSelector needs LightGBM; run: pip install 'nni[feature]'") from error
    except OSError as error:
        raise ImportError(
            f"LightGBM of nni[feature] does not load ({error}): it needs OpenMP, which is the "
            "package libgomp1 of Debian, or `brew install libomp` on macOS"
        ) from error
    return lightgbm
