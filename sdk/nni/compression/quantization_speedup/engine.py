"""Port of runtimes that execute a model in ONNX."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from torch import Tensor


class LoadedEngine(Protocol):
    """Interface of models that are ready to run in a runtime."""

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run one batch; return the outputs, on the CPU.

        Args:
            inputs: in the order of the inputs of the model, of the batch size of the file.
        """
        ...


class Engine(Protocol):
    """Interface of runtimes that build models in ONNX into a form of their own, and load it."""

    symmetric: bool
    """Whether it only computes with signed integers whose zero point is 0."""

    def check(self) -> None:
        """Raise unless the runtime can be used.

        Raises:
            ImportError: its package is missing.
        """
        ...

    def build(self, path: Path) -> bytes:
        """Build a file in ONNX; return the serialized form of the runtime.

        Args:
            path: file in ONNX, with pairs of QuantizeLinear and DequantizeLinear.

        Raises:
            RuntimeError: the runtime refuses the model; the message is its own.
        """
        ...

    def load(self, built: bytes) -> LoadedEngine:
        """Return a built model, ready to run.

        Raises:
            ValueError: the bytes are no built model.
        """
        ...
