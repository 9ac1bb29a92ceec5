from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.base.module_wrapper import FusedModule, ModuleWrapper
from nni.compression.base.target_quantizer import TargetPlace
from nni.compression.quantization.qdq.calibrated import (
    calibrated_quantizer,
    calibrated_wrappers,
    in_model,
)

NUMBERS = {"quant_bits": 8, "quant_dtype": "uint8", "scale": 0.5, "zero_point": 3.0}


def test_a_target_is_rounded_by_the_numbers_of_the_calibration() -> None:
    quantizer = calibrated_quantizer(TargetPlace("fc", "_input_0"), NUMBERS)

    assert quantizer(torch.tensor([-9.0, 0.3, 200.0])).tolist() == [-1.5, 0.5, 126.0]


@pytest.mark.parametrize(
    ("target", "numbers", "dtype"),
    [
        ("weight", {"scale": 0.5}, "int8"),
        ("_input_0", {"scale": 0.5, "zero_point": 0.0, "tracked_min": 0.0}, "uint8"),
        ("_input_0", {"scale": 0.5, "zero_point": 0.0, "tracked_min": -1.0}, "int8"),
        ("_input_0", {"scale": 0.5, "zero_point": 7.0, "tracked_min": -1.0}, "uint8"),
        ("_input_0", {"scale": 0.5, "zero_point": -7.0, "tracked_min": -1.0}, "int8"),
    ],
)
def test_the_integer_type_of_a_flat_calibration_follows_from_its_numbers(
    target: str, numbers: dict[str, Any], dtype: str
) -> None:
    quantizer = calibrated_quantizer(TargetPlace("fc", target), {"quant_bits": 8, **numbers})

    assert quantizer.settings.quant_dtype == dtype


def test_a_range_without_a_scale_is_symmetric() -> None:
    numbers = {"quant_bits": 8, "tracked_min": -127.0, "tracked_max": 127.0}

    quantizer = calibrated_quantizer(TargetPlace("fc", "_input_0"), numbers)

    assert (float(quantizer.scale), quantizer.limits) == (1.0, (-128, 127))


def test_a_range_without_a_scale_is_affine_if_no_integer_is_negative() -> None:
    numbers = {"quant_bits": 8, "tracked_min": -1.0, "tracked_max": 6.0}
    ends = {"tracked_qmin": 0, "tracked_qmax": 127}

    quantizer = calibrated_quantizer(TargetPlace("fc", "_input_0"), {**numbers, **ends})

    assert (float(quantizer.scale), float(quantizer.zero_point)) == (pytest.approx(7 / 127), 18)
    assert float(quantizer(torch.tensor(-1.0))) == pytest.approx(-18 * 7 / 127)


def test_a_range_of_zeros_has_a_scale() -> None:
    numbers = {"quant_bits": 8, "tracked_min": 0.0, "tracked_max": 0.0}

    quantizer = calibrated_quantizer(TargetPlace("fc", "_input_0"), numbers)

    assert float(quantizer(torch.tensor(0.0))) == 0.0


def test_a_module_with_two_names_in_one_owner_is_replaced_under_both() -> None:
    model, layer = nn.Module(), nn.Linear(1, 1)
    for name, module in (("one", layer), ("other", layer), ("none", None)):
        model.register_module(name, module)
    wrappers = calibrated_wrappers(model, {"one": {"_input_0": NUMBERS}}, [])

    with in_model(model, wrappers, []):
        found = [model.get_submodule(name) for name in ("one", "other")]

    assert found == [wrappers["one"]] * 2
    assert [model.get_submodule(name) for name in ("one", "other")] == [layer] * 2


def test_the_ends_of_a_calibration_win_over_the_dtype() -> None:
    numbers = {**NUMBERS, "tracked_qmin": 0, "tracked_qmax": 127}

    assert calibrated_quantizer(TargetPlace("fc", "_input_0"), numbers).limits == (0, 127)


def test_wrappers_stand_in_the_model_inside_the_block_only() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)).eval()
    modules = list(model)
    pairs = [("0", "1")]
    wrappers = calibrated_wrappers(model, {"0": {"_input_0": NUMBERS}}, pairs)

    with in_model(model, wrappers, pairs):
        assert isinstance(model[0], ModuleWrapper)
        assert isinstance(model[1], FusedModule)

    assert list(model) == modules
