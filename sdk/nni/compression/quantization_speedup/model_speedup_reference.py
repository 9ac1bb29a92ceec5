"""Reference engine for quantized models, without a GPU."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from nni.compression.quantization_speedup.calibrator import CalibrateType
from nni.compression.quantization_speedup.onnx_model_speedup import EngineSettings, OnnxModelSpeedup
from nni.compression.quantization_speedup.onnxruntime_engine import OnnxRuntimeEngine


class ModelSpeedupReference(OnnxModelSpeedup):
    """Engine of a quantized model on the CPU, with the interface of `ModelSpeedupTensorRT`.

    Args:
        model: an unwrapped model with one input and one output.
        input_shape: shape of the input; the first dimension is replaced by `batchsize`.
        config: calibration configuration of a quantizer, in the form of NNI 3.0 or 2.x; 8, 16 or
            32 bits for each layer.
        onnx_path: where the model is written in ONNX.
        extra_layer_bits: bits of the layers that `config` does not name: 16 or 32.
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
        ImportError: onnx, onnxscript or onnxruntime is missing.
        TypeError: the model is no module.
        ValueError: an argument is out of range.

    Examples:
        >>> import tempfile
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.quantization_speedup import ModelSpeedupReference
        >>> model = nn.Sequential(nn.Linear(3, 2), nn.ReLU()).eval()
        >>> samples = torch.rand(8, 3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     engine = ModelSpeedupReference(
        ...         model, (1, 3), onnx_path=f"{folder}/model.onnx", batchsize=4,
        ...         calib_data_loader=samples, calibration_cache=f"{folder}/cache",
        ...     )
        ...     engine.compress()
        ...     outputs, seconds = engine.inference(samples)
        >>> bool(torch.allclose(outputs, model(samples), atol=0.05)), seconds > 0
        (True, True)
    """

    def __init__(  # noqa: PLR0913 - documented signature
        self,
        model: nn.Module,
        input_shape: Sequence[int],
        config: Mapping[str, Mapping[str, object]] | None = None,
        onnx_path: str | Path = "default_model.onnx",
        extra_layer_bits: int = 32,
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
        super().__init__(model, input_shape, config, settings, OnnxRuntimeEngine())
