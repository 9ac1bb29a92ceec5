"""Base of quantizers of one's own as NNI 2.x documents it: methods that quantize each tensor."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import Tensor, nn

from nni.compression.base.compressor import Entry
from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.base.numerics import IntegerRange
from nni.compression.base.target_quantizer import IntegerForm, TargetPlace, TargetQuantizer
from nni.compression.config.quantization_plan import kind_of
from nni.compression.config.quantization_settings import QuantizationSettings
from nni.compression.quantization.quant_grad import QuantGrad, QuantType, gradient_class
from nni.compression.quantization.quantizer import Quantizer

_ONE_BIT: Final = 1
_UNKNOWN: Final = IntegerRange(-(1 << 31), (1 << 31) - 1)
"""Range of integers that no runtime has."""


class LegacyQuantizer(Quantizer):
    """Base of quantizers of NNI 2.x, by `quantize_weight`, `quantize_input`, `quantize_output`.

    A subclass overrides those that it needs; the others leave their tensor as it is. `quant_grad`
    may be replaced by a subclass of `QuantGrad`, or its `apply`.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 2.x or 3.0; not changed.
        optimizer: `step_with_optimizer` is called after each of its steps; None if the caller
            does.
        dummy_input: example input of the model, for batch norms to fold.

    Attributes:
        optimizer: see above.
        quant_grad: gradient of all quantized tensors.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pytorch import Quantizer
        >>> class SignQuantizer(Quantizer):
        ...     def quantize_weight(self, wrapper, **kwargs):
        ...         return torch.sign(wrapper.module.weight)
        >>> model = nn.Sequential(nn.Linear(2, 1, bias=False))
        >>> model[0].weight.data = torch.tensor([[0.3, -2.0]])
        >>> config_list = [{"op_types": ["Linear"], "quant_types": ["weight"], "quant_bits": 1}]
        >>> model = SignQuantizer(model, config_list).compress()
        >>> model(torch.eye(2)).flatten().tolist()
        [1.0, -1.0]
    """

    signed_bits = (1, 32)

    def __init__(
        self,
        model: nn.Module,
        config_list: Sequence[Entry],
        optimizer: torch.optim.Optimizer | None = None,
        dummy_input: object = None,
    ) -> None:
        self.quant_grad: object = QuantGrad
        self.optimizer = optimizer
        super().__init__(model, config_list, dummy_input=dummy_input)
        if optimizer is not None:
            count_steps(optimizer, self.step_with_optimizer)

    def quantize_weight(self, wrapper: ModuleWrapper, **kwargs: object) -> Tensor:
        """Return the quantized weight of a module; the base returns the weight as it is.

        Args:
            wrapper: wrapper of the module; `wrapper.module.weight` is the weight.
            kwargs: `weight`, which is masked and has the batch norm folded in.

        Returns:
            A tensor of the shape of the weight.
        """
        del wrapper
        weight = kwargs["weight"]
        assert isinstance(weight, Tensor)  # given below
        return weight

    def quantize_input(self, inputs: Tensor, wrapper: ModuleWrapper, **kwargs: object) -> Tensor:
        """Return the quantized input of a module; by default the input unchanged.

        Args:
            inputs: first argument of the module.
            wrapper: wrapper of the module.
            kwargs: nothing at present.

        Returns:
            A tensor of the shape of the input.
        """
        del wrapper, kwargs
        return inputs

    def quantize_output(self, output: Tensor, wrapper: ModuleWrapper, **kwargs: object) -> Tensor:
        """Return the quantized output of a module; by default the output unchanged.

        Args:
            output: output of the module.
            wrapper: wrapper of the module.
            kwargs: nothing at present.

        Returns:
            A tensor of the shape of the output.
        """
        del wrapper, kwargs
        return output

    def compress(self) -> nn.Module:
        """Wrap the model unless it is wrapped; return it.

        Returns:
            The model, wrapped.
        """
        return self.wrap_model()

    def make_target_quantizer(  # noqa: D102 - see the base
        self, settings: QuantizationSettings, place: TargetPlace
    ) -> TargetQuantizer:
        return MethodQuantizer(settings, place, self)


class MethodQuantizer(TargetQuantizer):
    """Quantizer of one target by a method of a `LegacyQuantizer`.

    Args:
        settings: settings of the target.
        place: the target.
        quantizer: has the methods.
    """

    def __init__(
        self, settings: QuantizationSettings, place: TargetPlace, quantizer: LegacyQuantizer
    ) -> None:
        super().__init__(settings, place)
        self.quantizer = quantizer

    def forward(self, value: Tensor) -> Tensor:
        """Return the target as the method quantizes it, with the gradient of `quant_grad`.

        Args:
            value: the target, any shape.

        Returns:
            A tensor of the shape of `value`, with the gradient of `quant_grad`.
        """
        kind = kind_of(self.place.target)
        with torch.no_grad():
            found = self._called(kind, value)
        qmin, qmax = (
            (0, 1) if self.settings.bits == _ONE_BIT else self.integer.range
        )  # one bit with a sign is no integer type, but what NNI 2.x calls a sign
        return gradient_class(self.quantizer.quant_grad).apply_to(
            value, found, QuantType(kind), (self.scale, self.zero_point, qmin, qmax)
        )

    def integer_form(self) -> IntegerForm:
        """Return scale, zero point and limits; limits of inputs and outputs are unknown.

        Such a method may keep state, so that an export is not to try it with values of its own.
        """
        known = self.place.is_parameter and self.settings.bits > _ONE_BIT
        limits = self.integer.range if known else _UNKNOWN
        return IntegerForm(self.scale, self.zero_point, limits)

    def _called(self, kind: str, value: Tensor) -> Tensor:
        wrapper = self.quantizer.get_modules_wrapper()[self.place.module_name]
        if kind == "weight":
            method: Callable[..., Tensor] = self.quantizer.quantize_weight
            return method(wrapper, **_accepted(method, {"weight": value}))
        method = getattr(self.quantizer, f"quantize_{kind}")
        return method(value, wrapper)


def _accepted(method: Callable[..., object], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the named arguments that a method takes."""
    parameters = inspect.signature(method).parameters
    open_ended = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    return kwargs if open_ended else {key: kwargs[key] for key in kwargs if key in parameters}


def count_steps(optimizer: torch.optim.Optimizer, step: Callable[[], None]) -> None:
    """Call a function without gradients after each step of an optimizer.

    Args:
        optimizer: the optimizer.
        step: takes no arguments.

    Raises:
        TypeError: `optimizer` is none.
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"optimizer must be a torch.optim.Optimizer, got {optimizer!r}")

    def after(*_args: object) -> None:
        with torch.no_grad():
            step()

    optimizer.register_step_post_hook(after)
