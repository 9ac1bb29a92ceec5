"""Export of a quantized model to a file in ONNX that runtimes execute in integers."""

from collections.abc import Mapping
from pathlib import Path

from torch import nn

from nni.compression.base.onnx_export import check_onnx_packages
from nni.compression.quantization.presets import Runtime, check_runtime
from nni.compression.quantization.qdq.exported_model import Inputs, wrapped_model
from nni.compression.quantization.qdq.simulation import export_wrapped
from nni.compression.quantization.quantizer import Quantizer


def export_onnx(
    model: nn.Module,
    calibration: Quantizer | Mapping[str, Mapping[str, object]],
    example_inputs: Inputs,
    path: str | Path,
    *,
    runtime: Runtime | None = "onnxruntime",
    dynamic_batch: bool = False,
    fold_batch_norms: bool = False,
) -> None:
    """Write a quantized model to an ONNX file, with QuantizeLinear and DequantizeLinear pairs.

    Weights are stored as integers of 8 bits, biases of 32. Targets that are no such integers are
    computed in floating point as the simulation does, and logged as warnings.

    Args:
        model: the model that `calibration` quantizes, or an unwrapped one that it describes; as
            before afterwards.
        calibration: the quantizer, or what `get_calibration_config` or `export_model` returned, in
            the form of NNI 3.0 or 2.x.
        example_inputs: the only argument of a call, a tuple of positional arguments, or a dict of
            named ones.
        path: the file.
        runtime: pairs are placed so that this runtime uses integer kernels: sums beside a quantized
            layer read rounded values as well. None: pairs stand only where the simulation rounds.
        dynamic_batch: whether the first dimension of all inputs may have any size.
        fold_batch_norms: whether a calibration configuration describes layers with the batch norm
            after them folded in; without effect if `calibration` is a quantizer, which knows.

    Raises:
        ImportError: a package is missing.
        TypeError: `calibration` is something else.
        ValueError: an argument is out of range; nothing is written.

    Examples:
        >>> import tempfile
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.quantization import QATQuantizer, export_onnx
        >>> model = nn.Sequential(nn.Linear(4, 2))
        >>> quantizer = QATQuantizer(model, [{"op_types": ["Linear"], "quant_dtype": "int8"}])
        >>> _ = model(torch.randn(8, 4))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     export_onnx(model, quantizer, torch.zeros(1, 4), f"{folder}/model.onnx")
    """
    if runtime is not None:
        check_runtime(runtime)
    check_onnx_packages()
    with wrapped_model(model, calibration, example_inputs, fold_batch_norms=fold_batch_norms):
        export_wrapped(model, example_inputs, path, runtime=runtime, dynamic_batch=dynamic_batch)
