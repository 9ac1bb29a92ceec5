"""Contract of selectors: what a class must have to choose columns of a table."""

from abc import ABC, abstractmethod
from typing import Any, Self, TypeAlias

__all__ = ["FeatureSelector"]

Table: TypeAlias = Any
"""Array, data frame or sparse matrix `(n_samples, n_features)`; scikit-learn has no types."""
Column: TypeAlias = Any
"""Array, series or list with an element per row, or per column, of a table."""
Option: TypeAlias = Any
"""Further argument; as `*args` and `**kwargs` it lets type checkers accept every signature."""
RandomState: TypeAlias = Any
"""Seed, generator or None, as scikit-learn accepts it."""


class FeatureSelector(ABC):
    """Base class of selectors of columns that matter: `fit`, then their positions, best first.

    A selector of one's own implements `fit` and `get_selected_features`. Results of `fit` belong in
    attributes whose names end in an underscore; the training data do not. To be a step of a
    scikit-learn pipeline, derive from `sklearn.base.BaseEstimator` and
    `sklearn.feature_selection.SelectorMixin` as well, as the selectors of this package do.

    Examples:
        >>> class FirstColumns(FeatureSelector):
        ...     def fit(self, X, y, **kwargs):
        ...         self.selected_features_ = [0, 1]
        ...         return self
        ...
        ...     def get_selected_features(self):
        ...         return self.selected_features_
        >>> FirstColumns().fit([[1, 2, 3]], [0]).get_selected_features()
        [0, 1]
    """

    @abstractmethod
    def fit(self, X: Table, y: Column, *args: Option, **kwargs: Option) -> Self:
        """Learn which columns matter, from table and target; return the selector itself.

        Args:
            X: table, `(n_samples, n_features)`.
            y: `(n_samples,)`, labels of classes or real numbers.
            *args: as the selector defines.
            **kwargs: as the selector defines.

        Returns:
            The selector itself, so that it fits into a pipeline.
        """

    @abstractmethod
    def get_selected_features(self, *args: Option, **kwargs: Option) -> list[int]:
        """Return the positions of the selected columns, best first.

        Args:
            *args: as the selector defines.
            **kwargs: as the selector defines.

        Returns:
            Unique positions in `[0, n_features)`.
        """
