import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.pruning import LotteryTicketPruner

SPARSITY = [{"op_types": ["Linear"], "sparsity": 0.8}]


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 10))


def finetune(one: Any) -> None:
    with torch.no_grad():
        one[0].module.weight.add_(0.01)


def weight_sum(one: Any) -> float:
    return float(one[0].weight.detach().sum())


@pytest.mark.claim("compression", 36)
def test_each_iteration_masks_the_same_part_and_sets_the_weights_back(tmp_path: Path) -> None:
    pruner = LotteryTicketPruner(
        model(), SPARSITY, "level", 5, tmp_path, finetuner=finetune, evaluator=weight_sum
    )
    pruner.compress()

    best = pruner.get_best_result()
    assert best is not None
    _, ticket, masks, _, _ = best
    kept = masks["0"]["weight"] == 1
    assert torch.equal(ticket.get_parameter("0.weight")[kept], model()[0].weight[kept])
    tasks = json.loads((pruner.task_generator.folder.path / ".tasks").read_text())
    assert [task["state"]["iteration"] for task in tasks.values()] == [1, 2, 3, 4, 5]
    for task in tasks.values():
        assert task["state"]["score_before_reset"] > task["score"]


def test_without_a_reset_the_training_goes_on(tmp_path: Path) -> None:
    pruner = LotteryTicketPruner(
        model(), SPARSITY, "level", 2, tmp_path, finetuner=finetune, reset_weight=False
    )
    pruner.compress()

    best = pruner.get_best_result()
    assert best is not None
    kept = best[2]["0"]["weight"] == 1
    assert int(kept.sum()) == 20
    trained = best[1].get_parameter("0.weight")[kept]
    torch.testing.assert_close(trained, model()[0].weight[kept] + 0.02)
