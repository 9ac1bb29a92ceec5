import logging
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from nni.compression.quantization import (
    BNNQuantizer,
    DoReFaQuantizer,
    LsqPlusQuantizer,
    NaiveQuantizer,
    ObserverQuantizer,
    PtqQuantizer,
    QATQuantizer,
    export_onnx,
    open_session,
)
from nni.compression.quantization.calibration import to_legacy
from nni.compression.quantization.presets import config_list_for
from nni.compression.quantization.quantizer import Quantizer
from tests.unit.sdk.nni.compression.models import randomised
from tests.unit.sdk.nni.compression.quantization.test_ptq_quantizer import evaluated

Entries = list[dict[str, object]]

WEIGHT = {"granularity": "out_channel"}
INT8: Entries = [
    {
        "op_types": ["Conv2d", "Linear"],
        "target_names": ["_input_", "weight"],
        "target_settings": {
            "weight": WEIGHT,
            "_input_": {"quant_dtype": "uint8", "quant_scheme": "affine"},
        },
    }
]
INT8_STORED = onnx.TensorProto.INT8
ROUNDINGS_OF_FLOAT32 = 1e-5
"""Relative difference of two orders of the same sums, with biases of 32 bits."""
FEW_VALUES = 1e-3
"""Median difference if few values lie between two integers of fewer bits."""
ONE_STEP = 0.02
"""Sums that round once more differ by some steps of 1/255 of the range."""


class ConvNet(nn.Module):
    """Convolutions with a residual sum, a pool, and a linear layer after a flattening."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.first = nn.Conv2d(8, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.head = nn.Linear(8 * 16, 5)

    def forward(self, image: Tensor) -> Tensor:
        found = self.pool(self.relu(self.norm(self.stem(image))))
        found = functional.relu(found + self.second(self.relu(self.first(found))))
        return self.head(found.flatten(1))


class Encoder(nn.Module):
    """Transformer block: attention of two heads and a feed-forward network."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)
        self.up = nn.Linear(16, 32)
        self.down = nn.Linear(32, 16)
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(2))

    def forward(self, tokens: Tensor) -> Tensor:
        heads = self.qkv(tokens).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(heads[0], heads[1], heads[2])
        tokens = self.norms[0](tokens + self.out(mixed.transpose(1, 2).flatten(2)))
        return self.norms[1](tokens + self.down(functional.gelu(self.up(tokens))))


def images(count: int = 4) -> Tensor:
    return torch.randn(count, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def sentences() -> Tensor:
    return torch.randn(2, 6, 16, generator=torch.Generator().manual_seed(0))


def calibrated(model: nn.Module, config_list: Entries, value: Tensor) -> PtqQuantizer:
    quantizer = PtqQuantizer(model, config_list, evaluated(model, value), dummy_input=value)
    quantizer.compress()
    return quantizer


def difference(path: Path, value: Tensor, expected: Tensor, reduce: Any = np.max) -> float:
    """Return the difference of runtime and simulation, relative to the largest value.

    The largest one, or the median: values between two integers may be rounded either way.
    """
    session = open_session(path)
    (found,) = session.run(None, {session.get_inputs()[0].name: value.numpy()})
    wanted = expected.detach().numpy()
    assert found.shape == wanted.shape
    return float(reduce(np.abs(found - wanted)) / np.abs(wanted).max())


def executed(path: Path) -> Counter[str]:
    """Return the operators that the runtime executes, after it has fused them."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path.with_suffix(".optimized.onnx"))
    options.log_severity_level = 3
    onnxruntime.InferenceSession(path, options)
    return stored_operators(path.with_suffix(".optimized.onnx"))


def stored_operators(path: Path) -> Counter[str]:
    return Counter(node.op_type for node in onnx.load(path).graph.node)


def test_a_convolutional_network_computes_what_the_simulation_does(tmp_path: Path) -> None:
    model = randomised(ConvNet())
    quantizer = calibrated(model, INT8, images())
    before = model.state_dict()
    expected = model(images())

    export_onnx(model, quantizer, images(), tmp_path / "model.onnx", runtime=None)

    assert difference(tmp_path / "model.onnx", images(), expected) < ROUNDINGS_OF_FLOAT32
    assert torch.equal(model(images()), expected)
    assert all(torch.equal(before[name], one) for name, one in model.state_dict().items())
    stored = onnx.load(tmp_path / "model.onnx").graph.initializer
    assert Counter(one.data_type for one in stored if len(one.dims) > 1) == {INT8_STORED: 4}
    assert sum(one.data_type == onnx.TensorProto.INT32 for one in stored) >= 4


def test_a_transformer_computes_what_the_simulation_does(tmp_path: Path) -> None:
    model = randomised(Encoder())
    quantizer = calibrated(model, INT8, sentences())

    export_onnx(model, quantizer, sentences(), tmp_path / "model.onnx", runtime=None)

    expected = model(sentences())
    assert difference(tmp_path / "model.onnx", sentences(), expected) < ONE_STEP
    assert difference(tmp_path / "model.onnx", sentences(), expected, np.median) < 1e-5


def test_the_preset_makes_a_convolutional_network_integer_from_end_to_end(tmp_path: Path) -> None:
    model = randomised(ConvNet())
    quantizer = calibrated(model, config_list_for("onnxruntime", model, (images(),)), images())

    export_onnx(model, quantizer, images(), tmp_path / "model.onnx")

    assert difference(tmp_path / "model.onnx", images(), model(images())) < ONE_STEP
    operators = executed(tmp_path / "model.onnx")
    assert (operators["QLinearConv"], operators["QLinearAdd"], operators["QGemm"]) == (3, 1, 1)
    assert not operators["DequantizeLinear"]


def test_the_preset_makes_all_projections_of_a_transformer_integer(tmp_path: Path) -> None:
    model = randomised(Encoder())
    quantizer = calibrated(
        model, config_list_for("onnxruntime", model, (sentences(),)), sentences()
    )

    export_onnx(model, quantizer, sentences(), tmp_path / "model.onnx")

    assert difference(tmp_path / "model.onnx", sentences(), model(sentences())) < ONE_STEP
    operators = executed(tmp_path / "model.onnx")
    assert operators["QGemm"] == 4
    assert not operators["DequantizeLinear"]


def test_a_value_that_several_layers_read_is_rounded_once(tmp_path: Path) -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.other = nn.Linear(4, 3), nn.Linear(4, 3)

        def forward(self, value: Tensor) -> Tensor:
            return self.one(value) * self.other(value)

    model, value = (
        randomised(Twice()),
        torch.randn(3, 4, generator=torch.Generator().manual_seed(0)),
    )
    quantizer = calibrated(model, INT8, value)

    export_onnx(model, quantizer, value, tmp_path / "model.onnx", runtime=None)

    assert stored_operators(tmp_path / "model.onnx")["QuantizeLinear"] == 1


def test_the_batch_may_have_any_size(tmp_path: Path) -> None:
    model = randomised(ConvNet())
    quantizer = calibrated(model, INT8, images())

    export_onnx(model, quantizer, {"image": images(1)}, tmp_path / "model.onnx", dynamic_batch=True)

    for count in (1, 3):
        expected = model(images(count))
        assert difference(tmp_path / "model.onnx", images(count), expected) < ONE_STEP


def small() -> nn.Module:
    return randomised(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.Hardtanh(), nn.Flatten(), nn.Linear(144, 3))
    )


def weights_and_activations(dtype: str) -> Entries:
    return [
        {"op_types": ["Conv2d", "Linear"], "target_names": ["weight"], "quant_dtype": dtype},
        {"op_types": ["Hardtanh"], "target_names": ["_output_"], "quant_dtype": dtype},
    ]


def trained(quantizer: Quantizer) -> Quantizer:
    quantizer.bound_model.train()
    quantizer.bound_model(images())
    quantizer.bound_model.eval()
    return quantizer


def observed(model: nn.Module) -> Quantizer:
    quantizer = ObserverQuantizer(model, INT8)
    model(images())
    quantizer.compress()
    return quantizer


MAKERS: dict[str, Any] = {
    "qat of 4 bits": lambda model: trained(QATQuantizer(model, weights_and_activations("uint4"))),
    "observer": observed,
    "lsq+": lambda model: trained(LsqPlusQuantizer(model, weights_and_activations("int8"))),
    "dorefa": lambda model: DoReFaQuantizer(model, weights_and_activations("uint3")),
    "bnn": lambda model: BNNQuantizer(model, weights_and_activations("int1")),
}


@pytest.mark.parametrize("name", MAKERS)
def test_other_ranges_and_levels_are_exported(name: str, tmp_path: Path) -> None:
    quantizer = MAKERS[name](small())
    model = quantizer.wrap_model()

    export_onnx(model, quantizer, images(), tmp_path / "model.onnx", runtime=None)

    found = difference(tmp_path / "model.onnx", images(), model(images()), np.median)
    assert found < FEW_VALUES
    types = {one.data_type for one in onnx.load(tmp_path / "model.onnx").graph.initializer}
    assert types & {onnx.TensorProto.INT8, onnx.TensorProto.UINT8}


def test_what_no_runtime_has_stays_as_it_is_simulated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config: Entries = [{"op_types": ["Linear"], "target_names": ["weight"], "quant_dtype": "int12"}]
    model = small()
    quantizer = QATQuantizer(model, config)

    with caplog.at_level(logging.WARNING):
        export_onnx(model, quantizer, images(), tmp_path / "model.onnx")

    assert "3.weight is exported in floating point: RangeQuantizer with int12" in caplog.text
    assert difference(tmp_path / "model.onnx", images(), model(images())) < ROUNDINGS_OF_FLOAT32


@pytest.mark.parametrize("legacy", [False, True])
def test_a_calibration_describes_an_unwrapped_model(tmp_path: Path, legacy: bool) -> None:
    model = randomised(ConvNet())
    quantizer = calibrated(model, INT8, images())
    expected, found = model(images()), quantizer.get_calibration_config()
    quantizer.unwrap_model()
    exact = model(images())

    export_onnx(
        *(model, to_legacy(found) if legacy else found, images(), tmp_path / "model.onnx"),
        runtime=None,
        fold_batch_norms=True,
    )

    assert difference(tmp_path / "model.onnx", images(), expected) < ROUNDINGS_OF_FLOAT32
    assert torch.equal(model(images()), exact)


def test_export_model_writes_the_quantized_model(tmp_path: Path) -> None:
    model = randomised(ConvNet())
    quantizer = calibrated(model, INT8, images())
    expected = model(images())

    quantizer.export_model(
        tmp_path / "model.pth", onnx_path=tmp_path / "model.onnx", input_shape=(4, 3, 8, 8)
    )

    assert difference(tmp_path / "model.onnx", images(), expected) < ONE_STEP
    assert stored_operators(tmp_path / "model.onnx")["QuantizeLinear"] > 2


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"runtime": "tflite"}, ValueError, "runtime must be one of onnxruntime, openvino, got"),
        ({"calibration": 3}, TypeError, "calibration must be a Quantizer or a calibration"),
        ({"calibration": {}}, ValueError, "model must be unwrapped if calibration is"),
        ({"model": nn.ReLU()}, ValueError, "model must be the one that calibration quantizes"),
        ({"example_inputs": [1]}, TypeError, "example_inputs must be a tensor, a tuple of"),
    ],
)
def test_a_wrong_argument_is_named_before_anything_is_written(
    change: dict[str, Any], error: type[Exception], text: str, tmp_path: Path
) -> None:
    model = small()
    arguments = {"model": model, "calibration": NaiveQuantizer(model), "example_inputs": images()}

    with pytest.raises(error, match=text):
        export_onnx(**{**arguments, "path": tmp_path / "model.onnx", **change})

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("calibration", "text"),
    [
        ({"9": {}}, "calibration has module '9', which the model lacks"),
        ({"0": {"weight": {"quant_bits": 2}}}, r"\['0'\]\['weight'\] must have a scale"),
    ],
)
def test_a_calibration_of_another_model_is_refused(
    calibration: dict[str, Any], text: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=text):
        export_onnx(small(), calibration, images(), tmp_path / "model.onnx")
