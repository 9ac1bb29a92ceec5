import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.base.module_wrapper import FusedModule
from nni.compression.base.target_quantizer import TargetPlace, TargetQuantizer
from nni.compression.config.quantization_settings import QuantizationSettings
from nni.compression.config.settings import ConfigListError
from nni.compression.quantization.quantizer import Quantizer
from nni.compression.quantization.range_quantizer import RangeQuantizer
from tests.unit.sdk.nni.compression.models import randomised

WEIGHTS: list[dict[str, object]] = [{"op_types": ["Conv2d"], "target_names": ["weight"]}]


class RangesOnly(Quantizer):
    """Quantizer by observed ranges, of at most 8 bits."""

    signed_bits = (2, 8)

    def make_target_quantizer(
        self, settings: QuantizationSettings, place: TargetPlace
    ) -> TargetQuantizer:
        return RangeQuantizer(settings, place, average="latest")


class WeightsOnly(RangesOnly):
    kinds = ("weight",)


def network() -> Any:
    return randomised(
        nn.Sequential(
            nn.Conv2d(1, 2, 3, bias=False), nn.BatchNorm2d(2), nn.ReLU(), nn.Conv2d(2, 2, 1)
        )
    )


def image() -> Tensor:
    return torch.randn(2, 1, 5, 5, generator=torch.Generator().manual_seed(0))


def targets_of(quantizer: Quantizer) -> list[str]:
    return [place.where for place, _ in quantizer.target_quantizers()]


def test_inputs_of_quantized_weights_are_observed_and_left_as_they_are() -> None:
    model = network().train()
    quantizer = RangesOnly(model, WEIGHTS)

    model(image())

    assert targets_of(quantizer) == ["0._input_0", "0.weight", "3._input_0", "3.weight"]
    seen = quantizer.get_calibration_config()["0"]["_input_0"]
    assert seen == {
        "tracked_min": pytest.approx(float(image().min())),
        "tracked_max": pytest.approx(float(image().max())),
    }


def test_batch_norms_are_folded_with_an_example_input() -> None:
    model = network()
    before = model(image())
    bypass = [{**WEIGHTS[0], "apply_method": "bypass"}]

    quantizer = RangesOnly(model, bypass, dummy_input=image())

    assert isinstance(model[1], FusedModule)
    assert torch.allclose(model(image()), before, atol=1e-6)
    assert not isinstance(quantizer.unwrap_model()[1], FusedModule)


def test_modules_are_fused_by_their_names() -> None:
    model = network()
    quantizer = RangesOnly(model, [{**WEIGHTS[0], "fuse_names": [("0", "1", "2")]}])

    assert isinstance(model[2], FusedModule)
    assert len(quantizer.get_modules_wrapper()["0"].fused_modules) == 2
    assert len(quantizer.get_modules_wrapper()["3"].fused_modules) == 0


def test_modules_that_cannot_be_fused_are_refused() -> None:
    model = network()

    with pytest.raises(ConfigListError, match="cannot join 3, 2, 1: a batch norm can only be the"):
        RangesOnly(model, [{**WEIGHTS[0], "fuse_names": [("3", "2", "1")]}])

    assert isinstance(model[3], nn.Conv2d)


@pytest.mark.parametrize(
    ("make", "values", "problem"),
    [
        (RangesOnly, {"quant_dtype": "int9"}, "has int9 for 0.weight; RangesOnly needs int2 to i"),
        (RangesOnly, {"quant_dtype": "uint33"}, "up to 32"),
        (WeightsOnly, {"target_names": ["_output_"]}, "0._output_0 as target; WeightsOnly quantiz"),
        (RangesOnly, {"granularity": [3]}, "target weight of 0: granularity .3,. does not divide"),
    ],
)
def test_a_refused_model_is_left_as_it_was(
    make: type[Quantizer], values: dict[str, object], problem: str
) -> None:
    model = network()
    modules = list(model.named_modules())

    with pytest.raises(ConfigListError, match=problem):
        make(model, [{**WEIGHTS[0], **values}])

    assert list(model.named_modules()) == modules


def test_an_algorithm_for_weights_has_no_other_targets_by_default() -> None:
    quantizer = WeightsOnly(network(), [{"op_types": ["Conv2d", "ReLU"]}])

    assert targets_of(quantizer) == ["0._input_0", "0.weight", "3._input_0", "3.weight"]


@pytest.mark.claim("compression", 67)
def test_the_export_has_the_names_and_values_of_the_float_model(tmp_path: Path) -> None:
    model = network()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    quantizer = RangesOnly(model, WEIGHTS, dummy_input=image())
    model(image())

    calibration = quantizer.export_model(tmp_path / "model.pth", tmp_path / "calibration.pth")

    saved = torch.load(tmp_path / "model.pth", weights_only=True)
    assert list(saved) == list(before)
    assert all(torch.equal(saved[key], value) for key, value in before.items())
    assert torch.load(tmp_path / "calibration.pth", weights_only=True) == calibration
    assert not quantizer.is_wrapped


@pytest.mark.claim("compression", 68)
def test_a_calibration_is_loaded_by_name(caplog: pytest.LogCaptureFixture) -> None:
    quantizer = RangesOnly(network(), [{**WEIGHTS[0], "op_names": ["3"]}])
    config = {"3": {"weight": {"quant_bits": 8, "tracked_min": -127.0, "tracked_max": 3.0}}}

    with caplog.at_level(logging.WARNING):
        quantizer.update_calibration_config({**config, "other": {}})

    assert quantizer.get_calibration_config()["3"]["weight"]["scale"] == 1
    assert "calibration_config has other, which is not quantized here" in caplog.text


@pytest.mark.claim("compression", 68)
def test_a_calibration_of_other_bits_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    quantizer = RangesOnly(network(), WEIGHTS)
    before = quantizer.get_calibration_config()
    loaded = {"weight_bits": 4, "weight_scale": 0.5, "tracked_min_input": 0, "tracked_max_input": 1}

    with caplog.at_level(logging.WARNING), pytest.raises(ValueError, match=r"has 4 bits for 3\.w"):
        quantizer.load_calibration_config({"3": loaded})

    assert quantizer.get_calibration_config() == before
    assert "calibration_config lacks 0, which starts anew" in caplog.text


def test_steps_are_counted_by_every_target() -> None:
    quantizer = RangesOnly(network(), WEIGHTS)

    quantizer.step_with_optimizer()

    steps = {int(one.steps) for _, one in quantizer.target_quantizers()}  # type: ignore[arg-type]
    assert steps == {2}
