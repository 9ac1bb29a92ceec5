import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from nni.compression.quantization import export_onnx, open_session
from nni.compression.quantization.runtime_sessions import sums_saturate
from tests.unit.sdk.nni.compression.models import randomised
from tests.unit.sdk.nni.compression.quantization.test_onnx_export import (
    INT8,
    ONE_STEP,
    Encoder,
    calibrated,
    sentences,
)

ROOT = Path(__file__).parents[6]
WITHOUT_VNNI = "processor\t: 0\nflags\t\t: fpu sse4_1 avx2 avx512f\n"
WITH_VNNI = "processor\t: 0\nflags\t\t: fpu avx2 avx_vnni\n"


class Recurrent(nn.Module):
    """Linear layer that runs twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.layer(torch.relu(self.layer(tokens)))


def exported(model: nn.Module, path: Path) -> Tensor:
    """Write a quantized model; return what its simulation computes."""
    quantizer = calibrated(randomised(model), INT8, sentences())
    export_onnx(model, quantizer, sentences(), path)
    return model(sentences()).detach()


def error(session: onnxruntime.InferenceSession, expected: Tensor) -> float:
    (found,) = session.run(None, {session.get_inputs()[0].name: sentences().numpy()})
    return float(np.abs(found - expected.numpy()).max() / expected.abs().max())


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        (WITHOUT_VNNI, True),
        (WITH_VNNI, False),
        ("flags : fpu avx512_vnni", False),
        ("processor : 0\nFeatures : fp asimd asimddp", False),
        ("", True),
    ],
)
def test_sums_of_x86_without_vnni_saturate(cpuinfo: str, *, expected: bool) -> None:
    assert sums_saturate(cpuinfo) is expected


@pytest.mark.parametrize("cpuinfo", [WITHOUT_VNNI, None])
def test_each_processor_computes_what_the_simulation_does(
    cpuinfo: str | None, tmp_path: Path
) -> None:
    expected = exported(Encoder(), tmp_path / "model.onnx")

    session = open_session(tmp_path / "model.onnx", cpuinfo=cpuinfo)

    assert error(session, expected) < ONE_STEP


def test_weights_are_unsigned_on_a_processor_without_vnni(tmp_path: Path) -> None:
    exported(Encoder(), tmp_path / "model.onnx")
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "executed.onnx")
    options.log_severity_level = 3  # it warns that the file is for this processor only

    open_session((tmp_path / "model.onnx").read_bytes(), options=options, cpuinfo=WITHOUT_VNNI)

    stored = onnx.load(tmp_path / "executed.onnx").graph.initializer
    assert {one.data_type for one in stored if len(one.dims) > 1} == {onnx.TensorProto.UINT8}
    assert options.log_severity_level == 3


def test_a_weight_that_runs_twice_is_computed_in_floating_point(tmp_path: Path) -> None:
    expected = exported(Recurrent(), tmp_path / "model.onnx")

    with pytest.warns(UserWarning, match="share a quantized weight"):
        session = open_session(str(tmp_path / "model.onnx"), cpuinfo=WITHOUT_VNNI)

    assert error(session, expected) < ONE_STEP
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert error(open_session(tmp_path / "model.onnx", cpuinfo=WITH_VNNI), expected) < ONE_STEP


def test_each_weight_has_a_zero_point_of_its_own(tmp_path: Path) -> None:
    exported(Encoder(), tmp_path / "model.onnx")

    graph = onnx.load(tmp_path / "model.onnx").graph
    stored = {one.name for one in graph.initializer}
    weights = [one for one in graph.node if one.op_type == "DequantizeLinear"]
    points = [one.input[2] for one in weights if one.input[0] in stored]
    assert len(set(points)) == len(points) >= 4


def test_a_missing_file_is_an_error_of_the_runtime(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="File doesn't exist"):
        open_session(tmp_path / "none.onnx", cpuinfo=WITHOUT_VNNI)


def test_quantized_files_are_opened_with_exact_kernels_everywhere() -> None:
    own = "sdk/nni/compression/quantization/runtime_sessions.py"
    opened = [
        str(path.relative_to(ROOT))
        for folder in ("sdk", "examples", "docs")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".md"} and "InferenceSession(" in path.read_text("utf-8")
    ]

    assert opened == [own]
