"""Engines that are built from a file in ONNX."""

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.base.onnx_export import check_onnx_packages
from nni.compression.base.onnx_export import export_onnx as export_plain
from nni.compression.quantization.onnx_export import export_onnx
from nni.compression.quantization_speedup.base_model_speedup import BaseModelSpeedup
from nni.compression.quantization_speedup.calibration import calibrated
from nni.compression.quantization_speedup.calibrator import Calibrator, samples_of
from nni.compression.quantization_speedup.engine import Engine, LoadedEngine
from nni.compression.quantization_speedup.half_layer import with_half_layers
from nni.compression.quantization_speedup.precisions import Precisions, check_bits, precisions_of


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Arguments that all engines share: files, bits, calibration, batch size, names, folding."""

    onnx_path: str | Path
    extra_layer_bits: int
    calibrate_type: object
    calib_data_loader: Any
    calibration_cache: str | Path
    batchsize: int
    input_names: Sequence[str]
    output_names: Sequence[str]
    fold_batch_norms: bool = False

    def check(self) -> None:
        """Raise ValueError unless numbers and names are valid."""
        check_bits("extra_layer_bits", self.extra_layer_bits)
        if self.batchsize < 1:
            raise ValueError(f"batchsize must be at least 1, got {self.batchsize}")
        for field in ("input_names", "output_names"):
            names = getattr(self, field)
            if isinstance(names, str) or len(names) != 1:
                raise ValueError(f"{field} must be a list with one name, got {names!r}")

    def calibrator(self) -> Calibrator | None:
        """Return the calibrator of the samples; None: there are none."""
        if self.calib_data_loader is None:
            return None
        samples = samples_of(self.calib_data_loader)
        size = min(self.batchsize, len(samples))
        return Calibrator(samples, self.calibration_cache, size, self.calibrate_type)


class OnnxModelSpeedup(BaseModelSpeedup):
    """Model written in ONNX for a batch size, and built, run, written and read by a runtime.

    Args:
        model: an unwrapped model with one input and one output.
        input_shape: shape of the input; the first dimension is replaced by the batch size.
        config: calibration configuration in the form of NNI 3.0 or 2.x; None: of no layer.
        settings: the other arguments.
        engine: the runtime.

    Raises:
        ImportError: a package is missing.
        TypeError: the model is no module.
        ValueError: an argument is out of range.
    """

    def __init__(
        self,
        model: nn.Module,
        input_shape: Sequence[int],
        config: Mapping[str, Mapping[str, object]] | None,
        settings: EngineSettings,
        engine: Engine,
    ) -> None:
        super().__init__(model, config)
        _check_model(model)
        settings.check()
        self._calibrator = settings.calibrator()
        if self._calibrator is None:
            precisions_of(model, config, settings.extra_layer_bits)
        check_onnx_packages()
        engine.check()
        self.onnx_path = Path(settings.onnx_path)
        self.extra_layer_bits = settings.extra_layer_bits
        self.batchsize = settings.batchsize
        self._fold_batch_norms = settings.fold_batch_norms
        self._sample_shape = tuple(input_shape[1:])
        self._names = (settings.input_names[0], settings.output_names[0])
        self._engine = engine
        self._built: bytes | None = None
        self._loaded: LoadedEngine | None = None

    def compress(self) -> None:
        """Calibrate the model if there are samples, write it in ONNX, and build the engine.

        Raises:
            RuntimeError: the runtime refuses the model.
        """
        if self._calibrator is not None:
            self.compress_with_calibrator(self._calibrator)
        else:
            self._build(precisions_of(self.model, self.config, self.extra_layer_bits))

    def compress_with_calibrator(self, calib: Calibrator) -> None:
        """Measure the ranges of all layers with a weight, and build the engine.

        Args:
            calib: batches, and the cache of an earlier calibration.

        Raises:
            RuntimeError: the runtime refuses the model.
            ValueError: the cache is that of another model.
        """
        self._build(Precisions(calibrated(self.model, calib), ()))

    def inference(self, test_data: Tensor) -> tuple[Tensor, float]:
        """Return the outputs for all samples, and the seconds that the engine took.

        Args:
            test_data: float32, samples along the first dimension; data on the CPU need no copy.

        Raises:
            RuntimeError: nothing has been built or loaded.
            ValueError: the samples have another shape, or there are none.
        """
        if self._loaded is None:
            raise RuntimeError("there is no engine yet; call compress() or load_quantized_model()")
        if not len(test_data) or tuple(test_data.shape[1:]) != self._sample_shape:
            raise ValueError(
                f"test_data must have samples of shape {list(self._sample_shape)}, got a tensor "
                f"of shape {list(test_data.shape)}"
            )
        outputs, seconds = [], 0.0
        for batch in torch.split(test_data.float(), self.batchsize):
            whole = torch.cat(
                [batch, batch[-1:].expand(self.batchsize - len(batch), *batch.shape[1:])]
            )
            begin = time.perf_counter()
            (output,) = self._loaded.run([whole])
            seconds += time.perf_counter() - begin
            outputs.append(output[: len(batch)])
        return torch.cat(outputs), seconds

    def export_quantized_model(self, path: str | Path) -> None:
        """Write the built engine to a file, in the form of the runtime; raise if there is none.

        Raises:
            RuntimeError: nothing has been built or loaded.
        """
        if self._built is None:
            raise RuntimeError("there is no engine yet; call compress() or load_quantized_model()")
        Path(path).write_bytes(self._built)

    def load_quantized_model(self, path: str | Path) -> None:
        """Read and load an engine that `export_quantized_model` has written.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is no engine of this runtime.
        """
        built = Path(path).read_bytes()
        self._loaded = self._engine.load(built)
        self._built = built

    def _build(self, precisions: Precisions) -> None:
        self._write(precisions.symmetric() if self._engine.symmetric else precisions)
        _rename(self.onnx_path, *self._names)
        self._built = self._engine.build(self.onnx_path)
        self._loaded = self._engine.load(self._built)

    def _write(self, precisions: Precisions) -> None:
        model = with_half_layers(copy.deepcopy(self.model), precisions.halves)
        device = next((one.device for one in model.parameters()), torch.device("cpu"))
        example = torch.zeros(self.batchsize, *self._sample_shape, device=device)
        if precisions.integers:
            # Measured ranges are those of the layers as they are.
            folded = self._fold_batch_norms and self._calibrator is None
            export_onnx(
                *(model, precisions.integers, example, self.onnx_path),
                runtime=None,
                fold_batch_norms=folded,
            )
        else:
            export_plain(model, (example,), self.onnx_path)


def _check_model(model: object) -> None:
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    if any(isinstance(one, ModuleWrapper) for one in model.modules()):
        raise ValueError("model must be unwrapped; call quantizer.unwrap_model() first")


def _rename(path: Path, input_name: str, output_name: str) -> None:
    """Rename input and output of a file in ONNX; raise ValueError unless each is one."""
    import onnx

    model = onnx.load(str(path))
    graph = model.graph
    if len(graph.input) != 1 or len(graph.output) != 1:
        raise ValueError(
            f"model must have one input and one output, got {len(graph.input)} and "
            f"{len(graph.output)}"
        )
    names = {graph.input[0].name: input_name, graph.output[0].name: output_name}
    graph.input[0].name, graph.output[0].name = input_name, output_name
    for node in graph.node:
        for values in (node.input, node.output):
            values[:] = [names.get(name, name) for name in values]
    onnx.save(model, str(path))
