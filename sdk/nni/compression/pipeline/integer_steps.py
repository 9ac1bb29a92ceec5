"""Steps of a pipeline that make a model of integers: quantize, and export to a runtime."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nni.compression.base.compressor import Entry
from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.base.onnx_export import check_onnx_packages
from nni.compression.evaluators.torch_evaluator import TorchEvaluator
from nni.compression.pipeline.budget import Measurement, Quantity
from nni.compression.pipeline.steps import PipelineStep
from nni.compression.quantization.presets import Runtime, check_runtime, config_list_for
from nni.compression.quantization.ptq_quantizer import PtqQuantizer
from nni.compression.quantization.qdq.simulation import export_wrapped
from nni.compression.quantization.runtime_sessions import open_session


class QuantizeStep(PipelineStep):
    """Step that quantizes the model by the ranges of some runs, as `PtqQuantizer` does.

    The model simulates the integers afterwards: it is neither smaller nor faster before an
    `ExportStep`.

    Args:
        calibrate: runs a model with some batches; about 100 samples are enough.
        runtime: chooses what is quantized, by `config_list_for`.
        config_list: what is quantized instead.
        name: name in reports; None: `quantize`.

    Raises:
        ValueError: the runtime is unknown.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pipeline import QuantizeStep
        >>> model, inputs = nn.Sequential(nn.Linear(2, 2)), torch.randn(8, 2)
        >>> quantized = QuantizeStep(lambda model: model(inputs)).run(model, model, inputs)
        >>> len(set(quantized[0].weight[0].tolist()))
        2
    """

    kind = "quantize"
    improves = frozenset[Quantity]()

    def __init__(
        self,
        calibrate: Callable[[nn.Module], object],
        runtime: Runtime = "onnxruntime",
        config_list: list[Entry] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        check_runtime(runtime)
        self._calibrate = calibrate
        self._runtime = runtime
        self._config_list = config_list

    def run(self, model: nn.Module, original: nn.Module, example_inputs: Any) -> nn.Module:  # noqa: ANN401 - inputs of any form
        """Calibrate and quantize the model in place; return it, simulating integers.

        Args:
            model: model of the step before.
            original: not used.
            example_inputs: example inputs of the model.
        """

        def evaluate(one: nn.Module) -> float:
            with torch.no_grad():
                self._calibrate(one)
            return 0.0

        config_list = self._config_list
        if config_list is None:
            config_list = list(config_list_for(self._runtime, model, _arguments(example_inputs)))
        unused = torch.optim.SGD(model.parameters(), lr=1.0)  # nothing is trained
        evaluator = TorchEvaluator(print, unused, print, evaluating_func=evaluate)
        quantizer = PtqQuantizer(model, config_list, evaluator, dummy_input=example_inputs)
        return quantizer.compress()[0]


class ExportStep(PipelineStep):
    """Step that writes the model in ONNX and measures the file in onnxruntime.

    A quantized model is written as `quantization.export_onnx` does. Bytes are those of the file;
    parameters and operations count as before.

    Args:
        path: the file.
        runtime: where pairs of QuantizeLinear and DequantizeLinear are placed for.
        threads: threads of onnxruntime while it is measured.
        name: name in reports; None: `export`.

    Raises:
        ImportError: a package is missing.
        ValueError: the runtime is unknown, or `threads` is below 1.

    Examples:
        >>> import tempfile
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pipeline import ExportStep
        >>> model, inputs = nn.Sequential(nn.Linear(2, 3)), torch.randn(8, 2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     exported = ExportStep(f"{folder}/model.onnx").run(model, model, inputs)
        >>> exported(inputs).shape
        torch.Size([8, 3])
    """

    kind = "export"
    improves = frozenset[Quantity]({"size_bytes", "latency_ms"})

    def __init__(
        self,
        path: str | Path,
        runtime: Runtime = "onnxruntime",
        threads: int = 1,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        check_runtime(runtime)
        if threads < 1:
            raise ValueError(f"threads must be >= 1, got {threads}")
        check_onnx_packages()
        self._path = Path(path)
        self._runtime = runtime
        self._threads = threads

    def run(self, model: nn.Module, original: nn.Module, example_inputs: Any) -> nn.Module:  # noqa: ANN401 - inputs of any form
        """Write the model in ONNX; return a module that runs the file by onnxruntime.

        Args:
            model: model of the step before.
            original: not used.
            example_inputs: example inputs of the model.
        """
        quantized = any(isinstance(one, ModuleWrapper) for one in model.modules())
        inputs = tuple(example_inputs) if isinstance(example_inputs, list) else example_inputs
        export_wrapped(
            *(model, inputs, self._path),
            runtime=self._runtime if quantized else None,
            dynamic_batch=True,
        )
        return RuntimeModel(self._path, threads=self._threads)

    def counted(self, found: Measurement, before: Measurement) -> Measurement:
        """Return a measurement with the file's bytes, and parameters and FLOPs of the step before.

        Args:
            found: what was measured of the module.
            before: after the step before.
        """
        size_bytes = self._path.stat().st_size
        return replace(
            found, size_bytes=size_bytes, parameters=before.parameters, flops=before.flops
        )


class RuntimeModel(nn.Module):
    """Module that runs a file in ONNX by onnxruntime.

    Args:
        path: the file.
        threads: threads of onnxruntime.

    Attributes:
        training: without effect: the file computes as in eval mode.
    """

    def __init__(self, path: Path, *, threads: int) -> None:
        super().__init__()
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._session = open_session(path, options=options)

    def forward(self, *args: Tensor, **kwargs: Tensor) -> Any:  # noqa: ANN401 - as the model's
        """Return the output of the file, run by onnxruntime on the CPU, or a tuple of several.

        Args:
            args: positional arguments of the model.
            kwargs: named ones.
        """
        names = [one.name for one in self._session.get_inputs()]
        feed = {**dict(zip(names, args, strict=False)), **kwargs}
        arrays = {name: value.detach().cpu().numpy() for name, value in feed.items()}
        found = tuple(torch.from_numpy(one) for one in self._session.run(None, arrays))
        return found[0] if len(found) == 1 else found


def _arguments(example_inputs: object) -> tuple[object, ...]:
    if isinstance(example_inputs, tuple | list):
        return tuple(example_inputs)
    return tuple(example_inputs.values()) if isinstance(example_inputs, dict) else (example_inputs,)
