"""Power sums of products of standardized columns, for pairs of rows of one batch.

With `z` the standardized columns and `s` a score per column, the power sum of exponent `k` of the
rows `i` and `j` is the sum over the columns `d` of `(s_d * z_id * z_jd) ** k`. All interactions of
a batch follow from them, at a cost that is linear in the number of columns.

Columns with many values in the batch are multiplied as dense blocks of a bounded width. A sparse
column with few values is never made dense: there `z ** k` is a constant `c ** k` of the column plus
`u`, which is zero wherever the table is, so that the sum over its pairs of stored values is enough.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nni.feature_engineering._scikit_learn import (
    issparse,
    mean_variance_axis,
)
from nni.feature_engineering.feature_selector import Table

__all__ = ["RowBatch", "column_statistics"]

BLOCK_COLUMNS: Final = 2048
"""Columns that are dense at a time: 8 MB for 1000 rows in single precision."""
FEW_VALUES: Final = 16
"""Stored values of a column in a batch up to which its pairs are listed."""
CONSTANT: Final = 1e-10
"""Standard deviation, as a part of the mean, below which a column counts as constant."""


def column_statistics(
    table: Table, *, unit_variance: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and scale factor of each column for standardization; 0 for constant columns.

    Args:
        table: `(n_samples, n_features)`, an array or CSR.
        unit_variance: scale every column by itself; otherwise all by one factor, so that their
            variances keep their proportions.

    Returns:
        Means and factors, `(n_features,)` each; the factor of a constant column is 0.
    """
    if issparse(table):
        mean, variance = mean_variance_axis(table, axis=0)
        mean, variance = mean.astype(np.float64), variance.astype(np.float64)
    else:
        parts = [
            table[:, start : start + BLOCK_COLUMNS].astype(np.float64)
            for start in range(0, table.shape[1], BLOCK_COLUMNS)
        ]
        mean = np.concatenate([part.mean(axis=0) for part in parts])
        variance = np.concatenate([part.var(axis=0) for part in parts])
    deviation = np.sqrt(variance)
    varies = deviation > CONSTANT * np.abs(mean)
    scale = deviation if unit_variance else np.sqrt(np.mean(variance))
    factor = np.divide(1.0, scale, out=np.zeros_like(mean), where=varies & (deviation > 0))
    return mean, factor


class RowBatch:
    """Standardized rows of a table, of which power sums and their gradients are computed.

    Args:
        rows: `(n_rows, n_features)`, an array or CSR.
        mean: means of the columns of the whole table.
        factor: factors of the columns.
        device: device of the computation.
    """

    def __init__(
        self,
        rows: Table,
        mean: NDArray[np.float64],
        factor: NDArray[np.float64],
        device: torch.device,
    ) -> None:
        self.n_rows = int(rows.shape[0])
        self._mean = mean
        self._factor = factor
        self._device = device
        self._few: _FewValues | None = None
        if issparse(rows):
            self._rows = rows.tocsc()
            self._rows.sort_indices()
            stored = np.diff(self._rows.indptr)
            self._dense_columns = np.flatnonzero(stored > FEW_VALUES)
            self._few = _FewValues(
                self._rows, np.flatnonzero(stored <= FEW_VALUES), mean, factor, device
            )
        else:
            self._rows = rows
            self._dense_columns = np.arange(rows.shape[1])

    def power_sums(self, scores: Tensor, order: int) -> list[Tensor]:
        """Return a matrix of power sums over pairs of rows for each exponent from 1 to `order`.

        Args:
            scores: `(n_features,)`, in `[0, 1]`, double.
            order: largest exponent.

        Returns:
            A matrix `(n_rows, n_rows)` per exponent, double. Values on the diagonals have no
            meaning.
        """
        shape = (self.n_rows, self.n_rows)
        sums = [torch.zeros(shape, dtype=torch.double, device=self._device) for _ in range(order)]
        for columns, block in self._blocks():
            part = scores[columns].to(block.dtype)
            for exponent, power in enumerate(_powers(block, order), 1):
                sums[exponent - 1] += (power * part**exponent) @ power.T
        if self._few is not None:
            for exponent in range(1, order + 1):
                sums[exponent - 1] += self._few.power_sum(scores, exponent)
        return sums

    def gradient(self, scores: Tensor, weights: list[Tensor]) -> Tensor:
        """Return the gradient of a function of the power sums with respect to the scores.

        Args:
            scores: `(n_features,)`, double.
            weights: derivative with respect to the power sum of each exponent, symmetric matrices
                with zeros on the diagonal.

        Returns:
            `(n_features,)`, double.
        """
        found = torch.zeros_like(scores)
        order = len(weights)
        for columns, block in self._blocks():
            part = scores[columns]
            for exponent, power in enumerate(_powers(block, order), 1):
                forms = ((weights[exponent - 1].to(block.dtype) @ power) * power).sum(0)
                found[columns] += exponent * part ** (exponent - 1) * forms
        if self._few is not None:
            columns = self._few.columns
            part = scores[columns]
            for exponent, weight in enumerate(weights, 1):
                forms = self._few.quadratic_forms(weight, exponent)
                found[columns] += exponent * part ** (exponent - 1) * forms
        return found

    def _blocks(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield positions and standardized values of columns that are multiplied densely."""
        for start in range(0, len(self._dense_columns), BLOCK_COLUMNS):
            columns = self._dense_columns[start : start + BLOCK_COLUMNS]
            values = self._rows[:, columns]
            values = values.toarray() if issparse(values) else values
            values = (values - self._mean[columns]) * self._factor[columns]
            yield (
                torch.from_numpy(columns).to(self._device),
                torch.from_numpy(values.astype(np.float32)).to(self._device),
            )


class _FewValues:
    """Columns with few stored values in a batch, whose power sums come from the listed pairs.

    Args:
        rows: the batch as CSC, rows sorted within each column.
        columns: positions of the columns.
        mean: means of all columns.
        factor: factors of all columns.
        device: device of the computation.
    """

    def __init__(
        self,
        rows: Table,
        columns: NDArray[np.intp],
        mean: NDArray[np.float64],
        factor: NDArray[np.float64],
        device: torch.device,
    ) -> None:
        part = rows[:, columns]
        counts = np.diff(part.indptr)
        owner = np.repeat(np.arange(len(columns)), counts)
        values = (part.data - mean[columns][owner]) * factor[columns][owner]
        first, second = _pairs(owner)
        self.columns = torch.from_numpy(columns).to(device)
        self._n_rows = int(rows.shape[0])
        self._constant = torch.from_numpy(-mean[columns] * factor[columns]).to(device)
        self._row = torch.from_numpy(part.indices.astype(np.int64)).to(device)
        self._owner = torch.from_numpy(owner.astype(np.int64)).to(device)
        self._values = torch.from_numpy(values).to(device)
        self._first = torch.from_numpy(first).to(device)
        self._second = torch.from_numpy(second).to(device)

    def _offsets(self, exponent: int) -> tuple[Tensor, Tensor]:
        """Return constants `c ** k` of columns, and differences of stored `z ** k` from them."""
        constant = self._constant**exponent
        return constant, self._values**exponent - constant[self._owner]

    def power_sum(self, scores: Tensor, exponent: int) -> Tensor:
        """Return the part of these columns in a power sum, `(n_rows, n_rows)`."""
        scale = scores[self.columns] ** exponent
        constant, offset = self._offsets(exponent)
        by_row = _totals(self._row, (scale * constant)[self._owner] * offset, self._n_rows)
        products = scale[self._owner[self._first]] * offset[self._first] * offset[self._second]
        places = self._row[self._first] * self._n_rows + self._row[self._second]
        upper = _totals(places, products, self._n_rows**2).reshape(self._n_rows, self._n_rows)
        return (scale * constant**2).sum() + by_row[:, None] + by_row + upper + upper.T

    def quadratic_forms(self, weight: Tensor, exponent: int) -> Tensor:
        """Return each column's quadratic form of `z ** k` in a symmetric matrix, `(n_columns,)`."""
        constant, offset = self._offsets(exponent)
        n_columns = len(self.columns)
        linear = _totals(self._owner, offset * weight.sum(dim=1)[self._row], n_columns)
        places = weight[self._row[self._first], self._row[self._second]]
        products = 2 * places * offset[self._first] * offset[self._second]
        quadratic = _totals(self._owner[self._first], products, n_columns)
        return constant**2 * weight.sum() + 2 * constant * linear + quadratic


def _powers(block: Tensor, order: int) -> Iterator[Tensor]:
    """Yield the powers of a block with the exponents 1 to `order`."""
    power = block
    yield power
    for _ in range(order - 1):
        power = power * block
        yield power


def _pairs(owner: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions of all pairs of stored values that share a column.

    Args:
        owner: column of each stored value, ascending.
    """
    firsts, seconds = [], []
    for distance in range(1, FEW_VALUES):
        first = np.flatnonzero(owner[:-distance] == owner[distance:])
        if not len(first):
            break
        firsts.append(first)
        seconds.append(first + distance)
    none = np.zeros(0, dtype=np.int64)
    return np.concatenate([none, *firsts]), np.concatenate([none, *seconds])


def _totals(places: Tensor, values: Tensor, length: int) -> Tensor:
    """Return sums of values by place; on a CPU always in the same order."""
    return torch.bincount(places, weights=values, minlength=length)
