import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch.export import ExportedProgram

from nni.compression.quantization import (
    BNNQuantizer,
    NaiveQuantizer,
    QATQuantizer,
    compile_pt2e,
    export_pt2e,
)
from nni.compression.quantization.presets import config_list_for
from tests.unit.sdk.nni.compression.models import randomised
from tests.unit.sdk.nni.compression.quantization.test_onnx_export import (
    INT8,
    ONE_STEP,
    ConvNet,
    Encoder,
    calibrated,
    images,
    sentences,
)


def operators(program: ExportedProgram) -> Counter[str]:
    """Return the quantizing operators of a program, counted by name."""
    found = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    return Counter(name.split(".")[1] for name in found if name.startswith("quantized_decomposed"))


def difference(found: Tensor, expected: Tensor) -> float:
    """Return the largest difference, relative to the largest value."""
    return float((found - expected).detach().abs().max() / expected.detach().abs().max())


@pytest.mark.parametrize(("kind", "value"), [(ConvNet, images()), (Encoder, sentences())])
def test_a_program_computes_what_the_simulation_does(kind: type[nn.Module], value: Tensor) -> None:
    model = randomised(kind())
    quantizer = calibrated(model, INT8, value)
    before = model.state_dict()
    expected = model(value)

    program = export_pt2e(model, quantizer, value)

    assert difference(program.module()(value), expected) < ONE_STEP
    assert operators(program) == {
        "quantize_per_tensor": 4,
        "dequantize_per_tensor": 4,
        "dequantize_per_channel": 4,
    }
    assert torch.equal(model(value), expected)
    assert all(torch.equal(before[name], one) for name, one in model.state_dict().items())


def test_a_program_is_read_from_a_file(tmp_path: Path) -> None:
    model = randomised(ConvNet())
    program = export_pt2e(model, calibrated(model, INT8, images()), (images(),))

    torch.export.save(program, tmp_path / "model.pt2")

    read = torch.export.load(tmp_path / "model.pt2")
    assert torch.equal(read.module()(images()), program.module()(images()))


def test_one_scale_of_a_weight_is_repeated_for_its_channels() -> None:
    model: Any = nn.Sequential(nn.Linear(4, 3))
    program = export_pt2e(model, NaiveQuantizer(model), torch.zeros(1, 4))

    (scales,) = [one for name, one in program.named_buffers() if "weight.scales" in name]
    assert scales.shape == (3,)
    assert torch.equal(scales, scales[:1].expand(3))


def test_a_calibration_describes_an_unwrapped_model() -> None:
    model = randomised(ConvNet())
    quantizer = calibrated(model, INT8, images())
    expected = model(images())
    calibration = quantizer.get_calibration_config()
    quantizer.unwrap_model()

    program = export_pt2e(model, calibration, {"image": images()}, fold_batch_norms=True)

    assert difference(program.module()(image=images()), expected) < ONE_STEP


def test_what_has_no_scale_stays_as_it_is_simulated(caplog: pytest.LogCaptureFixture) -> None:
    model: Any = randomised(nn.Sequential(nn.Linear(4, 3)))
    config = [{"op_types": ["Linear"], "target_names": ["weight"], "quant_dtype": "int1"}]
    quantizer = BNNQuantizer(model, config)
    assert quantizer.get_modules_wrapper()
    value = torch.ones(2, 4)
    expected = model.eval()(value)

    program = export_pt2e(model, quantizer, value)

    assert torch.allclose(program.module()(value), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("calibration", "value", "words"),
    [
        ([], torch.zeros(1, 4), "calibration must be a Quantizer"),
        ({}, [1.0], "example_inputs must be a tensor"),
    ],
)
def test_a_wrong_argument_is_named(calibration: Any, value: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        export_pt2e(nn.Sequential(nn.Linear(4, 3)), calibration, value)


def test_a_model_of_another_quantizer_is_refused() -> None:
    config = [{"op_types": ["Linear"], "quant_dtype": "int8"}]
    quantizer = QATQuantizer(nn.Sequential(nn.Linear(4, 3)), config)

    with pytest.raises(ValueError, match="model must be the one that calibration quantizes"):
        export_pt2e(nn.Sequential(nn.Linear(4, 3)), quantizer, torch.zeros(1, 4))


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # of torch's own modules
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_a_compiled_program_runs_its_layers_in_integers() -> None:
    from torch._inductor import config  # takes seconds

    layers = (nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5))
    model = randomised(nn.Sequential(*layers))
    quantizer = calibrated(model, config_list_for("onnxruntime", model, (images(),)), images())
    expected = model(images())
    program = export_pt2e(model, quantizer, images())
    counters.clear()

    with config.patch(compile_threads=1):
        found = compile_pt2e(program)(images())

    assert difference(found, expected) < ONE_STEP
    assert counters["inductor"]["qconv_weight_prepack_matcher_count"] == 1
    assert counters["inductor"]["qlinear_weight_prepack_matcher_count"] == 1
    assert not found.requires_grad
