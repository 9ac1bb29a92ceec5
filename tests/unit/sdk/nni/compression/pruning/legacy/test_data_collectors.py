from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.base import Pruner
from nni.compression.evaluators.legacy_evaluator import LegacyEvaluator
from nni.compression.pruning import LevelPruner
from nni.compression.pruning.legacy.data_collectors import (
    SingleHookTrainerBasedDataCollector,
    WeightDataCollector,
    WeightTrainerBasedDataCollector,
)

LAYERS = [{"op_types": ["Linear"], "sparsity": 0.5}]
BATCHES = 3


def trainer(model: nn.Module, optimizer: torch.optim.Optimizer, criterion: Any) -> None:
    """Train an epoch of three batches: inputs of 1, 2 and 3."""
    for number in range(BATCHES):
        optimizer.zero_grad()
        criterion(model(torch.full((1, 1), number + 1.0)), torch.zeros(1, 2)).backward()
        optimizer.step()


def pruner_and_evaluator(rate: float = 0.25) -> tuple[Pruner, LegacyEvaluator]:
    """Return a pruner of one layer with weights of 1, and the trainer of its model."""
    model = nn.Sequential(nn.Linear(1, 2, bias=False))
    nn.init.ones_(model.get_parameter("0.weight"))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    return LevelPruner(model, LAYERS), LegacyEvaluator(trainer, optimizer, nn.MSELoss())


def test_weights_are_copied() -> None:
    pruner, _ = pruner_and_evaluator()

    found = WeightDataCollector(pruner).collect()

    weight = pruner.get_modules_wrapper()["0"].parameter("weight")
    assert torch.equal(found["0"], weight)
    assert found["0"].data_ptr() != weight.data_ptr()
    assert not found["0"].requires_grad


def test_weights_are_collected_after_the_epochs_of_training() -> None:
    pruner, evaluator = pruner_and_evaluator()
    expected = torch.ones(2, 1)
    for _ in range(2):
        for number in range(BATCHES):
            expected = expected - 0.25 * expected * (number + 1) ** 2

    found = WeightTrainerBasedDataCollector(pruner, evaluator, 2).collect()

    assert torch.allclose(found["0"], expected)


def test_the_loss_of_the_training_may_be_patched() -> None:
    pruner, evaluator = pruner_and_evaluator()

    def nothing(loss: Tensor, _batch: Any) -> Tensor:
        return loss * 0

    found = WeightTrainerBasedDataCollector(pruner, evaluator, 1, nothing).collect()

    assert torch.equal(found["0"], torch.ones(2, 1))


@pytest.mark.parametrize(
    ("steps", "expected"), [(1, [1.0]), (2, [1.0, 2.0]), (BATCHES, [1.0, 2.0, 3.0])]
)
def test_no_more_outputs_are_collected_than_asked_for(steps: int, expected: list[float]) -> None:
    pruner, evaluator = pruner_and_evaluator(rate=1e-9)
    collector = SingleHookTrainerBasedDataCollector(pruner, evaluator, steps)

    for _ in range(2):  # a second time without the data of the first
        found = collector.collect()

        assert [round(float(one[0, 0]), 3) for one in found["0"]] == expected
    assert not any(len(one._forward_hooks) for one in pruner.bound_model.modules())


def test_gradients_are_those_of_the_weights_before_each_step() -> None:
    pruner, evaluator = pruner_and_evaluator()

    collector = SingleHookTrainerBasedDataCollector(pruner, evaluator, 2, "gradient")
    found = collector.collect()["0"]

    # the gradient of the mean over 2 outputs of (w x)^2 is w x^2; the weight is 0.75 after a step
    assert torch.allclose(torch.stack(found), torch.tensor([[[1.0], [1.0]], [[3.0], [3.0]]]))


def test_reset_forgets_the_data() -> None:
    pruner, evaluator = pruner_and_evaluator()
    collector = SingleHookTrainerBasedDataCollector(pruner, evaluator, 1)
    first = collector.collect()

    collector.reset()

    assert len(first["0"]) == 1
    assert collector.collect() is not first


def test_wrong_arguments_are_refused() -> None:
    pruner, evaluator = pruner_and_evaluator()

    with pytest.raises(ValueError, match="training_epochs must be"):
        WeightTrainerBasedDataCollector(pruner, evaluator, 0)
    with pytest.raises(ValueError, match="training_steps must be"):
        SingleHookTrainerBasedDataCollector(pruner, evaluator, 0)
    kind: Any = "input"
    with pytest.raises(ValueError, match="kind must be 'output' or 'gradient', got 'input'"):
        SingleHookTrainerBasedDataCollector(pruner, evaluator, 1, kind)
