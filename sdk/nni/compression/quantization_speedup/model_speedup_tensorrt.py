"""Engine for quantized models on NVIDIA GPUs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from nni.compression.quantization_speedup.calibrator import CalibrateType
from nni.compression.quantization_speedup.onnx_model_speedup import EngineSettings, OnnxModelSpeedup
from nni.compression.quantization_speedup.tensorrt_engine import TensorRTEngine


class ModelSpeedupTensorRT(OnnxModelSpeedup):
    """Engine of a quantized model in TensorRT, built from a file in ONNX.

    Layers are quantized by pairs of QuantizeLinear and DequantizeLinear in the file, and
    calibration is done here, so versions of TensorRT without calibrators and dynamic ranges work.

    Args:
        model: an unwrapped model with one input and one output, float32.
        input_shape: shape of the input; the first dimension is replaced by `batchsize`.
        config: calibration configuration of a quantizer, in the form of NNI 3.0 or 2.x; 8, 16 or
            32 bits for each layer.
        onnx_path: where the model is written in ONNX.
        extra_layer_bits: bits of the layers that `config` does not name: 16 or 32.
        strict_datatype: whether each layer computes in the type that it was given; otherwise
            TensorRT may choose a faster one.
        calibrate_type: how ranges are chosen; see `Calibrator`.
        calib_data_loader: samples, or a `DataLoader` of pairs (samples, labels), from which the
            ranges of all layers with a weight are measured; `config` is then not needed.
        calibration_cache: file with the result of that; read if it exists, else written.
        batchsize: samples that the engine computes at a time.
        input_names: name of the input in the file.
        output_names: name of the output in the file.
        fold_batch_norms: whether `config` describes layers with the batch norm after them folded
            in, as that of a quantizer with `dummy_input` does.

    Raises:
        ImportError: tensorrt, onnx or onnxscript is missing.
        RuntimeError: there is no GPU.
        TypeError: the model is no module.
        ValueError: an argument is out of range.

    Examples:
        >>> from nni.compression.quantization_speedup import ModelSpeedupTensorRT
        >>> def run(model, calibration, samples):
        ...     engine = ModelSpeedupTensorRT(model, samples.shape, calibration, batchsize=32)
        ...     engine.compress()
        ...     return engine.inference(samples)
    """

    def __init__(  # noqa: PLR0913 - documented signature
        self,
        model: nn.Module,
        input_shape: Sequence[int],
        config: Mapping[str, Mapping[str, object]] | None = None,
        onnx_path: str | Path = "default_model.onnx",
        extra_layer_bits: int = 32,
        strict_datatype: bool = True,  # noqa: FBT001, FBT002 - documented position
        calibrate_type: object = CalibrateType.ENTROPY2,
        calib_data_loader: Any = None,  # noqa: ANN401 - arrays of any library
        calibration_cache: str | Path = "calibration.cache",
        batchsize: int = 1,
        input_names: Sequence[str] = ("actual_input_1",),
        output_names: Sequence[str] = ("output1",),
        *,
        fold_batch_norms: bool = False,
    ) -> None:
        settings = EngineSettings(
            onnx_path,
            extra_layer_bits,
            calibrate_type,
            calib_data_loader,
            calibration_cache,
            batchsize,
            input_names,
            output_names,
            fold_batch_norms,
        )
        super().__init__(model, input_shape, config, settings, TensorRTEngine(strict_datatype))
