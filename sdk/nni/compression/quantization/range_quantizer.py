"""Quantizer of one target by the range of values that it has observed."""

import logging
import math
from collections.abc import Callable, Mapping
from typing import Final, Literal

import torch
from torch import Tensor

from nni.compression.base.numerics import (
    moving_average,
    scale_and_zero_point,
    simulated,
    simulated_with_clipped_gradient,
)
from nni.compression.base.target_quantizer import IntegerForm, TargetPlace, TargetQuantizer
from nni.compression.config.quantization_settings import QuantizationSettings
from nni.compression.quantization.blocks import shared_blocks, spread

_logger = logging.getLogger(__name__)

Average = Literal["latest", "moving", "extreme"]
"""Range after several observations: the last one, a moving average, or the widest."""
Observing = Literal["training", "always", "never"]
"""When values are observed: in training mode, in all modes, or not at all."""

DECAY: Final = 0.99
"""Weight of the earlier range in a moving average."""
_MATRIX: Final = 2
"""Rank of activations of a Linear whose channels are in dimension 1."""


class RangeQuantizer(TargetQuantizer):
    """Quantizer that observes the range of a target and rounds to integers of that range.

    Until something was observed the target passes unchanged. Values that are not finite are not
    observed.

    Args:
        settings: settings of the target.
        place: the target.
        average: range after several observations.
        start_step: optimizer step from which on the target is quantized; steps count from 1.

    Attributes:
        observing: when values are observed; `training` at first.
        quantizing: whether the target is quantized; true at first.
        smallest: end of the observed range, shaped like the scale.
        largest: the other end.
        observations: number of observations.
        steps: number of the optimizer step.

    Examples:
        >>> place = TargetPlace("fc", "_input_0")
        >>> settings = QuantizationSettings(quant_dtype="int2")
        >>> quantizer = RangeQuantizer(settings, place, average="moving")
        >>> quantizer(torch.tensor([0.4, -1.0, 0.6]))
        tensor([ 0., -1.,  1.])
    """

    smallest: Tensor
    largest: Tensor
    observations: Tensor
    steps: Tensor

    def __init__(
        self,
        settings: QuantizationSettings,
        place: TargetPlace,
        *,
        average: Average,
        start_step: int = 0,
    ) -> None:
        super().__init__(settings, place)
        self.average = average
        self.start_step = start_step
        self.observing: Observing = "training"
        self.quantizing = settings.apply_method != "bypass"
        self.register_buffer("smallest", torch.zeros(()))
        self.register_buffer("largest", torch.zeros(()))
        self.register_buffer("observations", torch.zeros((), dtype=torch.long))
        self.register_buffer("steps", torch.ones((), dtype=torch.long))
        self._warned = False

    def forward(self, value: Tensor) -> Tensor:
        """Observe the target if due; return it rounded, or unchanged while not active.

        Args:
            value: the target, any shape.

        Returns:
            A tensor of the shape and dtype of `value`.

        Raises:
            TypeError: the target is no tensor of floating-point numbers.
        """
        if not value.is_floating_point():
            return self._not_floating(value)
        if value.numel() == 0 or self._has_no_channels(value):
            return value
        if self.observing == "always" or (self.observing == "training" and self.training):
            self.observe(value.detach())
        if not self.quantizing:
            return value
        active = self.observations > 0
        if self.start_step:
            active = active & (self.steps >= self.start_step)
        return torch.where(active, self._simulated(value), value)

    def start(self, parameter: Tensor) -> None:  # noqa: D102 - see the base
        self.observe(parameter.detach())
        self.observations.zero_().add_(1)

    def step(self) -> None:  # noqa: D102 - see the base
        self.steps.add_(1)

    def observe(self, value: Tensor) -> None:
        """Add an observation of the finite values, if any; compute scale and zero point.

        Args:
            value: any shape, not empty.
        """
        blocks = shared_blocks(value, self.settings, self.place)
        smallest = blocks.nan_to_num(math.inf, math.inf, math.inf).amin(-1)
        largest = blocks.nan_to_num(-math.inf, -math.inf, -math.inf).amax(-1)
        if smallest.shape != self.smallest.shape:
            self._resize(smallest.shape)
        self.smallest.copy_(self._averaged(self.smallest, smallest, torch.minimum))
        self.largest.copy_(self._averaged(self.largest, largest, torch.maximum))
        self.observations.add_(smallest.isfinite().any())
        self._update_scale()

    def tracked_range(self) -> tuple[Tensor, Tensor] | None:  # noqa: D102 - see the base
        return (self.smallest, self.largest) if int(self.observations) else None

    def integer_form(self) -> IntegerForm | None:  # noqa: D102 - see the base
        return super().integer_form() if self.quantizing else None

    def load(self, calibration: Mapping[str, object]) -> None:  # noqa: D102 - see the base
        ends = loaded_range(calibration, self)
        if ends is None:
            return
        if ends[0].shape != self.smallest.shape:
            self._resize(ends[0].shape)
        self.smallest.copy_(ends[0])
        self.largest.copy_(ends[1])
        self.observations.fill_(1)
        self._update_scale()

    def _simulated(self, value: Tensor) -> Tensor:
        wide = value if value.dtype == torch.float64 else value.float()
        scale, zero_point = (
            spread(one, wide, self.settings, self.place) for one in (self.scale, self.zero_point)
        )
        clipping = self.settings.apply_method == "qat_clamp_round"
        simulate = simulated_with_clipped_gradient if clipping else simulated
        return simulate(wide, scale, zero_point, self.integer).to(value.dtype)

    def _update_scale(self) -> None:
        scale, zero_point = scale_and_zero_point(
            self.smallest, self.largest, self.integer, self.settings.quant_scheme
        )
        self.scale.copy_(scale)
        self.zero_point.copy_(zero_point)

    def _averaged(
        self, tracked: Tensor, observed: Tensor, widest: Callable[[Tensor, Tensor], Tensor]
    ) -> Tensor:
        """Return an end of the range: the latest, the moving average or the extreme one."""
        observed = torch.where(observed.isfinite(), observed, tracked)
        match self.average:
            case "latest":
                return observed
            case "moving":
                average = moving_average(tracked, observed, DECAY)
            case "extreme":
                average = widest(tracked, observed)
        return torch.where(self.observations == 0, observed, average)

    def _resize(self, shape: torch.Size) -> None:
        """Resize and reset the statistics; forget all observations."""
        for statistic in (self.scale, self.zero_point, self.smallest, self.largest):
            statistic.resize_(shape).zero_()
        self.scale.fill_(1)
        self.observations.zero_()

    def _has_no_channels(self, value: Tensor) -> bool:
        """Return whether a per-channel Linear activation is not 2-dimensional; if so warn once."""
        channels = not self.place.is_parameter and self.settings.granularity == "per_channel"
        if not channels or self.place.module_type != "Linear" or value.dim() == _MATRIX:
            return False
        if not self._warned:
            _logger.warning(
                "%s is not quantized: per_channel needs activations of 2 dimensions for a Linear, "
                "got %d; use granularity 'default'",
                self.place.where,
                value.dim(),
            )
            self._warned = True
        return True

    def _not_floating(self, value: Tensor) -> Tensor:
        if self.quantizing:
            raise TypeError(
                f"{self.place.where} must be a tensor of floating-point numbers to be quantized, "
                f"got {value.dtype}; leave it out of target_names"
            )
        return value


def loaded_range(
    calibration: Mapping[str, object], quantizer: TargetQuantizer
) -> tuple[Tensor, Tensor] | None:
    """Return the observed range, else that of scale and zero point; None without any.

    Args:
        calibration: numbers of one target; `tracked_min` and `tracked_max`, or else `scale` and
            `zero_point`.
        quantizer: says integer type and device.
    """

    def tensor(key: str) -> Tensor:
        return torch.tensor(calibration[key], dtype=torch.float32, device=quantizer.scale.device)

    if "tracked_min" in calibration and "tracked_max" in calibration:
        return tensor("tracked_min"), tensor("tracked_max")
    if "scale" not in calibration:
        return None
    scale = tensor("scale")
    zero_point = tensor("zero_point") if "zero_point" in calibration else torch.zeros_like(scale)
    qmin, qmax = quantizer.integer.range
    return (qmin - zero_point) * scale, (qmax - zero_point) * scale
