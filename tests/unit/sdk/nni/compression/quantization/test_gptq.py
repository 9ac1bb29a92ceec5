import pytest
import torch
from torch import Tensor

from nni.compression.base.numerics import (
    IntegerType,
    Scheme,
    dequantized,
    quantized,
    scale_and_zero_point,
    simulated,
)
from nni.compression.masking.granularity import expanded, to_blocks
from nni.compression.quantization.gptq import (
    gptq_rounded,
    input_hessian,
    inverse_factor,
    squared_output_error,
)

INT4 = IntegerType(4, signed=True)
SIZES = [(1, 16), (1, 4), (8, 16), (2, 8)]
"""One scale for an output, for a group of inputs, for the tensor, and for a tile."""


def weight() -> Tensor:
    return torch.randn(8, 16, generator=torch.Generator().manual_seed(0))


def correlated_inputs() -> Tensor:
    """Return inputs of 16 features that depend on 4 hidden ones, and a little noise."""
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(256, 4, generator=generator) @ torch.randn(4, 16, generator=generator)
    return hidden + 0.1 * torch.randn(256, 16, generator=generator)


def nearest(value: Tensor, integer: IntegerType, scheme: Scheme, sizes: tuple[int, int]) -> Tensor:
    blocks = to_blocks(value, sizes)
    found = scale_and_zero_point(blocks.amin(-1), blocks.amax(-1), integer, scheme)
    scale, zero_point = (expanded(one, sizes) for one in found)
    return simulated(value, scale, zero_point, integer)


def test_the_hessian_is_that_of_the_squared_output_error() -> None:
    inputs, row = correlated_inputs().double(), weight()[0].double()
    target = inputs @ (row + 1)

    def error(one: Tensor) -> Tensor:
        return (inputs @ one - target).square().sum()

    expected = torch.autograd.functional.hessian(error, row)  # type: ignore[no-untyped-call]
    assert torch.allclose(input_hessian(inputs.reshape(2, 128, 16)), expected)
    assert squared_output_error((row * 0 + 1)[None], expected) == pytest.approx(float(error(row)))


def test_the_factor_is_that_of_the_damped_inverse() -> None:
    hessian = input_hessian(correlated_inputs().double())

    upper = inverse_factor(hessian, 0.01)

    damped = hessian + 0.01 * hessian.diagonal().mean() * torch.eye(16)
    assert torch.equal(upper, upper.triu())
    assert torch.allclose(upper.T @ upper, torch.linalg.inv(damped))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("scheme", ["symmetric", "affine"])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("by_activation", [False, True])
def test_independent_inputs_give_the_nearest_values(
    bits: int, scheme: Scheme, sizes: tuple[int, int], by_activation: bool
) -> None:
    integer = IntegerType(bits, signed=scheme == "symmetric")

    found = gptq_rounded(
        weight(), torch.eye(16), integer, scheme, sizes, by_activation=by_activation
    )

    assert torch.equal(found.values, nearest(weight(), integer, scheme, sizes))


@pytest.mark.parametrize("bits", [3, 4, 8])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("by_activation", [False, True])
def test_outputs_of_correlated_inputs_change_less_than_by_rounding_to_nearest(
    bits: int, sizes: tuple[int, int], by_activation: bool
) -> None:
    integer, hessian = IntegerType(bits, signed=True), input_hessian(correlated_inputs())

    found = gptq_rounded(
        weight(), hessian, integer, "symmetric", sizes, by_activation=by_activation
    )

    rounded = nearest(weight(), integer, "symmetric", sizes)
    errors = [squared_output_error(one - weight(), hessian) for one in (found.values, rounded)]
    assert errors[0] < 0.5 * errors[1]


def slow(hessian: Tensor, width: int, damping: float) -> Tensor:
    """Round by the inverse of the Hessian of the columns that are left, column by column."""
    work = weight().double()
    values = torch.empty_like(work)
    hessian = hessian + damping * hessian.diagonal().mean() * torch.eye(16)
    for column in range(16):
        if column % width == 0:
            group = work[:, column : column + width]
            scale, zero_point = scale_and_zero_point(
                group.amin(1), group.amax(1), INT4, "symmetric"
            )
        integers = quantized(work[:, column], scale, zero_point, INT4)
        values[:, column] = dequantized(integers, scale, zero_point)
        inverse = torch.linalg.inv(hessian[column:, column:])
        error = (work[:, column] - values[:, column]) / inverse[0, 0]
        work[:, column:] -= error[:, None] * inverse[0]
    return values


@pytest.mark.parametrize("width", [4, 16])
@pytest.mark.parametrize("block_size", [1, 6, 128])
def test_blocks_and_factor_give_the_same_as_inverses_of_what_is_left(
    width: int, block_size: int
) -> None:
    hessian = input_hessian(correlated_inputs().double())

    found = gptq_rounded(
        weight().double(), hessian, INT4, "symmetric", (1, width), block_size=block_size
    )

    assert torch.allclose(found.values, slow(hessian, width, 0.01))


@pytest.mark.parametrize("sizes", SIZES)
def test_values_are_what_the_integers_of_the_scales_stand_for(sizes: tuple[int, int]) -> None:
    integer = IntegerType(4, signed=False)

    found = gptq_rounded(
        weight(), input_hessian(correlated_inputs()), integer, "affine", sizes, by_activation=True
    )

    scale, zero_point = (expanded(one, sizes) for one in (found.scale, found.zero_point))
    assert torch.allclose(simulated(found.values, scale, zero_point, integer), found.values)
    assert scale.shape == found.values.shape


def test_weights_that_are_zero_stay_zero() -> None:
    sparse = weight()
    sparse[:, 1::2] = 0

    found = gptq_rounded(sparse, input_hessian(correlated_inputs()), INT4, "symmetric", (1, 16))

    assert not found.values[:, 1::2].any()


def test_weights_of_inputs_that_are_always_zero_are_rounded_to_nearest() -> None:
    inputs = correlated_inputs()
    inputs[:, :4] = 0

    found = gptq_rounded(weight(), input_hessian(inputs), INT4, "symmetric", (1, 4))

    assert torch.equal(found.values[:, :4], nearest(weight(), INT4, "symmetric", (1, 4))[:, :4])
    dead = gptq_rounded(weight(), torch.zeros(16, 16), INT4, "symmetric", (1, 4))
    assert torch.equal(dead.values, nearest(weight(), INT4, "symmetric", (1, 4)))


def test_damping_grows_until_the_hessian_is_positive_definite() -> None:
    hessian = input_hessian(torch.ones(1, 16))

    found = gptq_rounded(weight(), hessian, INT4, "symmetric", (1, 16), damping=1e-12)

    assert bool(found.values.isfinite().all())


def test_inputs_that_are_not_finite_are_refused() -> None:
    hessian = input_hessian(torch.full((4, 16), torch.nan))

    with pytest.raises(ValueError, match="is not positive definite with damping"):
        gptq_rounded(weight(), hessian, INT4, "symmetric", (1, 16))
