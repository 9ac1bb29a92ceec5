"""Quantizer of weights, activations and gradients to few levels: DoReFa."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from nni.compression.base.compressor import Entry
from nni.compression.base.numerics import (
    IntegerRange,
    dorefa_activation,
    dorefa_gradient,
    dorefa_weight,
)
from nni.compression.base.target_quantizer import (
    Calibration,
    IntegerForm,
    TargetPlace,
    TargetQuantizer,
)
from nni.compression.config.quantization_defaults import TensorKind
from nni.compression.config.quantization_settings import QuantizationSettings
from nni.compression.config.selection import DEFAULT_TYPES
from nni.compression.config.settings import ConfigListError
from nni.compression.evaluators.torch_evaluator import TorchEvaluator
from nni.compression.quantization.training_quantizer import TrainingQuantizer


class DoReFaQuantizer(TrainingQuantizer):
    """Quantizer to 2^bits levels, of weights in [-1, 1] and of activations in [0, 1].

    Weights are squashed by tanh first. Activations are clamped, so they are outputs of activation
    modules, or of layers with a fused one. Dtype, scheme and granularity do not count.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 3.0 or 2.x with weights and outputs; not changed.
        evaluator: trains the model; None if the caller does.
        gradient_bits: bits of the gradients of quantized outputs, from 1 to 32; each sample has a
            range of its own, and noise makes the rounding unbiased. None: gradients stay exact.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.
        ValueError: `gradient_bits` is out of range.

    Source: Zhou et al., DoReFa-Net: Training Low Bitwidth Convolutional Neural Networks with Low
        Bitwidth Gradients, 2016.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.quantization import DoReFaQuantizer
        >>> model = nn.Sequential(nn.Linear(4, 1, bias=False))
        >>> model[0].weight.data = torch.tensor([[-1.0, 0.0, 0.5, 1.0]])
        >>> quantizer = DoReFaQuantizer(
        ...     model, [{"op_types": ["Linear"], "quant_types": ["weight"], "quant_bits": 2}]
        ... )
        >>> model(torch.eye(4)).detach().flatten()
        tensor([-1.0000,  0.3333,  0.3333,  1.0000])
    """

    signed_bits = (1, 32)
    kinds: tuple[TensorKind, ...] = ("weight", "output")

    def __init__(
        self,
        model: nn.Module,
        config_list: Sequence[Entry],
        evaluator: TorchEvaluator | None = None,
        *,
        gradient_bits: int | None = None,
    ) -> None:
        if gradient_bits is not None and gradient_bits not in range(1, 33):
            raise ValueError(f"gradient_bits must be from 1 to 32 or None, got {gradient_bits!r}")
        self.gradient_bits = gradient_bits
        super().__init__(model, config_list, evaluator)

    def check_target(self, settings: QuantizationSettings, place: TargetPlace) -> None:
        """Raise ConfigListError unless a target is a weight, or the output of an activation.

        Args:
            settings: settings of the target.
            place: the target.

        Raises:
            ConfigListError: it is the output of a layer without an activation.
        """
        super().check_target(settings, place)
        last = place.fused_types[-1] if place.fused_types else place.module_type
        if not place.is_parameter and (last in DEFAULT_TYPES or last.startswith("BatchNorm")):
            raise ConfigListError(
                "config_list",
                f"has {place.where} as target, the output of a {last}; DoReFaQuantizer clamps "
                "outputs to [0, 1]: select the activation after it, or fuse it by fuse_names",
            )

    def make_target_quantizer(  # noqa: D102 - see the base
        self, settings: QuantizationSettings, place: TargetPlace
    ) -> TargetQuantizer:
        return LevelQuantizer(settings, place, self.gradient_bits)


class LevelQuantizer(TargetQuantizer):
    """Quantizer of a weight or an activation to levels that do not depend on its range.

    Args:
        settings: settings of the target.
        place: the target.
        gradient_bits: bits of the gradient of an activation; None: it stays exact.
    """

    def __init__(
        self, settings: QuantizationSettings, place: TargetPlace, gradient_bits: int | None
    ) -> None:
        super().__init__(settings, place)
        self.gradient_bits = gradient_bits

    def forward(self, value: Tensor) -> Tensor:
        """Return the target in levels; gradients of activations are rounded if configured.

        Args:
            value: the target, any shape.

        Returns:
            A tensor of the shape and dtype of `value`.
        """
        if self.place.is_parameter:
            return dorefa_weight(value, self.settings.bits)
        found = dorefa_activation(value, self.settings.bits)
        return (
            found if self.gradient_bits is None else _rounding_gradient(found, self.gradient_bits)
        )

    def integer_form(self) -> IntegerForm:
        """Return the levels as integers: odd ones around 0 for weights, from 0 for activations."""
        levels = (1 << self.settings.bits) - 1
        lowest = -levels if self.place.is_parameter else 0
        scale = torch.full_like(self.scale, 1 / levels)
        return IntegerForm(scale, self.zero_point, IntegerRange(lowest, levels))

    def calibration(self) -> Calibration:
        """Return dtype, scheme and bits, without scale, zero point and range."""
        found = super().calibration()
        return {key: found[key] for key in ("quant_dtype", "quant_scheme", "quant_bits")}


class _RoundedGradient(torch.autograd.Function):
    """Identity whose gradient is rounded at random."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, bits: int) -> Tensor:  # noqa: ANN401 - torch's context
        ctx.bits = bits
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        gradient = gradients[0]
        noise = torch.rand_like(gradient) - 0.5
        return dorefa_gradient(gradient, ctx.bits, noise), None


def _rounding_gradient(value: Tensor, bits: int) -> Tensor:
    found: Tensor = _RoundedGradient.apply(value, bits)  # type: ignore[no-untyped-call]  # torch has no types here
    return found
