import copy

import pytest
import torch
from torch import Tensor

from nni.compression.base.numerics import IntegerRange
from nni.compression.base.target_quantizer import TargetPlace, TargetQuantizer
from nni.compression.config.quantization_settings import QuantizationSettings

PLACE = TargetPlace("block.fc", "weight", "Linear")


class Halves(TargetQuantizer):
    def forward(self, value: Tensor) -> Tensor:
        return value / 2


def test_a_place_has_a_name_and_a_kind() -> None:
    assert PLACE.where == "block.fc.weight"
    assert PLACE.is_parameter
    assert not TargetPlace("fc", "_input_0").is_parameter


def test_the_calibration_is_numbers() -> None:
    quantizer = Halves(QuantizationSettings("uint4", "affine"), PLACE)

    assert quantizer.integer.range == IntegerRange(0, 15)
    assert quantizer.calibration() == {
        "quant_dtype": "uint4",
        "quant_scheme": "affine",
        "quant_bits": 4,
        "scale": 1.0,
        "zero_point": 0.0,
    }


def test_a_target_that_is_only_observed_has_no_scale() -> None:
    assert Halves(QuantizationSettings(apply_method="bypass"), PLACE).calibration() == {}


def test_buffers_are_loaded_in_the_shape_that_was_saved() -> None:
    quantizer = Halves(QuantizationSettings(), PLACE)
    state = copy.deepcopy(quantizer.state_dict())
    state["scale"] = torch.full((1, 3), 0.5)

    quantizer.load_state_dict(state)

    assert quantizer.scale.tolist() == [[0.5, 0.5, 0.5]]


def test_steps_starts_and_calibrations_change_nothing_by_default() -> None:
    quantizer = Halves(QuantizationSettings(), PLACE)
    before = copy.deepcopy(quantizer.state_dict())

    quantizer.step()
    quantizer.start(torch.ones(1))
    quantizer.load({"scale": 2.0})

    assert quantizer.state_dict() == before


def test_one_bit_with_a_sign_is_no_integer_type() -> None:
    quantizer = Halves(QuantizationSettings("int1"), PLACE)

    with pytest.raises(ValueError, match="bits of int must be from 2 to 32, got 1"):
        _ = quantizer.integer
