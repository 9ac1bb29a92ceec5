"""Quantizer of weights to 8 bits that needs no configuration, for first tests."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import torch
from torch import Tensor, nn

from nni.compression.base.compressor import Entry
from nni.compression.base.numerics import SCALE_FLOOR, truncated
from nni.compression.base.target_quantizer import TargetPlace, TargetQuantizer
from nni.compression.config.quantization_defaults import TensorKind
from nni.compression.config.quantization_settings import QuantizationSettings
from nni.compression.quantization.quantizer import Quantizer

_EVERY_WEIGHT: Final = {"op_types": ["default"], "target_names": ["weight"]}


class NaiveQuantizer(Quantizer):
    """Quantizer of weights to 8-bit integers, rounded towards zero.

    The scale of a weight is the largest magnitude that it has had in training mode, divided by 127.
    The gradient passes unchanged.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 3.0 or 2.x with weights and 8 bits, of which dtype, scheme and
            granularity do not count; None for all weights that NNI knows.
        optimizer: not used; part of the documented signature.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.quantization import NaiveQuantizer
        >>> model = nn.Sequential(nn.Linear(2, 1, bias=False))
        >>> model[0].weight.data = torch.tensor([[127.0, 1.9]])
        >>> model = NaiveQuantizer(model).compress()
        >>> model(torch.eye(2)).flatten().tolist()
        [127.0, 1.0]
    """

    signed_bits = (8, 8)
    unsigned_bits = (8, 8)
    kinds: tuple[TensorKind, ...] = ("weight",)

    def __init__(
        self,
        model: nn.Module,
        config_list: Sequence[Entry] | None = None,
        optimizer: torch.optim.Optimizer | None = None,
    ) -> None:
        del optimizer  # nothing is trained here
        super().__init__(model, [_EVERY_WEIGHT] if config_list is None else config_list)

    def make_target_quantizer(  # noqa: D102 - see the base
        self, settings: QuantizationSettings, place: TargetPlace
    ) -> TargetQuantizer:
        return TruncatingQuantizer(
            replace(settings, quant_dtype="int8", quant_scheme="symmetric", granularity="default"),
            place,
        )

    def compress(self) -> nn.Module:
        """Wrap the model unless it is wrapped; return it.

        Returns:
            The model, wrapped.
        """
        return self.wrap_model()


class TruncatingQuantizer(TargetQuantizer):
    """Quantizer of a parameter, towards zero, to 8 bits of its largest magnitude so far.

    Args:
        settings: settings of the target.
        place: the target.
    """

    def forward(self, value: Tensor) -> Tensor:
        """Return the parameter rounded towards zero; in training, enlarge the scale first.

        Args:
            value: the parameter, any shape.

        Returns:
            A tensor of the shape and dtype of `value`.
        """
        if self.training:
            self._observe(value.detach())
        return truncated(value, self.scale).to(value.dtype)

    def start(self, parameter: Tensor) -> None:  # noqa: D102 - see the base
        self.scale.fill_(SCALE_FLOOR)
        self._observe(parameter)

    def _observe(self, value: Tensor) -> None:
        scale = value.abs().amax() / self.integer.range.qmax
        self.scale.copy_(torch.maximum(self.scale, scale))
