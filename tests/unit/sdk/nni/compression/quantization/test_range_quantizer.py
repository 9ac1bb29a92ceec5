import logging
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from nni.compression.base.target_quantizer import TargetPlace
from nni.compression.config.quantization_settings import QuantizationSettings
from nni.compression.quantization.range_quantizer import Average, RangeQuantizer, loaded_range

INT8 = QuantizationSettings("int8", "symmetric")
UINT8 = QuantizationSettings("uint8", "affine")
OUTPUT = TargetPlace("conv", "_output_0", "Conv2d")
WEIGHT = TargetPlace("conv", "weight", "Conv2d")


def observing(
    settings: QuantizationSettings = UINT8,
    place: TargetPlace = OUTPUT,
    average: Average = "moving",
    **options: Any,
) -> RangeQuantizer:
    return RangeQuantizer(settings, place, average=average, **options)


def ends(quantizer: RangeQuantizer) -> tuple[float, float]:
    return float(quantizer.smallest), float(quantizer.largest)


def values(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float32)


@pytest.mark.claim("compression", 57)
@pytest.mark.parametrize(
    ("average", "expected"), [("moving", 1.01), ("extreme", 2.0), ("latest", 2.0)]
)
def test_the_range_after_two_observations(average: Average, expected: float) -> None:
    quantizer = observing(average=average)

    quantizer(values(0, 1))
    quantizer(values(0, 2))

    assert ends(quantizer) == (0, pytest.approx(expected))


def test_the_widest_range_is_that_of_observed_values() -> None:
    quantizer = observing(average="extreme")

    quantizer(values(2, 3))
    quantizer(values(1, 2))

    assert ends(quantizer) == (1, 3)


@pytest.mark.claim("compression", 54)
def test_values_are_rounded_by_the_observed_range() -> None:
    quantizer = observing()

    found = quantizer(values(-1, 0, 3))

    assert found.tolist() == pytest.approx([-64 * 4 / 255, 0, 2.996078], abs=1e-6)
    assert (float(quantizer.scale), float(quantizer.zero_point)) == (pytest.approx(4 / 255), 64)


@pytest.mark.claim("compression", 59)
def test_eval_mode_changes_no_statistics() -> None:
    quantizer = observing()
    quantizer(values(0, 1))
    before = {name: one.clone() for name, one in quantizer.state_dict().items()}

    found = quantizer.eval()(values(-5, 5))

    assert all(torch.equal(quantizer.state_dict()[name], one) for name, one in before.items())
    assert found.tolist() == [0, 1]


def test_a_target_passes_until_something_was_observed() -> None:
    quantizer = observing().eval()

    assert quantizer(values(0.3)).tolist() == values(0.3).tolist()


@pytest.mark.claim("compression", 58)
def test_quantization_starts_with_its_step() -> None:
    quantizer = observing(QuantizationSettings("uint2", "affine"), start_step=3)
    found = []

    for _ in range(3):
        found.append(quantizer(values(0, 0.4, 3)).tolist())
        quantizer.step()

    assert found[0] == found[1] == values(0, 0.4, 3).tolist()
    assert found[2] == [0, 0, 3]
    assert int(quantizer.observations) == 3


@pytest.mark.claim("compression", 60)
def test_the_gradient_depends_on_the_method() -> None:
    value = torch.tensor([0.5, 2.0], requires_grad=True)
    gradients = []

    for method in ("clamp_round", "qat_clamp_round"):
        quantizer = observing(replace(UINT8, apply_method=method))
        quantizer(values(0, 1))
        (gradient,) = torch.autograd.grad(quantizer.eval()(value).sum(), value)
        gradients.append(gradient.tolist())

    assert gradients == [[1, 1], [1, 0]]


@pytest.mark.claim("compression", 61)
def test_shapes_of_scales_for_each_channel() -> None:
    weight = observing(replace(INT8, granularity="out_channel"), WEIGHT)
    output = observing(replace(UINT8, granularity="per_channel"))
    transposed = observing(
        replace(INT8, granularity="out_channel"), TargetPlace("up", "weight", "ConvTranspose2d")
    )

    weight.start(torch.ones(6, 3, 2, 2))
    output(torch.ones(5, 3, 2, 2))
    transposed.start(torch.ones(6, 3, 2, 2))

    assert weight.scale.shape == (6, 1, 1, 1)
    assert output.scale.shape == (1, 3, 1, 1)
    assert transposed.scale.shape == (1, 3, 1, 1)


def test_blocks_have_a_scale_each() -> None:
    quantizer = observing(replace(INT8, granularity=(1, 2)), WEIGHT)
    weight = torch.tensor([[1.27, 0.5, 127.0, 50.4]])

    quantizer.start(weight)

    assert quantizer.scale.flatten().tolist() == pytest.approx([0.01, 1])
    assert quantizer.eval()(weight).flatten().tolist() == pytest.approx([1.27, 0.5, 127, 50])


def test_a_bias_has_a_scale_for_each_channel() -> None:
    quantizer = observing(replace(INT8, granularity="out_channel"), TargetPlace("fc", "bias"))

    quantizer.start(values(1, 2))

    assert quantizer.scale.tolist() == pytest.approx([1 / 127, 2 / 127])


def test_other_numbers_than_finite_ones_are_not_observed() -> None:
    quantizer = observing()
    quantizer(values(0, 1))

    quantizer(values(float("nan"), 0, 1))
    quantizer(values(-float("inf"), 0, 1))
    quantizer(torch.empty(0))

    assert ends(quantizer) == (0, 1)


@pytest.mark.parametrize("other", [float("nan"), float("inf"), -float("inf")])
def test_finite_values_beside_others_are_observed(other: float) -> None:
    quantizer = observing(average="extreme")

    found = quantizer(values(other, -1, 3))

    assert ends(quantizer) == (-1, 3)
    assert found[1:].tolist() == pytest.approx([-1, 3], abs=4 / 255)


def test_a_value_without_finite_numbers_is_no_observation() -> None:
    quantizer = observing()

    quantizer(values(float("nan"), float("inf")))
    found = quantizer(values(0, 1))

    assert ends(quantizer) == (0, 1)
    assert found.tolist() == [0, 1]
    assert int(quantizer.observations) == 1


def test_channels_of_a_linear_need_a_matrix(caplog: pytest.LogCaptureFixture) -> None:
    place = TargetPlace("fc", "_input_0", "Linear")
    quantizer = observing(replace(UINT8, granularity="per_channel"), place)
    value = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))

    with caplog.at_level(logging.WARNING):
        found = [quantizer(value) for _ in range(2)]

    assert all(one is value for one in found)
    assert (
        caplog.text.count("fc._input_0 is not quantized: per_channel needs activations of 2") == 1
    )
    assert quantizer(value[0]) is not value[0]


def test_half_precision_is_rounded_in_single_precision() -> None:
    quantizer = observing(replace(INT8, granularity="per_channel"))
    value = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))

    found = quantizer(value.bfloat16())

    assert found.dtype == torch.bfloat16
    expected = observing(replace(INT8, granularity="per_channel"))(value.bfloat16().float())
    assert torch.equal(found, expected.bfloat16())


def test_integers_can_only_be_observed() -> None:
    tokens = torch.tensor([1, 2])

    assert observing(replace(UINT8, apply_method="bypass"))(tokens) is tokens
    with pytest.raises(
        TypeError, match=r"conv\._output_0 must be a tensor of floating-point numbers"
    ):
        observing()(tokens)


def test_a_calibration_restores_scale_and_range() -> None:
    saved = observing(replace(UINT8, granularity="per_channel"))
    saved(torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0)))
    restored = observing(replace(UINT8, granularity="per_channel"))

    restored.load(saved.calibration())

    assert restored.calibration() == saved.calibration()
    assert int(restored.observations) == 1


def test_a_range_follows_from_scale_and_zero_point() -> None:
    quantizer = observing()

    found = loaded_range({"scale": 0.5, "zero_point": 10.0}, quantizer)

    assert found is not None
    assert [float(one) for one in found] == [-5, 122.5]
    assert loaded_range({"quant_bits": 8}, quantizer) is None
    assert quantizer.tracked_range() is None
    quantizer.load({"quant_bits": 8})
    assert int(quantizer.observations) == 0
