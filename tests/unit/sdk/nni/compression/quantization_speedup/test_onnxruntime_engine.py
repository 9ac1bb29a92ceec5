"""Models in ONNX Runtime behind the port of engines."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from nni.compression.base.onnx_export import export_onnx
from nni.compression.quantization_speedup.onnxruntime_engine import OnnxRuntimeEngine


def test_the_built_form_is_the_file_and_computes_the_model(tmp_path: Path) -> None:
    model, value = nn.Linear(2, 1).eval(), torch.ones(3, 2)
    export_onnx(model, (value,), tmp_path / "model.onnx")
    engine = OnnxRuntimeEngine()

    built = engine.build(tmp_path / "model.onnx")
    (output,) = engine.load(built).run([value])

    assert built == (tmp_path / "model.onnx").read_bytes()
    torch.testing.assert_close(output, model(value).detach())


def test_bytes_that_are_no_model_are_refused() -> None:
    with pytest.raises(ValueError, match="no model that ONNX Runtime reads"):
        OnnxRuntimeEngine().load(b"no model")
