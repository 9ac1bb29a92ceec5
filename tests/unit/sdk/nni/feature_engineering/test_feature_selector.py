"""The base class of selectors of one's own."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from nni.feature_engineering import FeatureSelector


class Variances(FeatureSelector, SelectorMixin, BaseEstimator):  # type: ignore[misc]  # untyped
    """The columns with the largest variances, as the documentation lets users write it."""

    def __init__(self, count: int = 2) -> None:
        self.count = count

    def fit(self, X: Any, y: Any = None, **kwargs: Any) -> Self:
        variances = np.var(X, axis=0)
        self.n_features_in_ = len(variances)
        self.selected_features_ = np.argsort(-variances)[: self.count].tolist()
        return self

    def get_selected_features(self) -> list[int]:
        return list(self.selected_features_)

    def _get_support_mask(self) -> Any:
        return np.isin(np.arange(self.n_features_in_), self.selected_features_)


def test_a_class_without_both_methods_is_not_instantiated() -> None:
    class Incomplete(FeatureSelector):
        def fit(self, X: Any, y: Any, **kwargs: Any) -> Self:
            return self

    with pytest.raises(TypeError, match="get_selected_features"):
        Incomplete()  # type: ignore[abstract]


def test_a_selector_of_ones_own_is_a_step_of_a_pipeline() -> None:
    table = np.random.default_rng(0).normal(size=(100, 4)) * [1, 5, 1, 9]
    pipeline = make_pipeline(clone(Variances(1)), LogisticRegression())

    pipeline.fit(table, table[:, 3] > 0)

    assert pipeline[0].get_selected_features() == [3]
    assert pipeline.score(table, table[:, 3] > 0) > 0.9
