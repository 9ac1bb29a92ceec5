"""Quantizer of weights and outputs to their signs: binarized neural networks."""

from collections.abc import Sequence

from torch import Tensor, nn

from nni.compression.base.compressor import Entry
from nni.compression.base.numerics import IntegerRange, binarized
from nni.compression.base.target_quantizer import IntegerForm, TargetPlace, TargetQuantizer
from nni.compression.config.quantization_defaults import TensorKind
from nni.compression.config.quantization_settings import QuantizationSettings
from nni.compression.evaluators.torch_evaluator import TorchEvaluator
from nni.compression.quantization.training_quantizer import TrainingQuantizer


class BNNQuantizer(TrainingQuantizer):
    """Quantizer that replaces weights and outputs by their signs, +1 for 0.

    No gradient passes where a value is outside of [-1, 1]. Weights are clipped to that range after
    each optimizer step, so that they do not stay outside.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 3.0 or 2.x with 1 bit, usually the weights of convolutions and
            the outputs of Hardtanh; not changed.
        evaluator: trains the model; None if the caller does.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.

    Source: Courbariaux et al., Binarized Neural Networks: Training Deep Neural Networks with
        Weights and Activations Constrained to +1 or -1, 2016.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.quantization import BNNQuantizer
        >>> model = nn.Sequential(nn.Hardtanh())
        >>> quantizer = BNNQuantizer(
        ...     model, [{"op_types": ["Hardtanh"], "quant_types": ["output"], "quant_bits": 1}]
        ... )
        >>> model(torch.tensor([-3.0, 0.0, 0.5]))
        tensor([-1.,  1.,  1.])
    """

    signed_bits = (1, 1)
    unsigned_bits = (1, 1)
    kinds: tuple[TensorKind, ...] = ("weight", "output")

    def __init__(
        self,
        model: nn.Module,
        config_list: Sequence[Entry],
        evaluator: TorchEvaluator | None = None,
    ) -> None:
        super().__init__(model, config_list, evaluator)

    def make_target_quantizer(  # noqa: D102 - see the base
        self, settings: QuantizationSettings, place: TargetPlace
    ) -> TargetQuantizer:
        return SignQuantizer(settings, place)

    def step_with_optimizer(self) -> None:
        """Count one optimizer step, and clip the quantized parameters to [-1, 1]."""
        super().step_with_optimizer()
        for place, quantizer in self.target_quantizers():
            if place.is_parameter and isinstance(quantizer, SignQuantizer):
                self._wrappers[place.module_name].parameter(place.target).data.clamp_(-1, 1)


class SignQuantizer(TargetQuantizer):
    """Quantizer that replaces one target by its signs.

    Args:
        settings: settings of the target.
        place: the target.
    """

    def forward(self, value: Tensor) -> Tensor:
        """Return the signs of the target, +1 for 0; no gradient passes where |x| > 1.

        Args:
            value: the target, any shape.

        Returns:
            A tensor of the shape and dtype of `value`, of -1 and +1.
        """
        return binarized(value)

    def integer_form(self) -> IntegerForm:
        """Return the signs as integers of scale 1."""
        return IntegerForm(self.scale, self.zero_point, IntegerRange(-1, 1))
