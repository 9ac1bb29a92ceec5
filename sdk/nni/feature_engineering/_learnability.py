"""Learnability of a target from a subset of columns, and its gradient in relaxed scores.

Source: V. Kong and G. Valiant, "Estimating Learnability in the Sublinear Data Regime", 2018: for
columns without correlation the explained variance is the mean of `y_i * y_j * <x_i, x_j>` over
pairs of different rows, far fewer of which are needed than to fit a model. R. Sheth and N. Fusi,
"Feature Gradients: Scalable Feature Selection via Discrete Relaxation", 2020: the same in batches,
with a score in `[0, 1]` per column, and gradient ascent on the scores.

Departures: the inner product is the ANOVA kernel, that is the products of up to `order` different
columns, each order scaled to the same variance and weighted by its reciprocal. A target such as
`sign(x0 * x1)`, which no single column explains, is learnable by it. The level of noise is
measured with permuted targets, and the penalty is that level times Donoho and Johnstone's universal
threshold.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from nni.feature_engineering._power_sums import RowBatch

__all__ = ["LearnabilityGradient", "elementary_polynomials", "learnability_gradient"]


class LearnabilityGradient(NamedTuple):
    """Gradients of the learnability in the scores, for the target and for its permutation."""

    signal: Tensor
    """Of the target."""
    noise: Tensor
    """Of the same target in a random order: what a column that explains nothing has."""


def elementary_polynomials(power_sums: list[Tensor]) -> list[Tensor]:
    """Return the elementary symmetric polynomials 1, 2, ... of terms, from their power sums.

    Args:
        power_sums: sums of the terms to the powers 1, 2, ..., of any one shape.

    Returns:
        As many tensors of that shape.

    Examples:
        >>> terms = torch.tensor([2.0, 3.0, 5.0])
        >>> sums = [(terms**k).sum() for k in (1, 2, 3)]
        >>> [round(float(one)) for one in elementary_polynomials(sums)]
        [10, 31, 30]
    """
    found = [torch.ones_like(power_sums[0])]
    for size in range(1, len(power_sums) + 1):
        total = torch.zeros_like(found[0])
        for exponent in range(1, size + 1):
            sign = 1.0 if exponent % 2 else -1.0
            total = total + sign * found[size - exponent] * power_sums[exponent - 1]
        found.append(total / size)
    return found[1:]


def learnability_gradient(
    batch: RowBatch, vectors: Tensor, scores: Tensor, order: int, permutation: Tensor
) -> LearnabilityGradient:
    """Return one batch's gradients in the scores, for the target and for its permutation.

    Args:
        batch: standardized rows, at least two.
        vectors: `(n_rows, n_outputs)`, weighted targets, double.
        scores: `(n_features,)`, in `(0, 1)`, double.
        order: largest number of columns in an interaction.
        permutation: `(n_rows,)`, order of the targets that measures the noise.

    Returns:
        Gradients of the learnability of the target and of the permuted target.
    """
    sums = [one.requires_grad_() for one in batch.power_sums(scores, order)]
    kernel = _kernel(elementary_polynomials(sums))
    pairs = batch.n_rows * (batch.n_rows - 1)
    found = []
    for rows in (vectors, vectors[permutation]):
        learnability = (kernel * (rows @ rows.T)).sum() / pairs
        weights = torch.autograd.grad(learnability, sums, retain_graph=True)
        found.append(batch.gradient(scores, [(one + one.T) / 2 for one in weights]))
    return LearnabilityGradient(*found)


def _kernel(polynomials: list[Tensor]) -> Tensor:
    """Return the sum of the polynomials, each scaled to variance 1 / order², diagonal zero."""
    n_rows = len(polynomials[0])
    different = 1.0 - torch.eye(n_rows, dtype=torch.double, device=polynomials[0].device)
    kernel = torch.zeros_like(different)
    for size, polynomial in enumerate(polynomials, 1):
        masked = polynomial * different
        deviation = (masked.detach() ** 2).sum().div(n_rows * (n_rows - 1)).sqrt()
        if deviation > 0:
            kernel = kernel + masked / (size * deviation)
    return kernel
