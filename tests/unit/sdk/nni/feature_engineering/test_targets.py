"""Vectors and weights that a subset of columns shall explain."""

from __future__ import annotations

import numpy as np
import pytest

from nni.feature_engineering._targets import class_targets, number_targets

LABELS = np.array([0, 0, 0, 0, 0, 0, 1, 1, 2])


@pytest.mark.parametrize("ordinal", [True, False])
@pytest.mark.parametrize("balanced", [True, False])
def test_vectors_are_centred_and_have_unit_variance(ordinal: bool, balanced: bool) -> None:
    found = class_targets(LABELS, ordinal=ordinal, balanced=balanced)

    assert found.vectors.shape == (9, 1 if ordinal else 3)
    assert np.average(found.vectors, axis=0, weights=found.weights) == pytest.approx(0)
    squares = (found.vectors**2).sum(axis=1)
    assert np.average(squares, weights=found.weights) == pytest.approx(1)


def test_balanced_classes_have_the_same_weight_in_total() -> None:
    weights = class_targets(LABELS, ordinal=True, balanced=True).weights

    assert [weights[label == LABELS].sum() for label in range(3)] == pytest.approx([3, 3, 3])


def test_rows_have_the_same_weight_otherwise() -> None:
    assert set(class_targets(LABELS, ordinal=True, balanced=False).weights) == {1.0}


def test_numbers_keep_their_proportions() -> None:
    found = number_targets(np.array([1.0, 2.0, 4.0])).vectors.ravel()

    assert (found[2] - found[1]) / (found[1] - found[0]) == pytest.approx(2)
    assert found.var() == pytest.approx(1)
