import logging
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.base.numerics import IntegerRange
from nni.compression.base.target_quantizer import IntegerForm, TargetPlace, TargetQuantizer
from nni.compression.config.quantization_settings import QuantizationSettings
from nni.compression.quantization.bnn_quantizer import SignQuantizer
from nni.compression.quantization.dorefa_quantizer import LevelQuantizer
from nni.compression.quantization.lsq_plus_quantizer import AffineStepQuantizer
from nni.compression.quantization.lsq_quantizer import StepQuantizer
from nni.compression.quantization.naive_quantizer import TruncatingQuantizer
from nni.compression.quantization.qdq.targets import (
    ExportedPair,
    StoredIntegers,
    StoredParameter,
    exported_activation,
    exported_integers,
    exported_parameter,
)
from nni.compression.quantization.range_quantizer import RangeQuantizer

VALUE = torch.tensor([[-1.0, 0.2, 0.6], [3.0, -0.5, 0.1]])


def observed(target: str, value: Tensor = VALUE, **settings: str) -> RangeQuantizer:
    place = TargetPlace("fc", target, "Linear")
    quantizer = RangeQuantizer(QuantizationSettings(**settings), place, average="latest")  # type: ignore[arg-type]
    quantizer.observe(value)
    quantizer.eval()
    return quantizer


def test_an_activation_becomes_a_pair_with_the_numbers_of_its_quantizer() -> None:
    quantizer = observed("_input_0", quant_dtype="uint8", quant_scheme="affine")

    found = exported_activation(quantizer)

    assert isinstance(found, ExportedPair)
    assert torch.equal(found.scale, quantizer.scale)
    assert (int(found.zero_point), found.zero_point.dtype) == (64, torch.uint8)
    assert not found.integers.clips


@pytest.mark.parametrize(("dtype", "clips"), [("int8", False), ("uint4", True), ("int4", True)])
def test_a_range_narrower_than_bytes_is_clipped(dtype: str, clips: bool) -> None:
    found = exported_activation(observed("_input_0", quant_dtype=dtype))

    assert isinstance(found, ExportedPair)
    assert found.integers.clips == clips


def test_a_weight_is_stored_in_integers_by_channel() -> None:
    quantizer = observed("weight", granularity="out_channel")

    found = exported_parameter(quantizer, VALUE)

    assert isinstance(found, StoredIntegers)
    assert found.axis == 0
    assert found.stored.dtype == torch.int8
    rounded = found.stored * found.scale[:, None]
    assert torch.allclose(rounded, quantizer(VALUE))


def test_a_weight_with_scales_of_its_input_channels_is_stored_in_floating_point() -> None:
    quantizer = observed("weight", granularity="in_channel")

    found = exported_parameter(quantizer, VALUE)

    assert isinstance(found, StoredParameter)
    assert torch.equal(found.value, quantizer(VALUE))


def test_a_target_that_is_observed_only_is_left() -> None:
    assert exported_activation(observed("_input_0", apply_method="bypass")) is None
    assert exported_parameter(observed("weight", apply_method="bypass"), VALUE) is None


def test_a_target_without_observations_is_left() -> None:
    place = TargetPlace("fc", "_input_0", "Linear")
    quantizer = RangeQuantizer(QuantizationSettings(), place, average="latest")

    assert exported_activation(quantizer.eval()) is None


@pytest.mark.parametrize("target", ["_output_0", "weight"])
@pytest.mark.parametrize("quantizer", [StepQuantizer, AffineStepQuantizer, LevelQuantizer])
def test_learned_steps_and_levels_are_integers(quantizer: Any, target: str) -> None:
    place = TargetPlace("a", target, "ReLU")
    bits = () if quantizer is not LevelQuantizer else (None,)
    made = quantizer(QuantizationSettings(quant_dtype="int4"), place, *bits)
    if place.is_parameter:
        made.start(VALUE)
    else:
        made(VALUE)
    made.eval()

    if place.is_parameter:
        found: Any = exported_parameter(made, VALUE)
        rounded = (found.stored.float() - found.zero_point) * found.scale
        assert torch.allclose(rounded, made(VALUE), atol=1e-6)
    else:
        assert isinstance(exported_activation(made), ExportedPair)


def test_weights_that_are_truncated_are_integers() -> None:
    quantizer = TruncatingQuantizer(QuantizationSettings(), TargetPlace("fc", "weight"))
    quantizer.start(VALUE)
    quantizer.eval()

    found = exported_parameter(quantizer, VALUE)

    assert isinstance(found, StoredIntegers)
    assert torch.allclose(found.stored * found.scale, quantizer(VALUE))


def test_signs_are_simulated_and_then_stored() -> None:
    quantizer = SignQuantizer(
        QuantizationSettings(quant_dtype="int1"), TargetPlace("a", "_output_0")
    )

    found = exported_activation(quantizer)

    assert isinstance(found, nn.Sequential)
    assert found[0] is quantizer
    assert isinstance(found[1], ExportedPair)


class Cubes(TargetQuantizer):
    """Rounds to cubes of integers, which are no multiples of a scale."""

    def forward(self, value: Tensor) -> Tensor:
        return torch.round(value.sign() * value.abs() ** (1 / 3)) ** 3 * 0.3


def test_what_is_no_integer_stays_in_floating_point(caplog: pytest.LogCaptureFixture) -> None:
    activation = Cubes(QuantizationSettings(), TargetPlace("fc", "_input_0"))
    weight = Cubes(QuantizationSettings(), TargetPlace("fc", "weight"))

    with caplog.at_level(logging.WARNING):
        assert exported_activation(activation) is activation
        found = exported_parameter(weight, VALUE)

    assert isinstance(found, StoredParameter)
    assert torch.equal(found(VALUE), weight(VALUE))
    assert "fc.weight is exported in floating point: Cubes with int8" in caplog.text


@pytest.mark.parametrize(
    "form",
    [
        IntegerForm(torch.ones(2, 3), torch.zeros(2, 3), IntegerRange(-127, 127)),
        IntegerForm(torch.ones(()), torch.zeros(()), IntegerRange(0, 256)),
        IntegerForm(torch.ones(()), torch.tensor(300.0), IntegerRange(0, 255)),
    ],
)
def test_blocks_wide_integers_and_far_zero_points_have_no_kernels(form: IntegerForm) -> None:
    assert exported_integers(form) is None
