from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.quantization.legacy_quantizer import LegacyQuantizer
from tests.unit.sdk.nni.compression.quantization.test_quant_grad import ClipGrad

ALL: list[dict[str, object]] = [
    {"op_types": ["Linear"], "quant_types": ["weight", "input", "output"], "quant_bits": 8}
]


class Rounding(LegacyQuantizer):
    """Quantizer that overrides all methods, with different signatures."""

    def quantize_weight(self, wrapper: ModuleWrapper) -> Tensor:  # type: ignore[override]
        weight: Tensor = wrapper.module.weight  # type: ignore[assignment]
        return weight.round()

    def quantize_input(self, inputs: Tensor, wrapper: ModuleWrapper, **kwargs: object) -> Tensor:
        return inputs.ceil()

    def quantize_output(self, output: Tensor, wrapper: ModuleWrapper, **kwargs: object) -> Tensor:
        return output - 1


def linear() -> Any:
    model = nn.Sequential(nn.Linear(1, 1, bias=False))
    model[0].weight.data.fill_(2.4)
    return model


def test_the_methods_quantize_their_tensors() -> None:
    model = Rounding(linear(), ALL).compress()

    assert model(torch.tensor([[0.2]])).tolist() == [[1]]  # 2 * 1 - 1


def test_without_methods_the_tensors_stay() -> None:
    model = LegacyQuantizer(linear(), ALL).compress()

    assert model(torch.tensor([[0.5]])).item() == pytest.approx(1.2)


@pytest.mark.parametrize("given", [ClipGrad, ClipGrad.apply])
def test_the_gradient_may_be_replaced(given: object) -> None:
    model = linear()
    quantizer = Rounding(model, ALL)
    quantizer.quant_grad = given
    value = torch.tensor([[0.2], [2.0]], requires_grad=True)

    model(value).sum().backward()

    # Outputs before quantization are 2 and 4: the gradient of outputs above 1 is cut.
    assert value.grad.flatten().tolist() == [0, 0]


def test_steps_of_the_optimizer_are_counted() -> None:
    model = linear()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    steps: list[int] = []

    class Counting(Rounding):
        def step_with_optimizer(self) -> None:
            steps.append(1)

    quantizer = Counting(model, ALL, optimizer)
    optimizer.step()

    assert steps == [1]
    assert quantizer.optimizer is optimizer
    with pytest.raises(TypeError, match=r"optimizer must be a torch\.optim.Optimizer, got 1"):
        Counting(linear(), ALL, 1)  # type: ignore[arg-type]  # the error is the point
