from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

from nni.compression.evaluators.torch_evaluator import TorchEvaluator
from nni.compression.pruning import TaylorFOWeightPruner, TaylorPruner

EVERY = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
BATCHES = (torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 0.0]]))


def pruner_of(model: nn.Module, steps: int) -> TaylorFOWeightPruner:
    def train(one: nn.Module, optimizer: SGD, step: Any, _schedulers: Any, *_limits: Any) -> None:
        for batch in BATCHES[:steps]:
            optimizer.zero_grad()
            loss: Tensor = step(batch, one)
            torch.autograd.backward(loss)
            optimizer.step()

    evaluator = TorchEvaluator(
        train, SGD(model.parameters(), lr=0.0), lambda batch, one: one(batch).sum()
    )
    return TaylorFOWeightPruner(model, EVERY, evaluator, steps)


@pytest.mark.claim("compression", 24)
@pytest.mark.parametrize(
    ("steps", "contributions"),
    # The gradient of each row is the batch: (1 * 5)^2 + (2 * 1)^2 = 29, and (3 * 5)^2 more.
    [(1, [29.0, 4.0 + 64.0]), (2, [29.0 + 225.0, 68.0 + 36.0])],
)
def test_contributions_of_the_steps_add_up(steps: int, contributions: list[float]) -> None:
    model = nn.Sequential(nn.Linear(2, 2, bias=False))
    model[0].weight.data = torch.tensor([[5.0, 1.0], [2.0, 4.0]])
    pruner = pruner_of(model, steps)

    pruner.collect_data()

    metric = pruner.calculate_metrics()["0", "weight"]
    assert metric.flatten().tolist() == contributions


def test_the_smallest_contribution_is_masked() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    model[0].weight.data = torch.tensor([[5.0, 1.0], [2.0, 4.0]])

    _, masks = pruner_of(model, 2).compress()

    assert masks["0"]["bias"].tolist() == [1, 0]


def test_a_layer_that_is_not_trained_is_refused() -> None:
    model = nn.ModuleDict({"used": nn.Linear(2, 2), "unused": nn.Linear(2, 2)})
    optimizer = SGD(model.parameters(), lr=0.1)

    def train(one: nn.Module, _optimizer: SGD, step: Any, *_: Any) -> None:
        loss: Tensor = step(BATCHES[0], one)
        torch.autograd.backward(loss)

    evaluator = TorchEvaluator(
        train, optimizer, lambda batch, one: one.get_submodule("used")(batch).sum()
    )

    with pytest.raises(RuntimeError, match=r"unused\.weight got no gradient in 1 training steps"):
        TaylorFOWeightPruner(model, EVERY, evaluator, 1).compress()


def test_the_name_of_nni_3_is_the_same_class() -> None:
    assert TaylorPruner is TaylorFOWeightPruner
