from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.pruning import SimulatedAnnealingPruner

SPARSITY = [{"op_types": ["Linear"], "sparsity": 0.5}]


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 40))


def kept(one: Any) -> float:
    return float((one(torch.ones(1, 10)) != 0).sum())


@pytest.mark.claim("compression", 40)
def test_the_best_distribution_of_the_same_total_wins(tmp_path: Path) -> None:
    scores = []

    def evaluator(one: nn.Module) -> float:
        scores.append(kept(one))
        return scores[-1]

    pruner = SimulatedAnnealingPruner(
        model(), SPARSITY, "l1", evaluator, cool_down_rate=0.7, log_dir=tmp_path, seed=0
    )
    pruner.compress()

    best = pruner.get_best_result()
    assert best is not None
    _, _, masks, score, config_list = best
    assert score == max(scores)
    small, large = (float(str(entry["total_sparsity"])) for entry in config_list)
    assert small <= large
    lost = [int((masks[name]["weight"] == 0).sum()) for name in ("0", "2")]
    assert lost == [int(20 * small) * 10, int(40 * large) * 20]


def test_a_search_needs_an_evaluator(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="evaluator is missing"):
        SimulatedAnnealingPruner(model(), SPARSITY, "l1", None, log_dir=tmp_path)  # type: ignore[arg-type]  # the test
    with pytest.raises(TypeError, match="evaluator"):
        SimulatedAnnealingPruner(model(), SPARSITY, "l1")  # type: ignore[call-arg]  # the test
