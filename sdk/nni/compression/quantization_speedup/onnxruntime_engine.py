"""Adapter of ONNX Runtime on the CPU to the engine interface."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nni.compression.quantization.runtime_sessions import open_session

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


class OnnxRuntimeEngine:
    """Engine whose built form is the file in ONNX itself."""

    symmetric = False

    def check(self) -> None:
        """Raise ImportError unless ONNX Runtime is installed.

        Raises:
            ImportError: it is not.
        """
        if importlib.util.find_spec("onnxruntime") is None:
            raise ImportError(
                "ModelSpeedupReference needs onnxruntime; run: pip install onnxruntime"
            )

    def build(self, path: Path) -> bytes:
        """Return the content of the file."""
        return path.read_bytes()

    def load(self, built: bytes) -> "LoadedOnnxModel":
        """Open a session of a model in ONNX; raise ValueError if it cannot be read.

        Raises:
            ValueError: the bytes are no model in ONNX.
        """
        self.check()
        try:
            session = open_session(built)
        except Exception as error:  # it raises classes that it does not export
            raise ValueError(
                f"these bytes are no model that ONNX Runtime reads: {error}"
            ) from error
        return LoadedOnnxModel(session)


class LoadedOnnxModel:
    """Model in a session of ONNX Runtime.

    Args:
        session: the session.
    """

    def __init__(self, session: "InferenceSession") -> None:
        self._session = session
        self._names = [one.name for one in session.get_inputs()]

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Return the outputs for one batch."""
        arrays = {
            name: value.detach().cpu().numpy()
            for name, value in zip(self._names, inputs, strict=True)
        }
        return [torch.from_numpy(one) for one in self._session.run(None, arrays)]
