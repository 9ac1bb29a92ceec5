"""Interface of engines for quantized models."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn


class BaseModelSpeedup(ABC):
    """Base of engines that are built from a model and its calibration; abstract.

    Args:
        model: an unwrapped model.
        config: calibration configuration of its layers; None: of no layer.
    """

    def __init__(self, model: nn.Module, config: Mapping[str, Mapping[str, object]] | None) -> None:
        self.model = model
        self.config = config

    @abstractmethod
    def compress(self) -> None:
        """Build the engine."""

    @abstractmethod
    def inference(self, test_data: Tensor) -> tuple[Tensor, float]:
        """Return the outputs for all samples, and the seconds that the engine took."""

    @abstractmethod
    def export_quantized_model(self, path: str | Path) -> None:
        """Write the engine to a file."""
