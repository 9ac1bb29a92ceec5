"""Engine on GPUs: arguments everywhere, the engine itself where TensorRT and a GPU are."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch
from torch import nn

from nni.compression.quantization_speedup import ModelSpeedupReference, ModelSpeedupTensorRT

HAS_TENSORRT = importlib.util.find_spec("tensorrt") is not None
HAS_GPU = torch.cuda.is_available()


@pytest.mark.skipif(HAS_TENSORRT, reason="tensorrt is installed here")
def test_without_the_package_the_error_names_the_extra() -> None:
    with pytest.raises(ImportError, match=r"pip install 'nni\[tensorrt\]', or use"):
        ModelSpeedupTensorRT(nn.Linear(1, 1), (1, 1))


def test_arguments_are_checked_before_the_package() -> None:
    with pytest.raises(ValueError, match="extra_layer_bits"):
        ModelSpeedupTensorRT(nn.Linear(1, 1), (1, 1), extra_layer_bits=4)


@pytest.mark.skipif(not (HAS_TENSORRT and HAS_GPU), reason="needs tensorrt and a GPU")
def test_it_computes_what_the_reference_computes(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)).eval()
    samples = torch.randn(5, 2, 6, 6)
    outputs = []
    for kind in (ModelSpeedupTensorRT, ModelSpeedupReference):
        engine = kind(
            model,
            (1, 2, 6, 6),
            onnx_path=tmp_path / "model.onnx",
            calib_data_loader=samples,
            calibration_cache=tmp_path / "cache",
            batchsize=2,
        )
        engine.compress()
        outputs.append(engine.inference(samples)[0])

    torch.testing.assert_close(outputs[0], outputs[1], rtol=0, atol=0.05)
