from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.pruning.iterative_pruner import (
    IterativeAGPPruner,
    IterativeLinearPruner,
)

SPARSITY = [{"op_types": ["Linear"], "sparsity": 0.5}]


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


@pytest.mark.parametrize(
    ("kind", "counts"), [(IterativeLinearPruner, [0, 2, 4]), (IterativeAGPPruner, [0, 3, 4])]
)
def test_the_ratio_grows_over_the_iterations(tmp_path: Path, kind: Any, counts: list[int]) -> None:
    found = []

    def finetune(one: nn.Module) -> None:
        found.append(int((one[0].bias_mask == 0).sum()))

    pruner = kind(model(), SPARSITY, "l1", 2, str(tmp_path), finetuner=finetune)
    pruner.compress()

    assert found == counts
    task_id, _, masks, score, config_list = pruner.get_best_result()
    assert (task_id, score) == (2, None)
    assert int((masks["0"]["bias"] == 0).sum()) == 4
    assert config_list[0] == {"op_names": ["0"], "total_sparsity": 0.5}


def test_the_best_score_wins_and_speedups_shrink_the_model(tmp_path: Path) -> None:
    def evaluator(one: nn.Module) -> float:
        return -float(sum(parameter.numel() for parameter in one.parameters()))

    pruner = IterativeAGPPruner(
        model(),
        [{"op_names": ["0"], "sparsity": 0.5}],
        "fpgm",
        2,
        tmp_path,
        keep_intermediate_result=True,
        speed_up=True,
        dummy_input=torch.ones(2, 4),
        evaluator=evaluator,
    )
    pruner.compress()

    best = pruner.get_best_result()
    assert best is not None
    assert (best[0], best[3]) == (2, -(4 * 4 + 4 + 3 * 4 + 3))
    kept = pruner.task_generator.folder.path / "intermediate_result"
    assert len(list(kept.iterdir())) == 9


@pytest.mark.claim("compression", 45)
def test_the_unpruned_model_of_task_0_is_never_the_best_result(tmp_path: Path) -> None:
    scores = iter([0.9, 0.8, 0.7])
    pruner = IterativeAGPPruner(
        *(model(), [{"op_names": ["0"], "sparsity": 0.5}], "l1", 2, tmp_path),
        evaluator=lambda _: next(scores),
    )
    pruner.compress()

    best = pruner.get_best_result()

    assert best is not None
    assert (best[0], best[3]) == (1, 0.8)
    assert (best[2]["0"]["weight"] == 0).any()


def test_the_best_result_is_exported(tmp_path: Path) -> None:
    pruner = IterativeLinearPruner(model(), SPARSITY, "level", 1, tmp_path)
    with pytest.raises(RuntimeError, match="no result to export"):
        pruner.export_model(tmp_path / "model.pth")
    pruner.compress()

    pruner.export_model(tmp_path / "model.pth", tmp_path / "masks.pth")

    state = torch.load(tmp_path / "model.pth", weights_only=True)
    masks = torch.load(tmp_path / "masks.pth", weights_only=True)
    assert list(state) == list(model().state_dict())
    assert int((state["0.weight"] == 0).sum()) == 16
    assert torch.equal(state["0.weight"] != 0, masks["0"]["weight"] == 1)


def test_wrong_arguments_leave_no_folder(tmp_path: Path) -> None:
    for arguments, error in (
        ({"pruning_algorithm": "agp"}, "pruning_algorithm must be one of"),
        ({"total_iteration": 0}, "total_iteration must be >= 1"),
        ({"speed_up": True}, "dummy_input is missing"),
    ):
        given: dict[str, Any] = {"pruning_algorithm": "l1", "total_iteration": 1, **arguments}
        with pytest.raises(ValueError, match=error):
            IterativeAGPPruner(model(), SPARSITY, log_dir=tmp_path, **given)

    assert list(tmp_path.iterdir()) == []
