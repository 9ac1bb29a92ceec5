from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.evaluators.legacy_evaluator import LegacyEvaluator
from nni.compression.pruning import (
    ActivationMeanRankPruner,
    FPGMPruner,
    L1NormPruner,
    L2NormPruner,
    LevelPruner,
    PruningScheduler,
)
from nni.compression.pruning.tools import (
    BasicPruner,
    DistMetricsCalculator,
    LinearTaskGenerator,
    MeanRankMetricsCalculator,
    NormalSparsityAllocator,
    NormMetricsCalculator,
    SingleHookTrainerBasedDataCollector,
    WeightDataCollector,
)
from tests.unit.sdk.nni.compression.pruning.legacy.models import (
    CONVS,
    Trainer,
    loss,
    net,
    sgd,
)


class WeightPruner(BasicPruner):
    """Pruner of weights by a calculator."""

    def __init__(self, model: Any, config_list: Any, calculator: Any, dim: int | None) -> None:
        self.calculator, self.dim = calculator, dim
        super().__init__(model, config_list)

    def reset_tools(self) -> None:
        self.data_collector = WeightDataCollector(self)
        self.metrics_calculator = self.calculator
        self.sparsity_allocator = NormalSparsityAllocator(self, self.dim)


@pytest.mark.parametrize(
    ("calculator", "dim", "kind"),
    [
        (NormMetricsCalculator(None, 1), None, LevelPruner),
        (NormMetricsCalculator(0, 1), 0, L1NormPruner),
        (NormMetricsCalculator(0, 2), 0, L2NormPruner),
        (DistMetricsCalculator(2, 0), 0, FPGMPruner),
    ],
)
def test_tools_mask_what_the_pruner_of_the_same_metric_masks(
    calculator: Any, dim: int | None, kind: Any
) -> None:
    _, found = WeightPruner(net(), CONVS, calculator, dim).compress()
    _, expected = kind(net(), CONVS).compress()

    assert found.keys() == expected.keys()
    for name, targets in expected.items():
        assert all(torch.equal(found[name][key], mask) for key, mask in targets.items())
        assert bool((targets["weight"] == 0).any())


class MeanPruner(BasicPruner):
    """Pruner by the mean output."""

    def __init__(self, model: nn.Module, config_list: Any, evaluator: LegacyEvaluator) -> None:
        self.training = evaluator
        super().__init__(model, config_list)

    def reset_tools(self) -> None:
        self.data_collector = SingleHookTrainerBasedDataCollector(self, self.training, 1)
        self.metrics_calculator = MeanRankMetricsCalculator()
        self.sparsity_allocator = NormalSparsityAllocator(self, 0)

    def calculate_metrics(self) -> Any:
        self._data = {name: [one.relu() for one in own] for name, own in self._data.items()}
        return super().calculate_metrics()


def test_data_of_a_training_are_collected() -> None:
    first, second = net(), net()

    _, found = MeanPruner(first, CONVS, LegacyEvaluator(Trainer(), sgd(first), loss)).compress()

    evaluator = LegacyEvaluator(Trainer(), sgd(second), loss)
    _, expected = ActivationMeanRankPruner(second, CONVS, evaluator, 1).compress()
    for name, targets in expected.items():
        assert torch.equal(found[name]["weight"], targets["weight"])


def test_a_scheduler_runs_a_pruner_of_tools(tmp_path: Any) -> None:
    pruner = WeightPruner(None, None, NormMetricsCalculator(0, 1), 0)
    generator = LinearTaskGenerator(2, net(), CONVS, log_dir=tmp_path)

    PruningScheduler(pruner, generator).compress()

    best = generator.get_best_result()
    assert best is not None
    _, expected = L1NormPruner(net(), CONVS).compress()
    assert all(torch.equal(best[2][name]["bias"], one["bias"]) for name, one in expected.items())
