import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.config.settings import ConfigListError
from nni.compression.quantization.legacy_adapters import (
    LegacyBNNQuantizer,
    LegacyDoReFaQuantizer,
    LegacyLsqQuantizer,
    LegacyNaiveQuantizer,
    LegacyObserverQuantizer,
    LegacyQATQuantizer,
    warn_once,
)
from tests.unit.sdk.nni.compression.models import Plain, randomised

CONFIG: list[dict[str, object]] = [
    {"quant_types": ["weight"], "quant_bits": {"weight": 8}, "op_types": ["Conv2d", "Linear"]},
    {"quant_types": ["output"], "quant_bits": 8, "quant_start_step": 2, "op_types": ["ReLU"]},
]


@pytest.fixture(autouse=True)
def warned() -> Iterator[None]:
    """Take the warning of each class as given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for name in ("QATQuantizer", "LsqQuantizer", "DoReFaQuantizer", "BNNQuantizer"):
            warn_once(name)
    yield
    warn_once.cache_clear()


def images(seed: int = 0) -> Tensor:
    return torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(seed))


def trained(model: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.01)


def step(model: Any, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    model(images()).square().mean().backward()
    optimizer.step()


def test_a_class_warns_once() -> None:
    warn_once.cache_clear()

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            LegacyQATQuantizer(Plain(), CONFIG)

    (warning,) = seen
    assert warning.category is DeprecationWarning
    assert "the newer one is nni.compression.quantization.QATQuantizer" in str(warning.message)


def test_qat_as_documented(tmp_path: Path) -> None:
    model = randomised(Plain()).train()
    optimizer = trained(model)
    quantizer = LegacyQATQuantizer(model, CONFIG, optimizer, dummy_input=images())

    assert quantizer.compress() is model
    for _ in range(2):
        step(model, optimizer)
    calibration = quantizer.export_model(tmp_path / "model.pth", tmp_path / "calibration.pth")

    assert calibration["conv1.0"].keys() == {
        *("weight_bits", "weight_scale", "weight_zero_point"),
        *("tracked_min_weight", "tracked_max_weight"),
        *("tracked_min_input", "tracked_max_input"),
    }
    assert calibration["conv1.2"]["output_bits"] == 8
    assert torch.load(tmp_path / "calibration.pth", weights_only=True) == calibration
    steps = {int(one.steps) for _, one in quantizer.target_quantizers()}  # type: ignore[arg-type]
    assert steps == {3}
    again = LegacyQATQuantizer(Plain(), CONFIG)
    again.load_calibration_config(calibration)
    assert again.export_model(tmp_path / "again.pth") == calibration


def test_scales_are_read_from_a_loaded_model_as_documented(tmp_path: Path) -> None:
    model: Any = randomised(Plain()).train()
    LegacyQATQuantizer(model, CONFIG, trained(model)).compress()
    model(images())
    torch.save(model.state_dict(), tmp_path / "quantized_model.pth")

    loaded: Any = Plain()
    quantizer = LegacyQATQuantizer(loaded, CONFIG, trained(loaded))
    quantizer.compress()
    loaded.load_state_dict(torch.load(tmp_path / "quantized_model.pth"))

    fc, act = loaded.fc.module, loaded.conv1[2].module
    assert torch.equal(fc.scale, model.fc.quantizers["weight"].scale)
    assert fc.weight_zero_point is fc.zero_point
    assert torch.equal(act.output_scale, model.conv1[2].quantizers["_output_0"].scale)
    assert torch.equal(fc.weight, model.fc.module.weight)
    loaded.double()
    assert fc.scale.dtype == torch.float64
    quantizer.unwrap_model()
    assert not hasattr(fc, "scale")


def test_lsq_adds_its_scales_to_the_optimizer() -> None:
    model = randomised(Plain()).train()
    optimizer = trained(model)
    quantizer = LegacyLsqQuantizer(model, [{**CONFIG[0], "quant_types": ["weight"]}], optimizer)
    scales = optimizer.param_groups[1]["params"]
    before = [float(one.detach()) for one in scales]

    quantizer.compress()
    step(model, optimizer)

    assert len(scales) == 3
    assert all(float(one.detach()) != old for one, old in zip(scales, before, strict=True))
    settings = {one.settings.quant_dtype for _, one in quantizer.target_quantizers()}
    assert settings == {"int8"}
    quantizer.step_with_optimizer()
    LegacyLsqQuantizer(Plain(), CONFIG)


def test_bnn_clips_after_the_steps_of_the_optimizer() -> None:
    model = nn.Sequential(nn.Linear(2, 1, bias=False))
    optimizer = torch.optim.SGD(model.parameters(), lr=10.0)
    entry = {"quant_types": ["weight"], "quant_bits": 1, "op_types": ["Linear"]}
    quantizer = LegacyBNNQuantizer(model, [entry], optimizer)

    model = quantizer.compress()  # type: ignore[assignment]
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()

    assert quantizer.get_modules_wrapper()["0"].parameter("weight").tolist() == [[-1, -1]]


def test_dorefa_without_an_optimizer() -> None:
    entry = {"quant_types": ["weight"], "quant_bits": 8, "op_types": ["default"]}
    model = LegacyDoReFaQuantizer(randomised(Plain()), [entry]).compress()

    assert model(images()).shape == (4, 5)


def test_observer_exports_the_range_of_the_integers(tmp_path: Path) -> None:
    model = randomised(Plain())
    entry = {"quant_bits": 8, "quant_types": ["weight", "input"], "op_types": ["Linear"]}
    quantizer = LegacyObserverQuantizer(model, [entry])
    largest = float(model.fc.parameter("weight").detach().abs().max())
    model(images())

    quantizer.compress()
    found = quantizer.export_model(tmp_path / "model.pth")["fc"]

    assert found["tracked_max_weight"] == pytest.approx(largest)
    assert found["tracked_min_weight"] == pytest.approx(-largest)
    assert (found["input_bits"], found["tracked_qmax_input"]) == (8, 127)


def test_naive_without_a_configuration(tmp_path: Path) -> None:
    quantizer = LegacyNaiveQuantizer(randomised(Plain()))

    assert quantizer.compress()(images()).shape == (4, 5)
    assert quantizer.export_model(tmp_path / "model.pth")["fc"]["weight_bits"] == 8


def test_onnx_needs_a_shape_before_anything_is_written(tmp_path: Path) -> None:
    quantizer = LegacyQATQuantizer(Plain(), CONFIG)

    with pytest.raises(ValueError, match="onnx_path needs input_shape"):
        quantizer.export_model(tmp_path / "model.pth", onnx_path=tmp_path / "model.onnx")

    assert list(tmp_path.iterdir()) == []
    assert quantizer.is_wrapped
    with pytest.raises(ConfigListError, match="needs uint1 to uint31"):
        LegacyQATQuantizer(Plain(), [{**CONFIG[0], "quant_bits": 32}])
