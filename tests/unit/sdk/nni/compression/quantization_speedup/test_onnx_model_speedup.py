"""What all engines do before and after their runtime, with a runtime that adds up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest
import torch
from torch import Tensor, nn

from nni.compression.quantization_speedup.onnx_model_speedup import (
    EngineSettings,
    OnnxModelSpeedup,
)


class RecordingEngine:
    """Runtime of a test: its models return the sum of each sample."""

    symmetric = True

    def __init__(self) -> None:
        self.batches: list[int] = []

    def check(self) -> None:
        pass

    def build(self, path: Path) -> bytes:
        return path.read_bytes()

    def load(self, built: bytes) -> RecordingEngine:
        return self

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        self.batches.append(len(inputs[0]))
        return [inputs[0].sum(1, keepdim=True)]


def speedup(engine: RecordingEngine, folder: Path, config: object = None) -> OnnxModelSpeedup:
    settings = EngineSettings(
        onnx_path=folder / "model.onnx",
        extra_layer_bits=32,
        calibrate_type="minmax",
        calib_data_loader=None,
        calibration_cache=folder / "cache",
        batchsize=2,
        input_names=["in"],
        output_names=["out"],
    )
    return OnnxModelSpeedup(nn.Sequential(nn.Linear(2, 1)), (1, 2), config, settings, engine)  # type: ignore[arg-type] # configurations of tests


def test_a_last_batch_is_filled_and_cut(tmp_path: Path) -> None:
    engine = RecordingEngine()
    model = speedup(engine, tmp_path)
    model.compress()

    outputs, _ = model.inference(torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))

    assert outputs.tolist() == [[3.0], [7.0], [11.0]]
    assert engine.batches == [2, 2]


def test_a_runtime_with_ranges_around_zero_gets_signed_integers(tmp_path: Path) -> None:
    ends = {"tracked_min_input": 0.0, "tracked_max_input": 1.0}
    model = speedup(RecordingEngine(), tmp_path, {"0": {"weight_bits": 8, **ends}})
    model.compress()

    kinds = {one.data_type for one in onnx.load(str(model.onnx_path)).graph.initializer}
    assert onnx.TensorProto.INT8 in kinds
    assert onnx.TensorProto.UINT8 not in kinds


class Twice(nn.Module):
    def forward(self, value: Tensor) -> tuple[Tensor, Tensor]:
        return value, value + 1


def test_a_model_with_two_outputs_is_refused(tmp_path: Path) -> None:
    model = speedup(RecordingEngine(), tmp_path)
    model.model = Twice()

    with pytest.raises(ValueError, match="must have one input and one output, got 1 and 2"):
        model.compress()
