"""Power sums and their gradients against slow, obvious versions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import sparse

from nni.feature_engineering._power_sums import FEW_VALUES, RowBatch, column_statistics

N_ROWS = 40
ORDER = 3
CPU = torch.device("cpu")
TOLERANCE = 1e-2
"""Dense blocks have single precision, 1e-7: a hundred times that of sums up to 1500."""


def table() -> NDArray[np.float64]:
    """Return columns of every kind: dense, with few values, constant and empty."""
    random = np.random.default_rng(0)
    few = random.normal(size=(N_ROWS, 20)) * (random.random((N_ROWS, 20)) < 0.1)
    assert 1 < (few != 0).sum(axis=0).max() <= FEW_VALUES
    dense = random.normal(size=(N_ROWS, 5)) + 1
    return np.hstack([few, dense, np.zeros((N_ROWS, 1)), np.full((N_ROWS, 1), 7.0)])


def standardized(values: NDArray[np.float64]) -> NDArray[np.float64]:
    deviation = values.std(axis=0)
    found: NDArray[np.float64] = values - values.mean(axis=0)
    return found / np.where(deviation > 0, deviation, np.inf)


def batch_of(values: Any) -> RowBatch:
    return RowBatch(values, *column_statistics(values, unit_variance=True), CPU)


def off_diagonal(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    return matrix[~np.eye(len(matrix), dtype=bool)]


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_power_sums_are_those_of_the_definition(convert: Any) -> None:
    scores = np.random.default_rng(1).random(table().shape[1])
    z = standardized(table())

    found = batch_of(convert(table())).power_sums(torch.from_numpy(scores), ORDER)

    for exponent, matrix in enumerate(found, 1):
        expected = ((scores * z[:, None, :] * z[None, :, :]) ** exponent).sum(axis=2)
        assert off_diagonal(matrix.numpy()) == pytest.approx(off_diagonal(expected), abs=TOLERANCE)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_gradient_is_that_of_automatic_differentiation(convert: Any) -> None:
    random = np.random.default_rng(2)
    scores = torch.from_numpy(random.random(table().shape[1])).requires_grad_()
    z = torch.from_numpy(standardized(table()))
    weights = []
    for _ in range(ORDER):
        half = random.normal(size=(N_ROWS, N_ROWS)) / N_ROWS
        np.fill_diagonal(half, 0)
        weights.append(torch.from_numpy(half + half.T))
    total = sum(
        (weight * ((scores * z[:, None, :] * z[None, :, :]) ** exponent).sum(dim=2)).sum()
        for exponent, weight in enumerate(weights, 1)
    )
    assert isinstance(total, torch.Tensor)
    total.backward()  # type: ignore[no-untyped-call]  # torch

    found = batch_of(convert(table())).gradient(scores.detach(), weights)

    assert scores.grad is not None
    assert found.numpy() == pytest.approx(scores.grad.numpy(), abs=1e-3)


def test_a_constant_column_has_the_factor_zero() -> None:
    _, factor = column_statistics(np.array([[5.0, 1.0], [5.0, 3.0]]), unit_variance=True)

    assert factor.tolist() == [0.0, 1.0]


def test_centring_alone_keeps_the_proportions_of_the_variances() -> None:
    values = np.array([[1.0, 10.0, 3.0], [-1.0, -10.0, 3.0]])

    mean, factor = column_statistics(values, unit_variance=False)

    assert mean.tolist() == [0.0, 0.0, 3.0]
    assert factor[0] == factor[1] > 0
    assert factor[2] == 0


def test_statistics_of_a_sparse_table_are_those_of_the_dense_one() -> None:
    dense = column_statistics(table(), unit_variance=True)
    compressed = column_statistics(sparse.csr_matrix(table()), unit_variance=True)

    assert compressed[0] == pytest.approx(dense[0])
    assert compressed[1] == pytest.approx(dense[1])
