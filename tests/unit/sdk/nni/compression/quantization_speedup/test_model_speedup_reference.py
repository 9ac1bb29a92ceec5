"""Engine on the CPU: claim 90 and the arguments of all engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from nni.compression import TorchEvaluator
from nni.compression.quantization import PtqQuantizer, QATQuantizer
from nni.compression.quantization.calibration import to_legacy
from nni.compression.quantization_speedup import ModelSpeedupReference

SHAPE = (1, 2, 6, 6)

Make = Callable[..., ModelSpeedupReference]


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3)
    ).eval()


@pytest.fixture
def samples() -> Tensor:
    return torch.randn(5, *SHAPE[1:], generator=torch.Generator().manual_seed(1))


@pytest.fixture
def make(model: nn.Module, tmp_path: Path) -> Make:
    def made(config: Any = None, **arguments: Any) -> ModelSpeedupReference:
        arguments = {
            "onnx_path": tmp_path / "model.onnx",
            "calibration_cache": tmp_path / "cache",
            **arguments,
        }
        return ModelSpeedupReference(model, SHAPE, config, **arguments)

    return made


@pytest.fixture
def calibration(model: nn.Module, samples: Tensor) -> dict[str, Any]:
    """What a quantizer has exported; the model is as before."""

    def evaluate(one: nn.Module) -> float:
        return float(one(samples).sum())

    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    evaluator = TorchEvaluator(print, sgd, print, evaluating_func=evaluate)
    entries = [{"op_types": ["Conv2d", "Linear"], "target_names": ["_input_", "weight"]}]
    quantizer = PtqQuantizer(model, entries, evaluator)
    _, found = quantizer.compress()
    quantizer.unwrap_model()
    return found


def relative_error(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).detach().abs().max() / expected.detach().abs().max())


@pytest.mark.claim("compression", 90)
def test_five_samples_in_batches_of_two_give_five_rows_and_a_time(
    make: Make, calibration: dict[str, Any], model: nn.Module, samples: Tensor
) -> None:
    engine = make(calibration, batchsize=2)
    engine.compress()

    outputs, seconds = engine.inference(samples)

    assert outputs.shape == (5, 3)
    assert seconds > 0
    assert 0 < relative_error(outputs, model(samples)) < 0.05


@pytest.mark.claim("compression", 90)
def test_an_engine_that_is_read_from_a_file_gives_the_same(
    make: Make, calibration: dict[str, Any], samples: Tensor, tmp_path: Path
) -> None:
    engine = make(calibration)
    engine.compress()
    engine.export_quantized_model(tmp_path / "engine")
    other = make()
    other.load_quantized_model(tmp_path / "engine")

    assert torch.equal(other.inference(samples)[0], engine.inference(samples)[0])


@pytest.mark.claim("compression", 90)
def test_bits_of_a_weight_need_the_range_of_the_input(make: Make) -> None:
    with pytest.raises(ValueError, match="no range of the input; give tracked_min_input"):
        make({"0": {"weight_bits": 8}})


@pytest.mark.claim("compression", 90)
def test_bits_that_no_engine_has_are_refused(make: Make) -> None:
    with pytest.raises(ValueError, match=r"must be one of \[8, 16, 32\], got 7"):
        make({"0": {"weight_bits": 7, "tracked_min_input": 0.0, "tracked_max_input": 1.0}})


def test_configurations_of_both_dialects_give_the_same(
    make: Make, calibration: dict[str, Any], samples: Tensor
) -> None:
    engines = [make(calibration), make(to_legacy(calibration))]
    for engine in engines:
        engine.compress()

    one, other = (engine.inference(samples)[0] for engine in engines)

    torch.testing.assert_close(one, other, rtol=0, atol=0.02)


def test_documented_keys_of_two_x_are_enough(make: Make, model: nn.Module, samples: Tensor) -> None:
    largest = float(samples.abs().max())
    engine = make(
        {"0": {"weight_bits": 8, "tracked_min_input": -largest, "tracked_max_input": largest}}
    )
    engine.compress()

    assert 0 < relative_error(engine.inference(samples)[0], model(samples)) < 0.05


@pytest.mark.parametrize("kind", ["minmax", "entropy", "ENTROPY_CALIBRATION_2", "legacy"])
def test_ranges_are_measured_where_samples_are_given(
    make: Make, model: nn.Module, samples: Tensor, kind: str
) -> None:
    loader = DataLoader(TensorDataset(samples, torch.zeros(5)), batch_size=2)
    engine = make(calib_data_loader=loader, calibrate_type=kind, batchsize=2)
    engine.compress()

    assert 0 < relative_error(engine.inference(samples)[0], model(samples)) < 0.1
    kinds = [node.op_type for node in onnx.load(str(engine.onnx_path)).graph.node]
    assert kinds.count("QuantizeLinear") >= 2


def test_a_calibration_is_taken_from_its_cache(make: Make, samples: Tensor) -> None:
    first = make(calib_data_loader=samples)
    first.compress()
    again = make(calib_data_loader=1000 * samples)
    again.compress()

    assert torch.equal(again.inference(samples)[0], first.inference(samples)[0])


def test_a_cache_of_another_model_is_refused(make: Make, samples: Tensor, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text('{"conv": 0.1}')

    with pytest.raises(ValueError, match="is no calibration of this model; delete it"):
        make(calib_data_loader=samples).compress()


def test_sixteen_bits_for_all_layers(make: Make, model: nn.Module, samples: Tensor) -> None:
    engine = make(extra_layer_bits=16)
    engine.compress()

    assert 0 < relative_error(engine.inference(samples)[0], model(samples)) < 1e-2
    types = {one.data_type for one in onnx.load(str(engine.onnx_path)).graph.initializer}
    assert onnx.TensorProto.FLOAT16 in types
    assert next(model.parameters()).dtype == torch.float32


def test_without_a_configuration_the_model_is_as_it_is(
    make: Make, model: nn.Module, samples: Tensor
) -> None:
    engine = make()
    engine.compress()

    torch.testing.assert_close(engine.inference(samples)[0], model(samples).detach())


def test_input_and_output_have_the_given_names(make: Make, samples: Tensor) -> None:
    engine = make(input_names=["image"], output_names=["scores"])
    engine.compress()

    graph = onnx.load(str(engine.onnx_path)).graph
    assert ([one.name for one in graph.input], [one.name for one in graph.output]) == (
        ["image"],
        ["scores"],
    )
    assert engine.inference(samples)[0].shape == (5, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"extra_layer_bits": 8}, "give calib_data_loader"),
        ({"extra_layer_bits": 12}, r"extra_layer_bits must be one of \[8, 16, 32\], got 12"),
        ({"batchsize": 0}, "batchsize must be at least 1, got 0"),
        ({"input_names": ["a", "b"]}, "input_names must be a list with one name"),
        ({"calib_data_loader": "folder"}, "a tensor, an array or a DataLoader"),
        ({"calib_data_loader": torch.zeros(1, 2), "calibrate_type": "best"}, "algorithm must be"),
        ({"config": {"conv": {"weight_bits": 8}}}, "which the model lacks"),
        ({"config": {"3": {"output_bits": 8}}}, "is a Flatten, which engines do not compute"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_is_written(
    make: Make, arguments: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        make(**arguments)
    assert list(tmp_path.iterdir()) == []


def test_an_engine_runs_only_after_it_was_built(
    make: Make, samples: Tensor, tmp_path: Path
) -> None:
    engine = make()

    with pytest.raises(RuntimeError, match=r"call compress\(\)"):
        engine.inference(samples)
    with pytest.raises(RuntimeError, match=r"call compress\(\)"):
        engine.export_quantized_model(tmp_path / "engine")


def test_samples_of_another_shape_are_refused(make: Make) -> None:
    engine = make()
    engine.compress()

    with pytest.raises(ValueError, match=r"samples of shape \[2, 6, 6\], got a tensor of shape"):
        engine.inference(torch.zeros(1, 3, 6, 6))


def test_a_file_that_is_no_engine_is_refused(make: Make, tmp_path: Path) -> None:
    (tmp_path / "engine").write_bytes(b"no engine")

    with pytest.raises(ValueError, match="no model that ONNX Runtime reads"):
        make().load_quantized_model(tmp_path / "engine")


def test_a_configuration_with_folded_batch_norms_is_computed_as_such(tmp_path: Path) -> None:
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(4)
    nn.init.constant_(norm.weight, 0.1)
    model = nn.Sequential(nn.Conv2d(2, 4, 3), norm).eval()
    samples = torch.randn(4, *SHAPE[1:])
    entry = {"op_names": ["0"], "target_names": ["_input_", "weight"], "quant_dtype": "int8"}
    quantizer = QATQuantizer(model, [entry], dummy_input=samples)
    model.train()(samples)
    with torch.no_grad():
        expected = model.eval()(samples)
    config = quantizer.export_model(tmp_path / "model.pth")

    engine = ModelSpeedupReference(
        *(model, SHAPE, config, tmp_path / "model.onnx"), batchsize=4, fold_batch_norms=True
    )
    engine.compress()

    # Values between two integers may be rounded to either one: less than one of 127 steps.
    step = float(expected.abs().max()) / 127
    torch.testing.assert_close(engine.inference(samples)[0], expected, rtol=0, atol=step)
