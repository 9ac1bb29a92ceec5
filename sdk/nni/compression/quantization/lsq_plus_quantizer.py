"""Quantizer that learns its scales and zero points: LSQ+."""

from collections.abc import Mapping
from typing import Final

import torch
from torch import Tensor, nn

from nni.compression.base.numerics import learned_affine_step
from nni.compression.base.target_quantizer import Calibration, TargetPlace, TargetQuantizer
from nni.compression.config.quantization_settings import QuantizationSettings
from nni.compression.quantization.blocks import spread
from nni.compression.quantization.lsq_quantizer import LsqQuantizer, StepQuantizer
from nni.compression.quantization.range_quantizer import loaded_range

_FIRST_SCALE: Final = 0.01


class LsqPlusQuantizer(LsqQuantizer):
    """Quantizer that learns each target's scale and zero point by gradients, with the model.

    All scales begin at 0.01 and all zero points in the middle of the integers;
    `load_calibration_config` gives better first values. Signed integers include their lowest one.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 3.0 or 2.x; parameters are signed. Inputs and outputs have one
            scale each. Targets are affine; another scheme is logged as a warning.
        evaluator: trains the model; None if the caller does.
        dummy_input: example input of the model, on its device, or a tuple of them. If given, each
            batch norm that follows a selected convolution directly is folded into it.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.

    Source: Bhalgat et al., LSQ+: Improving Low-Bit Quantization through Learnable Offsets and
        Better Initialization, 2020.

    Examples:
        >>> from torch import nn
        >>> from nni.compression.quantization import LsqPlusQuantizer
        >>> config_list = [
        ...     {"op_types": ["Linear"], "target_names": ["weight"], "quant_scheme": "affine"}
        ... ]
        >>> quantizer = LsqPlusQuantizer(nn.Sequential(nn.Linear(2, 1)), config_list)
        >>> [round(one.item(), 4) for one in quantizer.parameter_group()["params"]]
        [0.01, 0.0]
    """

    scheme = "affine"

    def make_target_quantizer(  # noqa: D102 - see the base
        self, settings: QuantizationSettings, place: TargetPlace
    ) -> TargetQuantizer:
        return AffineStepQuantizer(settings, place)


class AffineStepQuantizer(StepQuantizer):
    """Quantizer of one target by a scale and a zero point that are parameters.

    Args:
        settings: settings of the target.
        place: the target.
    """

    def __init__(self, settings: QuantizationSettings, place: TargetPlace) -> None:
        super().__init__(settings, place)
        del self.zero_point
        self.scale.data.fill_(_FIRST_SCALE)
        self._set_zero_point(self.scale.detach())
        self.ready.fill_(True)  # noqa: FBT003 - a value of the tensor

    def calibration(self) -> Calibration:
        """Return what the base returns, with zero points rounded to whole numbers."""
        return {**super().calibration(), "zero_point": self._whole_zero_point().tolist()}

    def tracked_range(self) -> tuple[Tensor, Tensor] | None:
        """Return the values that the smallest and the largest integer represent."""
        scale, zero_point = self.scale.detach(), self._whole_zero_point()
        qmin, qmax = self.limits
        return (qmin - zero_point) * scale, (qmax - zero_point) * scale

    def load(self, calibration: Mapping[str, object]) -> None:  # noqa: D102 - see the base
        ends = loaded_range(calibration, self)
        if ends is None:
            return
        smallest, largest = ends[0].clamp(max=0), ends[1].clamp(min=0)
        if smallest.shape != self.scale.shape:
            smallest, largest = smallest.amin(), largest.amax()
        qmin, qmax = self.limits
        self.scale.data.copy_((largest - smallest) / (qmax - qmin))
        self.step()
        self.zero_point.data.copy_(torch.round(qmin - smallest / self.scale.detach()))

    def _first_scale(self, blocks: Tensor) -> Tensor:
        return torch.full(blocks.shape[:-1], _FIRST_SCALE, device=blocks.device)

    def _rounded(self, value: Tensor) -> Tensor:
        scale, zero_point = (
            spread(one, value, self.settings, self.place) for one in (self.scale, self.zero_point)
        )
        return learned_affine_step(value, scale, zero_point, self.limits)

    def _set_zero_point(self, scale: Tensor) -> None:
        middle = (self.limits.qmin + self.limits.qmax + 1) // 2
        self.zero_point = nn.Parameter(torch.full_like(scale, middle))

    def _whole_zero_point(self) -> Tensor:
        return torch.round(self.zero_point.detach()).clamp(*self.limits)
