"""Rounding of weights to integers that keeps the output of a layer: GPTQ as pure functions.

The columns of a weight are rounded one after the other. The error of each column is spread over the
columns that are not rounded yet, by the second derivatives of the squared output error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from nni.compression.base.numerics import (
    IntegerType,
    Scheme,
    dequantized,
    quantized,
    scale_and_zero_point,
)
from nni.compression.masking.granularity import expanded, to_blocks

_DAMPING_STEPS: Final = 6
"""How often the damping is multiplied by ten for a Hessian that is not positive definite."""


@dataclass(frozen=True, slots=True)
class RoundedWeight:
    """Weight of which every element is a multiple of its scale."""

    values: Tensor
    """`(outputs, inputs)`: the values that the integers stand for."""
    scale: Tensor
    """`(outputs / a, inputs / b)` for blocks of size `(a, b)`."""
    zero_point: Tensor
    """Likewise."""


def input_hessian(inputs: Tensor) -> Tensor:
    """Return 2 X^T X for inputs X, the second derivatives of the squared output error.

    They are the same for all outputs: 2 X^T X. Those of several batches add up.

    Args:
        inputs: X, `(..., inputs)`; each vector counts once.

    Returns:
        `(inputs, inputs)`, in at least float32.

    Source: Frantar et al., GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
        Transformers, 2022, section 3.

    Examples:
        >>> input_hessian(torch.tensor([[1.0, 2.0]]))
        tensor([[2., 4.],
                [4., 8.]])
    """
    rows = inputs.flatten(0, -2)
    rows = rows if rows.dtype == torch.float64 else rows.float()
    return 2 * rows.T @ rows


def squared_output_error(difference: Tensor, hessian: Tensor) -> float:
    """Return the sum of squared output changes that changed weights cause, by the Hessian.

    Args:
        difference: of the weights, `(outputs, inputs)`.
        hessian: `(inputs, inputs)`, from `input_hessian`.

    Returns:
        The sum of squared differences over all outputs and inputs.

    Examples:
        >>> inputs = torch.tensor([[1.0, 2.0]])
        >>> squared_output_error(torch.tensor([[1.0, 1.0]]), input_hessian(inputs))
        9.0
    """
    wide = difference.to(hessian)
    return float((wide @ hessian * wide).sum()) / 2


def inverse_factor(hessian: Tensor, damping: float) -> Tensor:
    """Return the inverse Hessian's upper Cholesky factor, damped more if needed; at last raise.

    Args:
        hessian: `(inputs, inputs)`, symmetric, with a diagonal that is not zero.
        damping: part of the mean of the diagonal that is added to the diagonal; it is multiplied
            by ten, six times at most, until the matrix is positive definite.

    Returns:
        U, `(inputs, inputs)`, upper triangular, with U^T U the inverse.

    Raises:
        ValueError: the Hessian has a value that is not finite, or stays indefinite.

    Source: Frantar et al., 2022, section 3.3, step 3.
    """
    mean, ones = hessian.diagonal().mean(), torch.eye(len(hessian)).to(hessian)
    for step in range(_DAMPING_STEPS):
        factor, failed = torch.linalg.cholesky_ex(hessian + 10**step * damping * mean * ones)
        if not failed and bool(factor.isfinite().all()):
            upper: Tensor = torch.linalg.cholesky(torch.cholesky_inverse(factor), upper=True)
            return upper
    raise ValueError(
        f"the Hessian of the inputs is not positive definite with damping {damping}; check the "
        "calibration batches for values that are not finite, or raise damping"
    )


def gptq_rounded(
    weight: Tensor,
    hessian: Tensor,
    integer: IntegerType,
    scheme: Scheme,
    sizes: tuple[int, int],
    *,
    damping: float = 0.01,
    block_size: int = 128,
    by_activation: bool = False,
) -> RoundedWeight:
    """Return a weight rounded by columns, errors compensated by later ones, and its scales.

    Args:
        weight: `(outputs, inputs)`.
        hessian: `(inputs, inputs)`, from `input_hessian`.
        integer: type of the integers.
        scheme: how a scale follows from a range; see `scale_and_zero_point`.
        sizes: outputs and inputs that share a scale; each divides its dimension.
        damping: see `inverse_factor`, > 0.
        block_size: columns after which errors are spread over all that follow, >= 1; rounded up
            to whole groups. It changes the speed, and the result only by rounding.
        by_activation: whether columns are rounded in descending order of their diagonal element,
            so that inputs of large values come first. All scales are then those of the given
            weight; otherwise a scale is computed when its first column is due.

    Returns:
        Values of the dtype of `weight`, and their scales.

    Raises:
        ValueError: see `inverse_factor`.

    Source: Frantar et al., 2022, algorithm 1.

    Departures: weights of inputs that are always zero are rounded to nearest, not set to zero.
        Weights that are zero stay zero, so that masks of a pruner hold.

    Examples:
        >>> weight, inputs = torch.tensor([[0.4, 0.4]]), torch.tensor([[1.0, 1.0]])
        >>> integer = IntegerType(2, signed=True)
        >>> found = gptq_rounded(weight, input_hessian(inputs), integer, "symmetric", (1, 2))
        >>> found.values
        tensor([[0.4000, 0.4000]])
    """
    work = weight.to(hessian).clone()
    hessian = _without_dead_inputs(hessian)
    count = work.shape[1]
    order = torch.arange(count, device=work.device)
    if by_activation:
        order = hessian.diagonal().argsort(descending=True, stable=True)
    scales = _Scales(work, sizes, integer, scheme, order, changing=not by_activation)
    upper = inverse_factor(hessian[order][:, order], damping)
    width = sizes[1]
    if width < count:  # a scale is computed from columns that all earlier errors have changed
        block_size = -(-block_size // width) * width
    rounded = _rounded_in_order(work[:, order], upper, scales.rounded, block_size)
    values = torch.empty_like(rounded)
    values[:, order] = rounded
    return RoundedWeight(values.to(weight), scales.scale, scales.zero_point)


def _without_dead_inputs(hessian: Tensor) -> Tensor:
    """Return a Hessian in which zeros of the diagonal are the mean of its other elements."""
    diagonal = hessian.diagonal()
    alive = diagonal[diagonal > 0]
    fill = alive.mean() if len(alive) else torch.ones(()).to(hessian)
    return hessian + torch.diag(torch.where(diagonal > 0, torch.zeros_like(diagonal), fill))


class _Scales:
    """Scales and zero points of a weight's blocks; rounds one column after another."""

    def __init__(
        self,
        weight: Tensor,
        sizes: tuple[int, int],
        integer: IntegerType,
        scheme: Scheme,
        order: Tensor,
        *,
        changing: bool,
    ) -> None:
        self._sizes, self._integer, self._scheme = sizes, integer, scheme
        self._order: list[int] = order.tolist()
        self._changing = changing
        self._kept = weight != 0
        self.scale, self.zero_point = self._of(weight)

    def _of(self, part: Tensor) -> tuple[Tensor, Tensor]:
        blocks = to_blocks(part, self._sizes)
        return scale_and_zero_point(blocks.amin(-1), blocks.amax(-1), self._integer, self._scheme)

    def rounded(self, work: Tensor, place: int) -> Tensor:
        """Return the rounded column at a place of the order; at a new group, set its scale first.

        Args:
            work: `(outputs, inputs)` in this order, as far as it is corrected.
            place: number of the column.
        """
        height, width = self._sizes
        column = self._order[place]
        group = column // width
        if self._changing and column % width == 0:
            scale, zero_point = self._of(work[:, place : place + width])
            self.scale[:, group], self.zero_point[:, group] = scale[:, 0], zero_point[:, 0]
        scale, zero_point = (
            expanded(one[:, group : group + 1], (height, 1))[:, 0]
            for one in (self.scale, self.zero_point)
        )
        integers = quantized(work[:, place], scale, zero_point, self._integer)
        return dequantized(integers, scale, zero_point) * self._kept[:, column]


def _rounded_in_order(
    work: Tensor, upper: Tensor, rounded: Callable[[Tensor, int], Tensor], block_size: int
) -> Tensor:
    """Return a weight with columns rounded in order; errors change later ones of `work`.

    The error of a column changes the rest of its block at once. The columns behind the block are
    changed by all errors of the block in one matrix product.
    """
    count = work.shape[1]
    values = torch.empty_like(work)
    for first in range(0, count, block_size):
        last = min(first + block_size, count)
        errors = torch.empty_like(work[:, first:last])
        for place in range(first, last):
            values[:, place] = rounded(work, place)
            error = (work[:, place] - values[:, place]) / upper[place, place]
            work[:, place:last] -= error[:, None] * upper[place, place:last]
            errors[:, place - first] = error
        work[:, last:] -= errors @ upper[first:last, last:]
    return values
