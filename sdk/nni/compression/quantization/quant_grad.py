"""Gradients of quantizers of the user's own, as NNI 2.x documents them."""

import inspect
from enum import Enum
from typing import Any, Final

import torch
from torch import Tensor

_SHORT: Final = 3
"""Number of arguments of `quant_backward` that a subclass may be limited to."""


class QuantType(Enum):
    """Kind of tensor that is quantized: input, weight or output of a module."""

    INPUT = "input"
    """Input of a module."""
    WEIGHT = "weight"
    """Weight of a module."""
    OUTPUT = "output"
    """Output of a module."""


class QuantGrad(torch.autograd.Function):
    """Gradient of a tensor's quantization: straight-through by default, as if it were the identity.

    Override `quant_backward`, with all its arguments or with the first three, and assign the class
    to `quant_grad` of a quantizer.

    Examples:
        >>> class Halved(QuantGrad):
        ...     @staticmethod
        ...     def quant_backward(tensor, grad_output, quant_type):
        ...         return grad_output / 2
        >>> value = torch.tensor(0.4, requires_grad=True)
        >>> Halved.apply_to(value, torch.tensor(0.0), QuantType.OUTPUT).backward()
        >>> value.grad
        tensor(0.5000)
    """

    @staticmethod
    def quant_backward(
        tensor: Tensor,
        grad_output: Tensor,
        quant_type: QuantType,
        scale: Tensor | None = None,
        zero_point: Tensor | None = None,
        qmin: int | None = None,
        qmax: int | None = None,
    ) -> Tensor:
        """Return the gradient of the tensor before quantization; by default `grad_output`.

        Args:
            tensor: the tensor before quantization.
            grad_output: gradient of the tensor after it.
            quant_type: kind of the tensor.
            scale: value of one step of the integers.
            zero_point: integer that stands for 0.
            qmin: smallest integer.
            qmax: largest integer.

        Returns:
            A tensor of the shape of `tensor`; here `grad_output`.
        """
        del tensor, quant_type, scale, zero_point, qmin, qmax
        return grad_output

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - torch's context
        tensor: Tensor,
        quantized: Tensor,
        gradient: type["QuantGrad"],
        quant_type: QuantType,
        details: tuple[Tensor | None, Tensor | None, int | None, int | None],
    ) -> Tensor:
        """Return the quantized tensor; part of torch's protocol."""
        ctx.save_for_backward(tensor)
        ctx.gradient, ctx.quant_type, ctx.details = gradient, quant_type, details
        return quantized.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        """Return the gradient by `quant_backward`, and None for the other inputs of `forward`."""
        (tensor,) = ctx.saved_tensors
        backward = ctx.gradient.quant_backward
        details = ctx.details if len(inspect.signature(backward).parameters) > _SHORT else ()
        found = backward(tensor, gradients[0].clone(), ctx.quant_type, *details)
        return found, None, None, None, None

    @classmethod
    def apply_to(
        cls,
        tensor: Tensor,
        quantized: Tensor,
        quant_type: QuantType,
        details: tuple[Tensor | None, Tensor | None, int | None, int | None] = (None,) * 4,
    ) -> Tensor:
        """Return a quantized tensor whose gradient is that of `quant_backward`.

        Args:
            tensor: the tensor before quantization.
            quantized: the tensor after it, of the same shape.
            quant_type: kind of the tensor.
            details: scale, zero point, smallest and largest integer.
        """
        found: Tensor = cls.apply(tensor, quantized.detach(), cls, quant_type, details)  # type: ignore[no-untyped-call]  # torch has no types here
        return found


def gradient_class(given: object) -> type[QuantGrad]:
    """Return a QuantGrad class, also for its `apply`; raise TypeError for others.

    Args:
        given: a subclass of `QuantGrad`, or its `apply`.

    Raises:
        TypeError: it is neither.

    Examples:
        >>> gradient_class(QuantGrad.apply) is QuantGrad
        True
    """
    found = given if isinstance(given, type) else getattr(given, "__self__", None)
    if not (isinstance(found, type) and issubclass(found, QuantGrad)):
        raise TypeError(f"quant_grad must be a subclass of QuantGrad, or its apply, got {given!r}")
    return found
