"""Targets of the gradient search: centred vectors with unit variance, and a weight per row."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nni.feature_engineering._estimator import class_codes, regression_target

__all__ = ["WeightedTargets", "class_targets", "number_targets"]


@dataclass(frozen=True, slots=True)
class WeightedTargets:
    """Centred target vectors with unit variance, and a weight per row."""

    vectors: NDArray[np.float64]
    """`(n_samples, n_outputs)`; each column has the weighted mean 0, all together variance 1."""
    weights: NDArray[np.float64]
    """`(n_samples,)`, with mean 1."""


def class_targets(target: NDArray[Any], *, ordinal: bool, balanced: bool) -> WeightedTargets:
    """Return standardized targets of a classification, one-hot or ordinal, with row weights.

    Args:
        target: `(n_samples,)`, labels of at least two classes.
        ordinal: the classes, sorted, are the numbers 0, 1, 2, ...; otherwise each is an output of
            its own.
        balanced: every class has the same weight in total; otherwise every row has.

    Returns:
        Vectors and weights.

    Examples:
        >>> found = class_targets(np.array(["a", "b", "b", "b"]), ordinal=True, balanced=True)
        >>> found.vectors.ravel().round(2).tolist(), found.weights.round(2).tolist()
        ([-1.0, 1.0, 1.0, 1.0], [2.0, 0.67, 0.67, 0.67])
    """
    classes, codes = class_codes(target)
    counts = np.bincount(codes)
    weights = len(codes) / (len(classes) * counts[codes]) if balanced else np.ones(len(codes))
    vectors = codes[:, None].astype(np.float64) if ordinal else np.eye(len(classes))[codes]
    return _standardized(vectors, weights)


def number_targets(target: NDArray[Any]) -> WeightedTargets:
    """Return a regression's standardized target as one vector, with equal row weights.

    Args:
        target: `(n_samples,)`, real numbers that are not all the same.

    Returns:
        One vector, and equal weights.
    """
    numbers = regression_target(target)
    return _standardized(numbers[:, None], np.ones(len(numbers)))


def _standardized(vectors: NDArray[np.float64], weights: NDArray[np.float64]) -> WeightedTargets:
    centred = vectors - np.average(vectors, axis=0, weights=weights)
    variance = np.average((centred**2).sum(axis=1), weights=weights)
    return WeightedTargets(centred / np.sqrt(variance), weights)
