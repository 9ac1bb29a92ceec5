import pytest
import torch
from torch import Tensor

from nni.compression.quantization.quant_grad import QuantGrad, QuantType, gradient_class


class ClipGrad(QuantGrad):
    """Gradient with the three arguments of the documentation."""

    @staticmethod
    def quant_backward(  # type: ignore[override]
        tensor: Tensor, grad_output: Tensor, quant_type: QuantType
    ) -> Tensor:
        if quant_type is QuantType.OUTPUT:
            grad_output[torch.abs(tensor) > 1] = 0
        return grad_output


class InRange(QuantGrad):
    """Gradient with all arguments."""

    @staticmethod
    def quant_backward(  # type: ignore[override]
        tensor: Tensor,
        grad_output: Tensor,
        quant_type: QuantType,
        scale: Tensor,
        zero_point: Tensor,
        qmin: int,
        qmax: int,
    ) -> Tensor:
        place = tensor / scale + zero_point
        return grad_output * ((place >= qmin) & (place <= qmax))


def gradient_of(made: type[QuantGrad], quant_type: QuantType) -> list[float]:
    value = torch.tensor([-3.0, 0.5, 1.5], requires_grad=True)
    details = torch.tensor(0.5), torch.tensor(0.0), -4, 4
    found = made.apply_to(value, value.round(), quant_type, details)
    assert found.tolist() == value.round().tolist()
    (gradient,) = torch.autograd.grad(found.sum(), value)
    return gradient.tolist()


@pytest.mark.claim("compression", 60)
def test_the_gradient_passes_everywhere_by_default() -> None:
    assert gradient_of(QuantGrad, QuantType.OUTPUT) == [1, 1, 1]


def test_a_gradient_of_three_arguments() -> None:
    assert gradient_of(ClipGrad, QuantType.OUTPUT) == [0, 1, 0]
    assert gradient_of(ClipGrad, QuantType.WEIGHT) == [1, 1, 1]


def test_a_gradient_of_seven_arguments() -> None:
    assert gradient_of(InRange, QuantType.INPUT) == [0, 1, 1]


def test_a_gradient_is_a_class_or_its_apply() -> None:
    assert gradient_class(ClipGrad) is ClipGrad
    assert gradient_class(ClipGrad.apply) is ClipGrad
    with pytest.raises(TypeError, match="quant_grad must be a subclass of QuantGrad, or its apply"):
        gradient_class(int)
    with pytest.raises(TypeError, match="got None"):
        gradient_class(None)
