from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.quantization import LsqPlusQuantizer, QATQuantizer

ALL: list[dict[str, object]] = [
    {"op_types": ["Linear"], "target_names": ["weight", "_input_"], "quant_scheme": "affine"}
]


def model() -> Any:
    made = nn.Sequential(nn.Linear(2, 1, bias=False))
    made[0].weight.data = torch.tensor([[1.0, -0.5]])
    return made


def one_of(quantizer: LsqPlusQuantizer, target: str) -> Any:
    return next(one for place, one in quantizer.target_quantizers() if place.target == target)


def test_first_scales_and_zero_points() -> None:
    entry = {**ALL[0], "target_settings": {"_input_": {"quant_dtype": "uint8"}}}
    quantizer = LsqPlusQuantizer(model(), [entry])

    found = [float(one.detach()) for one in quantizer.parameter_group()["params"]]  # type: ignore[attr-defined]

    assert found == [pytest.approx(0.01), 0, pytest.approx(0.01), 128]


def test_both_are_trained() -> None:
    made = model()
    quantizer = LsqPlusQuantizer(made, ALL)
    one = one_of(quantizer, "_input_0")

    made(torch.tensor([[0.503, 5.0]])).sum().backward()

    assert one.scale.grad.abs() > 0
    assert one.zero_point.grad.abs() > 0  # 5.0 is out of range


def test_a_calibration_gives_scale_and_zero_point() -> None:
    made = model()
    first = QATQuantizer(made, ALL)
    made.train()(torch.tensor([[-1.0, 3.0]]))
    calibration = first.get_calibration_config()
    first.unwrap_model()

    second = LsqPlusQuantizer(made, ALL)
    second.load_calibration_config(calibration)

    one = one_of(second, "_input_0")
    assert float(one.scale.detach()) == pytest.approx(4 / 255)
    assert float(one.zero_point.detach()) == -64
    found = second.get_calibration_config()["0"]["_input_0"]
    assert found["tracked_min"] == pytest.approx(-1, abs=0.01)
    assert found["tracked_max"] == pytest.approx(3, abs=0.01)
    one.load({})
    assert float(one.zero_point.detach()) == -64


def test_the_exported_zero_point_is_whole() -> None:
    quantizer = LsqPlusQuantizer(model(), ALL)
    one_of(quantizer, "weight").zero_point.data.fill_(3.4)

    assert quantizer.get_calibration_config()["0"]["weight"]["zero_point"] == 3
