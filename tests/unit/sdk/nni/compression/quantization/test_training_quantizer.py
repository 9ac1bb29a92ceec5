from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.evaluators.torch_evaluator import TorchEvaluator
from nni.compression.quantization import QATQuantizer

WEIGHTS: list[dict[str, object]] = [{"op_types": ["Linear"], "target_names": ["weight"]}]


def trained(model: nn.Module, steps: list[int]) -> TorchEvaluator:
    """Return an evaluator that appends the number of steps of each training."""

    def train(one: nn.Module, optimizer: Any, step: Any, _schedulers: Any, *limits: Any) -> None:
        number = limits[0] or (2 * limits[1] if limits[1] else 5)
        for _ in range(number):
            optimizer.zero_grad()
            loss: Tensor = step(torch.ones(2, 3), one)
            torch.autograd.backward(loss)
            optimizer.step()
        steps.append(number)

    sgd = torch.optim.SGD(model.parameters(), lr=0.01)
    return TorchEvaluator(train, sgd, lambda batch, one: one(batch).square().mean())


@pytest.mark.parametrize(
    ("limits", "expected"), [({"max_steps": 3}, 3), ({"max_epochs": 2}, 4), ({}, 5)]
)
def test_the_model_is_trained_and_its_steps_are_counted(
    limits: dict[str, int], expected: int
) -> None:
    model = nn.Sequential(nn.Linear(3, 2))
    steps: list[int] = []
    quantizer = QATQuantizer(model, WEIGHTS, trained(model, steps))
    before = quantizer.get_modules_wrapper()["0"].parameter("weight").clone()

    found, calibration = quantizer.compress(**limits)

    assert found is model
    assert steps == [expected]
    assert calibration == quantizer.get_calibration_config()
    counted = {int(one.steps) for _, one in quantizer.target_quantizers()}  # type: ignore[arg-type]
    assert counted == {expected + 1}
    assert not torch.equal(quantizer.get_modules_wrapper()["0"].parameter("weight"), before)


def test_without_an_evaluator_the_model_is_only_wrapped() -> None:
    model = nn.Sequential(nn.Linear(3, 2))
    quantizer = QATQuantizer(model, WEIGHTS)

    assert quantizer.compress()[0] is model
    assert quantizer.is_wrapped
    assert quantizer.parameter_group() is None
    with pytest.raises(ValueError, match="max_steps and max_epochs need an evaluator"):
        quantizer.compress(max_steps=1)
