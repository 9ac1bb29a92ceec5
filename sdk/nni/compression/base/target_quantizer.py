"""Base of the quantizers of one target of a module."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from nni.compression.base.numerics import IntegerRange, IntegerType
from nni.compression.base.target_space import is_parameter
from nni.compression.config.quantization_settings import QuantizationSettings

Calibration = dict[str, object]
"""Numbers that describe how one target is quantized, without tensors."""


@dataclass(frozen=True, slots=True)
class TargetPlace:
    """Place of a target: names of module and target, types of the module and those fused."""

    module_name: str
    """Dotted name of the module."""
    target: str
    """Name of the target."""
    module_type: str = ""
    """Class name of the module."""
    fused_types: tuple[str, ...] = ()
    """Class names of the modules that are fused with it, in order."""

    @property
    def where(self) -> str:
        """Return the name of the target in the model, for errors."""
        return f"{self.module_name}.{self.target}"

    @property
    def is_parameter(self) -> bool:
        """Return whether the target is a parameter, not an input or output."""
        return is_parameter(self.target)


@dataclass(frozen=True, slots=True)
class IntegerForm:
    """Rounding of a target to scale * (integer - zero_point), with integers in a range."""

    scale: Tensor
    """Value of one step of the integers, > 0; of a shape that broadcasts to that of the target."""
    zero_point: Tensor
    """Integer that stands for 0; shaped like `scale`."""
    limits: IntegerRange
    """Smallest and largest integer."""


class TargetQuantizer(nn.Module, ABC):
    """Module that quantizes one target: a parameter, an input or an output of a module.

    Its state is in buffers and parameters, and a forward pass changes them in place only: a
    replica of `DataParallel` shares them, and what it replaces is lost. A copy of the state dict
    restores it.

    Args:
        settings: settings of the target.
        place: the target.

    Attributes:
        settings: see above.
        place: see above.
        scale: value of one step of the integers, > 0; without dimensions, or of a shape that
            broadcasts to that of the target.
        zero_point: integer that stands for 0; shaped like `scale`.
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(self, settings: QuantizationSettings, place: TargetPlace) -> None:
        super().__init__()
        self.settings = settings
        self.place = place
        self.register_buffer("scale", torch.ones(()))
        self.register_buffer("zero_point", torch.zeros(()))

    @property
    def integer(self) -> IntegerType:
        """Return the integer type of the target.

        Raises:
            ValueError: there is no such type: a signed one of one bit.
        """
        return IntegerType(self.settings.bits, signed=self.settings.signed)

    def integer_form(self) -> IntegerForm | None:
        """Return how the target is rounded in eval mode, for exports; None if only observed.

        An export compares it with `forward`, and computes what does not agree in floating point.

        Returns:
            By default scale, zero point and integer type; None if the target is left as it is.
        """
        if self.settings.apply_method == "bypass":
            return None
        return IntegerForm(self.scale, self.zero_point, self.integer.range)

    @abstractmethod
    def forward(self, value: Tensor) -> Tensor:
        """Return the target quantized and dequantized: values that its integers represent.

        Args:
            value: the target, any shape.

        Returns:
            A tensor of the shape and dtype of `value`.
        """

    def start(self, parameter: Tensor) -> None:
        """Initialise the state from a parameter, once; not for inputs or outputs; default: none.

        Args:
            parameter: as it will be quantized: masked, and with the batch norm folded in.
        """

    def step(self) -> None:
        """Count one optimizer step; by default do nothing."""

    def tracked_range(self) -> tuple[Tensor, Tensor] | None:
        """Return the smallest and largest value that was observed; None if there is none."""
        return None

    def calibration(self) -> Calibration:
        """Return type, scale, zero point and observed range as numbers and lists, if any.

        Returns:
            `quant_dtype`, `quant_scheme`, `quant_bits`, `scale` and `zero_point` unless the target
            is only observed, and `tracked_min` and `tracked_max` if a range was observed. Numbers
            are floats, or nested lists in the shape of the scale.
        """
        found: Calibration = {}
        if self.settings.apply_method != "bypass":
            found = {
                "quant_dtype": self.settings.quant_dtype,
                "quant_scheme": self.settings.quant_scheme,
                "quant_bits": self.settings.bits,
                "scale": self.scale.detach().tolist(),
                "zero_point": self.zero_point.detach().tolist(),
            }
        tracked = self.tracked_range()
        if tracked is not None:
            found["tracked_min"], found["tracked_max"] = (one.tolist() for one in tracked)
        return found

    def load(self, calibration: Mapping[str, object]) -> None:
        """Take the state over from a calibration; by default do nothing.

        Args:
            calibration: what `calibration` returned, of this or another algorithm, with the same
                number of bits.
        """

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:  # noqa: ANN401
        """Load buffers, resized first to their saved shapes, which depend on data."""
        for name, buffer in self._buffers.items():
            saved = state_dict.get(prefix + name)
            if buffer is not None and saved is not None and saved.shape != buffer.shape:
                buffer.resize_(saved.shape)
        super()._load_from_state_dict(state_dict, prefix, *args)
