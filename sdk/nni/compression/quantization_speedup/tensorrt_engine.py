"""Adapter of NVIDIA TensorRT to the engine interface."""

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


class TensorRTEngine:
    """Engine that builds plans for the GPU of this machine.

    The network is quantized explicitly, by its pairs of QuantizeLinear and DequantizeLinear, as all
    versions of TensorRT from 8 on read them.

    Args:
        strict_datatype: whether each layer computes in the type that the file gives it; otherwise
            TensorRT may choose a faster one.
        workspace_bytes: memory that the build may use.
    """

    symmetric = True

    def __init__(self, strict_datatype: bool = True, workspace_bytes: int = 4 << 30) -> None:  # noqa: FBT001, FBT002 - documented order
        self.strict_datatype = strict_datatype
        self.workspace_bytes = workspace_bytes

    def check(self) -> None:
        """Raise unless TensorRT and a GPU can be used.

        Raises:
            ImportError: the package is missing.
            RuntimeError: torch sees no GPU.
        """
        if importlib.util.find_spec("tensorrt") is None:
            raise ImportError(
                "ModelSpeedupTensorRT needs tensorrt; run: pip install 'nni[tensorrt]', or use "
                "ModelSpeedupReference, which needs no GPU"
            )
        if not torch.cuda.is_available():
            raise RuntimeError(
                "ModelSpeedupTensorRT needs a CUDA device, and torch sees none; use "
                "ModelSpeedupReference on this machine"
            )

    def build(self, path: Path) -> bytes:
        """Build a file in ONNX to a serialized plan; raise RuntimeError if it is refused.

        Raises:
            RuntimeError: TensorRT refuses the model.
        """
        trt = _tensorrt()
        builder = trt.Builder(trt.Logger(trt.Logger.WARNING))
        network = builder.create_network(self._network_flags(trt))
        parser = trt.OnnxParser(network, trt.Logger(trt.Logger.WARNING))
        if not parser.parse(path.read_bytes()):
            errors = "; ".join(str(parser.get_error(n)) for n in range(parser.num_errors))
            raise RuntimeError(f"TensorRT cannot read {path}: {errors}")
        plan = builder.build_serialized_network(network, self._settings(trt, builder))
        if plan is None:
            raise RuntimeError(f"TensorRT could not build {path}; its log on stderr says why")
        return bytes(plan)

    def load(self, built: bytes) -> "LoadedPlan":
        """Load a serialized plan; raise ValueError if it is of another version or GPU.

        Raises:
            ValueError: the bytes are no plan of this version and GPU.
        """
        self.check()
        trt = _tensorrt()
        engine = trt.Runtime(trt.Logger(trt.Logger.WARNING)).deserialize_cuda_engine(built)
        if engine is None:
            raise ValueError(
                "these bytes are no plan of this version of TensorRT and this GPU; build it again "
                "with compress()"
            )
        return LoadedPlan(trt, engine)

    def _network_flags(self, trt: Any) -> int:  # noqa: ANN401 - a module without types
        flags = trt.NetworkDefinitionCreationFlag
        if self.strict_datatype and hasattr(flags, "STRONGLY_TYPED"):
            return 1 << int(flags.STRONGLY_TYPED)
        if hasattr(flags, "EXPLICIT_BATCH"):  # the only mode since TensorRT 10
            return 1 << int(flags.EXPLICIT_BATCH)
        return 0

    def _settings(self, trt: Any, builder: Any) -> Any:  # noqa: ANN401 - a module without types
        settings = builder.create_builder_config()
        settings.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, self.workspace_bytes)
        if not (
            self.strict_datatype and hasattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED")
        ):
            for name in ("INT8", "FP16"):
                if hasattr(trt.BuilderFlag, name):
                    settings.set_flag(getattr(trt.BuilderFlag, name))
        return settings


def _tensorrt() -> Any:  # noqa: ANN401 - a module without types
    return importlib.import_module("tensorrt")


class LoadedPlan:
    """Plan with an execution context on the current GPU.

    Args:
        trt: the package.
        engine: the deserialized plan.
    """

    def __init__(self, trt: Any, engine: Any) -> None:  # noqa: ANN401 - a module without types
        self._engine = engine  # the context does not keep it alive
        self._context = engine.create_execution_context()
        names = [engine.get_tensor_name(n) for n in range(engine.num_io_tensors)]
        modes = {name: engine.get_tensor_mode(name) for name in names}
        self._inputs = [name for name in names if modes[name] == trt.TensorIOMode.INPUT]
        self._outputs = [name for name in names if modes[name] == trt.TensorIOMode.OUTPUT]

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run one batch on the GPU; return its outputs on the CPU; RuntimeError if it fails."""
        held = [one.detach().to("cuda").contiguous() for one in inputs]
        for name, value in zip(self._inputs, held, strict=True):
            self._context.set_input_shape(name, tuple(value.shape))
            self._context.set_tensor_address(name, value.data_ptr())
        results = []
        for name in self._outputs:
            shape = tuple(self._context.get_tensor_shape(name))
            results.append(torch.empty(shape, dtype=torch.float32, device="cuda"))
            self._context.set_tensor_address(name, results[-1].data_ptr())
        stream = torch.cuda.current_stream()
        if not self._context.execute_async_v3(stream.cuda_stream):
            raise RuntimeError("TensorRT could not run the batch; its log on stderr says why")
        stream.synchronize()
        return [one.cpu() for one in results]
