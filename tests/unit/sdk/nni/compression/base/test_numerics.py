import math

import pytest
import torch
from torch import Tensor, nn

from nni.compression.base import numerics
from nni.compression.base.numerics import IntegerRange, IntegerType, Scheme

INT8 = IntegerType(8, signed=True)
UINT8 = IntegerType(8, signed=False)


def slow_simulated(value: float, scale: float, zero_point: float, integer: IntegerType) -> float:
    """Return what the integer of a value stands for, number by number."""
    qmin, qmax = integer.range
    place = min(max(value / scale + zero_point, qmin), qmax)
    return scale * (round(place) - zero_point)


@pytest.mark.parametrize(
    ("integer", "limits"),
    [
        (INT8, (-127, 127)),
        (UINT8, (0, 255)),
        (IntegerType(2, signed=True), (-1, 1)),
        (IntegerType(1, signed=False), (0, 1)),
    ],
)
def test_ranges_of_integer_types(integer: IntegerType, limits: tuple[int, int]) -> None:
    assert integer.range == limits


@pytest.mark.parametrize(("bits", "signed"), [(1, True), (0, False), (33, True)])
def test_a_number_of_bits_out_of_range_is_refused(bits: int, signed: bool) -> None:
    with pytest.raises(ValueError, match=rf"from [12] to 32, got {bits}"):
        IntegerType(bits, signed=signed)


@pytest.mark.claim("compression", 54)
def test_affine_bytes() -> None:
    scale, zero = numerics.scale_and_zero_point(
        torch.tensor(-1.0), torch.tensor(3.0), UINT8, "affine"
    )

    assert (float(scale), float(zero)) == (pytest.approx(4 / 255), 64)
    simulated = numerics.simulated(torch.tensor([0.0, 3.0]), scale, zero, UINT8)
    assert simulated.tolist() == [0, pytest.approx(2.996078, abs=1e-6)]


@pytest.mark.claim("compression", 55)
def test_symmetric_bytes() -> None:
    scale, zero = numerics.scale_and_zero_point(
        torch.tensor(-3.0), torch.tensor(1.0), INT8, "symmetric"
    )

    assert (float(scale), float(zero)) == (pytest.approx(3 / 127), 0)


def test_unsigned_symmetric_values_have_their_zero_in_the_middle() -> None:
    scale, zero = numerics.scale_and_zero_point(
        torch.tensor(-2.0), torch.tensor(1.0), UINT8, "symmetric"
    )

    assert (float(scale), float(zero)) == (pytest.approx(2 / 127.5), 128)


@pytest.mark.claim("compression", 56)
@pytest.mark.parametrize(("smallest", "largest"), [(1.0, 3.0), (-3.0, -1.0)])
def test_a_range_is_widened_to_contain_zero(smallest: float, largest: float) -> None:
    ends = torch.tensor(smallest), torch.tensor(largest)

    scale, zero = numerics.scale_and_zero_point(*ends, UINT8, "affine")

    assert float(scale) == pytest.approx(3 / 255)
    assert float(zero) == (0 if smallest > 0 else 255)


@pytest.mark.parametrize("scheme", ["affine", "symmetric"])
def test_a_range_of_zeros_has_a_scale(scheme: Scheme) -> None:
    scale, zero = numerics.scale_and_zero_point(torch.zeros(2), torch.zeros(2), INT8, scheme)

    assert bool((scale > 0).all())
    assert numerics.simulated(torch.zeros(2), scale, zero, INT8).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scheme", ["affine", "symmetric"])
@pytest.mark.parametrize("integer", [INT8, UINT8, IntegerType(3, signed=True)])
def test_simulation_equals_the_slow_one(
    integer: IntegerType, scheme: Scheme, dtype: torch.dtype
) -> None:
    value = torch.randn(50, dtype=dtype, generator=torch.Generator().manual_seed(0)) * 2
    smallest, largest = numerics.reduced_range(value[:25], None)
    scale, zero = numerics.scale_and_zero_point(smallest, largest, integer, scheme)

    found = numerics.simulated(value, scale, zero, integer)

    expected = [slow_simulated(x, float(scale), float(zero), integer) for x in value.tolist()]
    assert found.dtype == dtype
    assert found.tolist() == pytest.approx(expected, abs=1e-6)


def test_halves_are_rounded_to_even() -> None:
    value = torch.tensor([0.5, 1.5, 2.5, -0.5])

    assert numerics.quantized(value, torch.tensor(1.0), torch.tensor(0.0), INT8).tolist() == [
        *(0, 2, 2, 0)
    ]


@pytest.mark.claim("compression", 60)
def test_clipped_elements_get_no_gradient() -> None:
    value = torch.tensor([-2.0, -1.0, 0.3, 1.0, 2.0], requires_grad=True)
    scale, zero = torch.tensor(1 / 127), torch.tensor(0.0)

    clipped = numerics.simulated_with_clipped_gradient(value, scale, zero, INT8)
    (gradient,) = torch.autograd.grad(clipped.sum(), value)
    plain = numerics.simulated(value, scale, zero, INT8)
    (straight,) = torch.autograd.grad(plain.sum(), value)

    assert gradient.tolist() == [0, 1, 1, 1, 0]
    assert straight.tolist() == [1] * 5
    assert torch.equal(clipped, plain)


@pytest.mark.claim("compression", 57)
def test_moving_average() -> None:
    found = numerics.moving_average(torch.tensor(1.0), torch.tensor(2.0), 0.99)

    assert float(found) == pytest.approx(1.01)


@pytest.mark.claim("compression", 61)
@pytest.mark.parametrize(
    ("dim", "shape"), [(0, (4, 1, 1, 1)), (1, (1, 3, 1, 1)), (-3, (1, 3, 1, 1))]
)
def test_ranges_of_channels_keep_the_dimensions(dim: int, shape: tuple[int, ...]) -> None:
    value = torch.arange(4 * 3 * 2 * 2.0).reshape(4, 3, 2, 2)

    smallest, largest = numerics.reduced_range(value, dim)

    assert smallest.shape == largest.shape == shape
    assert float(smallest.flatten()[0]) == 0
    assert float(largest.flatten()[-1]) == 47


def test_ranges_of_a_vector_of_channels_are_its_values() -> None:
    value = torch.tensor([1.0, -2.0])

    assert [one.tolist() for one in numerics.reduced_range(value, 0)] == [[1, -2], [1, -2]]


@pytest.mark.claim("compression", 65)
def test_first_scale_that_is_learned() -> None:
    weight = torch.tensor([1.0, -1.0, 1.0, -1.0])

    assert float(numerics.learned_step_scale(weight, 127)) == pytest.approx(0.177471, abs=1e-6)


def test_gradient_of_a_learned_scale() -> None:
    # d/ds of round(v / s) * s is round(v / s) - v / s inside of the range, and its end outside.
    value = torch.tensor([0.7, 5.0, -5.0], requires_grad=True)
    scale = torch.tensor(0.5, requires_grad=True)

    found = numerics.learned_step(value, scale, IntegerRange(-4, 3))
    of_value, of_scale = torch.autograd.grad(found.sum(), [value, scale])

    assert found.tolist() == [0.5, 1.5, -2.0]
    assert of_value.tolist() == [1, 0, 0]
    expected = (round(1.4) - 1.4) + 3 - 4
    assert float(of_scale) == pytest.approx(expected / math.sqrt(3 * 3), rel=1e-5)


@pytest.mark.claim("compression", 63)
def test_two_bits_of_dorefa() -> None:
    weight = torch.tensor([-1.0, 0.0, 0.5, 1.0], requires_grad=True)

    found = numerics.dorefa_weight(weight, 2)
    (gradient,) = torch.autograd.grad(found.sum(), weight)

    assert found.tolist() == pytest.approx([-1, 1 / 3, 1 / 3, 1])
    tanh_of_one = math.tanh(1)
    slopes = [(1 - math.tanh(x) ** 2) / tanh_of_one for x in (-1, 0, 0.5, 1)]
    assert gradient.tolist() == pytest.approx(slopes, rel=1e-5)


def test_weights_that_are_all_zero_stay_finite() -> None:
    assert bool(numerics.dorefa_weight(torch.zeros(3), 2).isfinite().all())


@pytest.mark.claim("compression", 64)
def test_binary_values_and_their_gradient() -> None:
    value = torch.tensor([-2.0, -1.0, 0.0, 0.5, 3.0], requires_grad=True)

    found = numerics.binarized(value)
    (gradient,) = torch.autograd.grad(found.sum(), value)

    assert found.tolist() == [-1, -1, 1, 1, 1]
    assert gradient.tolist() == [0, 1, 1, 1, 0]


@pytest.mark.claim("compression", 66)
def test_folded_batch_norm_of_one_channel() -> None:
    def one(value: float) -> Tensor:
        return torch.tensor([value])

    weight, bias = numerics.folded_batch_norm(
        one(2).reshape(1, 1, 1, 1), one(0.5), one(1), one(4), one(3), one(0.25), 0.0
    )

    assert (weight.flatten().tolist(), bias.tolist()) == ([3.0], [-0.5])


@pytest.mark.parametrize("with_bias", [True, False])
def test_a_folded_layer_computes_the_same(with_bias: bool) -> None:
    torch.manual_seed(0)
    layer, norm = nn.Conv2d(2, 3, 3, bias=with_bias), nn.BatchNorm2d(3)
    for tensor in (norm.weight, norm.bias):
        nn.init.normal_(tensor)
    norm.running_mean = torch.randn(3)
    norm.running_var = torch.rand(3) + 0.5
    image = torch.randn(2, 2, 5, 5)
    expected = norm.eval()(layer(image))

    weight, bias = numerics.folded_batch_norm(
        layer.weight,
        layer.bias,
        norm.running_mean,
        norm.running_var,
        norm.weight,
        norm.bias,
        norm.eps,
    )

    torch.testing.assert_close(torch.conv2d(image, weight, bias), expected)


def test_truncation_towards_zero_passes_the_gradient() -> None:
    value = torch.tensor([-1.9, 0.9, 2.0], requires_grad=True)

    found = numerics.truncated(value, torch.tensor(1.0))
    (gradient,) = torch.autograd.grad(found.sum(), value)

    assert found.tolist() == [-1, 0, 2]
    assert gradient.tolist() == [1, 1, 1]


def test_learned_scales_of_several_blocks() -> None:
    value = torch.tensor([[1.0, -1.0], [3.0, -3.0]], requires_grad=True)
    scale = numerics.learned_step_scale(value, 4)[:, None].requires_grad_()

    found = numerics.learned_step(value, scale, IntegerRange(-4, 4))
    (gradient,) = torch.autograd.grad(found.sum(), scale)

    assert scale.tolist() == [[1], [3]]
    assert torch.equal(found, value)
    assert gradient.shape == (2, 1)


def test_a_learned_zero_point_has_the_gradient_of_clipped_values() -> None:
    value = torch.tensor([-5.0, 0.4, 9.0])
    scale = torch.tensor(0.5, requires_grad=True)
    zero = torch.tensor(1.0, requires_grad=True)
    limits = IntegerRange(-4, 4)

    found = numerics.learned_affine_step(value, scale, zero, limits)
    gradients = torch.autograd.grad(found.sum(), (scale, zero))

    factor = 1 / math.sqrt(3 * 4)
    assert found.tolist() == [-2.5, 0.5, 1.5]
    assert float(gradients[1]) == pytest.approx(-0.5 * 2 * factor)
    # Clipped: q - z, which is -5 and 3. Inside: round(x / s + z) - z - x / s = 1 - 0.8.
    assert float(gradients[0]) == pytest.approx((-5 + 3 + 0.2) * factor)


def test_activations_of_few_levels_are_clamped() -> None:
    value = torch.tensor([-1.0, 0.2, 0.4, 2.0], requires_grad=True)

    found = numerics.dorefa_activation(value, 2)
    (gradient,) = torch.autograd.grad(found.sum(), value)

    assert found.tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1])
    assert gradient.tolist() == [0, 1, 1, 0]


def test_gradients_of_few_levels_have_a_range_for_each_sample() -> None:
    gradient = torch.tensor([[1.0, 0.3], [-10.0, 0.0]])

    found = numerics.dorefa_gradient(gradient, 8, torch.zeros(2, 2))

    assert torch.allclose(found, gradient, atol=20 / 255)
    assert float(found[0, 1]) == pytest.approx(0.3, abs=2 / 255)
    assert numerics.dorefa_gradient(torch.zeros(2), 2, torch.zeros(2)).abs().max() < 1e-30
