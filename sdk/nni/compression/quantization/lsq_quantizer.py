"""Quantizer that learns its scales: learned step size quantization."""

import logging
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from nni.compression.base.numerics import (
    SCALE_FLOOR,
    IntegerRange,
    learned_step,
    learned_step_scale,
)
from nni.compression.base.target_quantizer import IntegerForm, TargetPlace, TargetQuantizer
from nni.compression.config.quantization_settings import QuantizationSettings
from nni.compression.config.settings import ConfigListError
from nni.compression.quantization.blocks import shared_blocks, spread
from nni.compression.quantization.range_quantizer import loaded_range
from nni.compression.quantization.training_quantizer import TrainingQuantizer

_logger = logging.getLogger(__name__)


class LsqQuantizer(TrainingQuantizer):
    """Quantizer that learns the scale of each target by gradients, together with the model.

    The first scale of a parameter follows from its values, that of an input or output from the
    first batch. The zero point is 0. Signed integers include their lowest one: those of 8 bits
    reach from -128 to 127.

    The scales are parameters of the wrapped model. An evaluator adds them to its first optimizer;
    without one, add `parameter_group()` to your own.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 3.0 or 2.x; parameters are signed. Inputs and outputs have one
            scale each. Targets are symmetric; another scheme is logged as a warning.
        evaluator: trains the model; None if the caller does.
        dummy_input: example input of the model, on its device, or a tuple of them. If given, each
            batch norm that follows a selected convolution directly is folded into it.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.

    Source: Esser et al., Learned Step Size Quantization, 2020.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.quantization import LsqQuantizer
        >>> model = nn.Sequential(nn.Linear(2, 1, bias=False))
        >>> model[0].weight.data = torch.tensor([[1.0, -1.0]])
        >>> config_list = [{"op_types": ["Linear"], "target_names": ["weight"]}]
        >>> quantizer = LsqQuantizer(model, config_list)
        >>> [round(scale.item(), 6) for scale in quantizer.parameter_group()["params"]]
        [0.177471]
    """

    signed_bits = (2, 31)
    unsigned_bits = (1, 31)
    scheme = "symmetric"
    """Scheme that the algorithm has."""

    def check_target(self, settings: QuantizationSettings, place: TargetPlace) -> None:
        """Raise ConfigListError unless a target is supported; warn of a scheme that is replaced.

        Args:
            settings: settings of the target.
            place: the target.

        Raises:
            ConfigListError: a parameter is unsigned, or an input or output has several scales.
        """
        super().check_target(settings, place)
        if place.is_parameter and not settings.signed:
            raise ConfigListError(
                "config_list",
                f"has {settings.quant_dtype} for {place.where}; {type(self).__name__} needs int "
                "for parameters: give quant_dtype",
            )
        if not place.is_parameter and settings.granularity != "default":
            raise ConfigListError(
                "config_list",
                f"has granularity {settings.granularity!r} for {place.where}; "
                f"{type(self).__name__} learns one scale for inputs and outputs: write 'default'",
            )
        if settings.quant_scheme != self.scheme:
            _logger.warning(
                "%s is quantized by the scheme %s, which %s has, not %s",
                *(place.where, self.scheme, type(self).__name__, settings.quant_scheme),
            )

    def make_target_quantizer(  # noqa: D102 - see the base
        self, settings: QuantizationSettings, place: TargetPlace
    ) -> TargetQuantizer:
        return StepQuantizer(settings, place)

    def parameter_group(self) -> Mapping[str, object]:
        """Return the learned scales and zero points as a parameter group for an optimizer.

        Returns:
            `params`, a list of parameters.
        """
        parameters = [one for _, made in self.target_quantizers() for one in made.parameters()]
        return {"params": parameters}


class StepQuantizer(TargetQuantizer):
    """Quantizer of one target to multiples of a scale that is a parameter.

    Args:
        settings: settings of the target.
        place: the target.

    Attributes:
        ready: whether the scale has got its first value from the target.
    """

    ready: Tensor

    def __init__(self, settings: QuantizationSettings, place: TargetPlace) -> None:
        super().__init__(settings, place)
        del self.scale
        self.scale = nn.Parameter(torch.ones(()))
        self.register_buffer("ready", torch.zeros((), dtype=torch.bool))

    @property
    def limits(self) -> IntegerRange:
        """Return the range of the integers, with the lowest one of signed types."""
        qmin, qmax = self.integer.range
        return IntegerRange(qmin - 1 if self.settings.signed else qmin, qmax)

    def forward(self, value: Tensor) -> Tensor:
        """Return the target quantized and dequantized; unchanged until the scale has been set.

        Args:
            value: the target, any shape.

        Returns:
            A tensor of the shape and dtype of `value`.
        """
        if self.training and value.numel() and not self.place.is_parameter:
            self._adjust(value.detach())
        rounded = self._rounded(value).to(value.dtype)
        return torch.where(self.ready, rounded, value)

    def start(self, parameter: Tensor) -> None:  # noqa: D102 - see the base
        scale = self._first_scale(shared_blocks(parameter, self.settings, self.place))
        self.scale = nn.Parameter(scale.to(self.scale))
        self._set_zero_point(self.scale.detach())
        self.ready.fill_(True)  # noqa: FBT003 - a value of the tensor

    def step(self) -> None:
        """Keep the scale positive after an optimizer step."""
        self.scale.data.clamp_(min=SCALE_FLOOR)

    def tracked_range(self) -> tuple[Tensor, Tensor] | None:
        """Return the bounds of the values that the integers encode; None before the scale is set.

        Returns:
            Both ends; None before the first batch.
        """
        if not bool(self.ready):
            return None
        largest = self.scale.detach() * self.limits.qmax
        return -largest if self.settings.signed else 0 * largest, largest

    def integer_form(self) -> IntegerForm | None:  # noqa: D102 - see the base
        return IntegerForm(self.scale.detach(), self.zero_point.detach(), self.limits)

    def load(self, calibration: Mapping[str, object]) -> None:  # noqa: D102 - see the base
        ends = loaded_range(calibration, self)
        if ends is not None:
            largest = torch.maximum(ends[0].abs(), ends[1].abs())
            if largest.numel() == self.scale.numel():
                largest = largest.reshape(self.scale.shape)
            else:
                largest = largest.amax()
            self.scale.data.copy_(largest / self.limits.qmax)
            self.step()
            self.ready.fill_(True)  # noqa: FBT003 - a value of the tensor

    def _first_scale(self, blocks: Tensor) -> Tensor:
        return learned_step_scale(blocks, self.limits.qmax)

    def _adjust(self, value: Tensor) -> None:
        """Set the scale from a value unless it was set before; mark it as ready."""
        first = self._first_scale(value.flatten())
        self.scale.data.copy_(torch.where(self.ready, self.scale.data, first))
        self.ready.fill_(True)  # noqa: FBT003 - a value of the tensor

    def _rounded(self, value: Tensor) -> Tensor:
        return learned_step(
            value, spread(self.scale, value, self.settings, self.place), self.limits
        )

    def _set_zero_point(self, scale: Tensor) -> None:
        self.zero_point = torch.zeros_like(scale)
