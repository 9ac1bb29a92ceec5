"""Export of a quantized model to a file in ONNX that runtimes execute in integers."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from torch import Tensor, nn

from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.base.onnx_export import check_onnx_packages
from nni.compression.quantization.batch_norm_pairs import batch_norm_pairs
from nni.compression.quantization.presets import Runtime, check_runtime
from nni.compression.quantization.qdq.calibrated import calibrated_wrappers, in_model
from nni.compression.quantization.qdq.simulation import export_wrapped
from nni.compression.quantization.quantizer import Quantizer

Inputs = Tensor | tuple[object, ...] | dict[str, object]
"""Only argument of a call, positional arguments, or named ones."""


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
    _check_inputs(example_inputs)
    with ExitStack() as stack:
        if isinstance(calibration, Quantizer):
            _check_wrapped(model, calibration)
        elif isinstance(calibration, Mapping):
            _check_unwrapped(model)
            folded = batch_norm_pairs(model, example_inputs) if fold_batch_norms else []
            wrappers = calibrated_wrappers(model, calibration, folded)
            stack.enter_context(in_model(model, wrappers, folded))
        else:
            raise TypeError(
                "calibration must be a Quantizer or a calibration configuration, got "
                f"{type(calibration).__name__}"
            )
        export_wrapped(model, example_inputs, path, runtime=runtime, dynamic_batch=dynamic_batch)


def _check_inputs(example_inputs: object) -> None:
    if not isinstance(example_inputs, Tensor | tuple | dict):
        raise TypeError(
            "example_inputs must be a tensor, a tuple of arguments or a dict of named ones, got "
            f"{type(example_inputs).__name__}"
        )


def _check_wrapped(model: nn.Module, quantizer: Quantizer) -> None:
    wrappers = {id(one) for one in quantizer.get_modules_wrapper().values()}
    if not wrappers & {id(one) for one in model.modules()}:
        raise ValueError(
            "model must be the one that calibration quantizes, wrapped; give quantizer.bound_model "
            "after quantizer.wrap_model(), or a calibration configuration"
        )


def _check_unwrapped(model: nn.Module) -> None:
    if any(isinstance(one, ModuleWrapper) for one in model.modules()):
        raise ValueError(
            "model must be unwrapped if calibration is a configuration; call "
            "quantizer.unwrap_model(), or give the quantizer"
        )
