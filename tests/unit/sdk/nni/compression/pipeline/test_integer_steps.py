"""Steps that make a model of integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.pipeline import ExportStep, FineTuneStep, QuantizeStep, run_pipeline
from nni.compression.pipeline.integer_steps import RuntimeModel

INPUTS = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2)).eval()


def mean(model: nn.Module) -> float:
    with torch.no_grad():
        return float(model(INPUTS).mean())


def test_quantize_rounds_what_the_runtime_wants() -> None:
    exact = network()
    expected = exact(INPUTS)

    model = QuantizeStep(lambda model: model(INPUTS)).run(network(), exact, INPUTS)

    assert isinstance(model[0], ModuleWrapper)
    error = (model(INPUTS) - expected).detach().abs().max() / expected.detach().abs().max()
    assert 0 < float(error) < 0.05


def test_a_configuration_replaces_that_of_the_runtime() -> None:
    config_list: Any = [{"op_names": ["2"], "target_names": ["weight"]}]

    model: Any = QuantizeStep(mean, config_list=config_list).run(network(), network(), INPUTS)

    assert [isinstance(one, ModuleWrapper) for one in model] == [False, False, True]


def test_an_exported_model_is_measured_as_the_runtime_executes_it(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    steps = [FineTuneStep(id), QuantizeStep(mean), ExportStep(path)]

    result = run_pipeline(network(), INPUTS[:1], steps, mean, repeats=1)

    _, trained, simulated, exported = (one.found for one in result.reports)
    assert isinstance(result.model, RuntimeModel)
    assert exported.metric == pytest.approx(simulated.metric, abs=0.01)
    assert exported.size_bytes == path.stat().st_size
    assert (exported.parameters, exported.flops) == (trained.parameters, trained.flops)


def test_a_model_that_is_not_quantized_is_exported_as_it_is(tmp_path: Path) -> None:
    model = network()

    exported = ExportStep(tmp_path / "model.onnx").run(model, model, [INPUTS])

    assert torch.allclose(exported(INPUTS[:2]), model(INPUTS[:2]), atol=1e-6)


def test_wrong_arguments_are_refused_at_once(tmp_path: Path) -> None:
    runtime: Any = "tflite"
    with pytest.raises(ValueError, match="runtime must be one of onnxruntime, openvino, got"):
        QuantizeStep(mean, runtime)
    with pytest.raises(ValueError, match="runtime must be one of onnxruntime, openvino, got"):
        ExportStep(tmp_path / "model.onnx", runtime)
    with pytest.raises(ValueError, match="threads must be >= 1, got 0"):
        ExportStep(tmp_path / "model.onnx", threads=0)
