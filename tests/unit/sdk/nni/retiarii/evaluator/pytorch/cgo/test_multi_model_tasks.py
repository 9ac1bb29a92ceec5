"""Training of several models at once, with the arguments of NNI 2.x."""

from typing import Any

import pytest
from torch import Tensor, nn
from torch.optim import SGD

import nni
from nni.retiarii.deprecation import warn_once
from nni.retiarii.evaluator.pytorch.cgo.evaluator import (
    Classification,
    MultiModelSupervisedLearningModule,
    Regression,
)
from nni.retiarii.evaluator.pytorch.legacy_tasks import LargestLogitAccuracy
from tests.support.lightning_tasks import QUIET, loader, network, reports_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    # Lightning 2.6 calls functions of torch 2.13 that are deprecated.
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]
ACCURACY = {"acc": LargestLogitAccuracy}


class Two(nn.Module):
    """Network of two models."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.first, self.second = network(outputs), network(outputs)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        return self.first(inputs), self.second(inputs)


@pytest.mark.parametrize(
    ("task", "classes", "outputs"), [(Classification, True, 2), (Regression, False, 1)]
)
def test_metrics_of_both_models_are_reported(task: Any, classes: bool, outputs: int) -> None:
    data = loader(16, classes=classes)
    made = task(train_dataloader=data, val_dataloaders=data, max_epochs=1, **QUIET)

    _, [final] = reports_of(lambda: made.evaluate(Two(outputs)))

    # Both models are equal.
    assert final[0] == final[1]


def test_arguments_reach_the_optimizer() -> None:
    module: Any = MultiModelSupervisedLearningModule(nn.CrossEntropyLoss, ACCURACY, 0.5, 0.25, SGD)
    module.set_model(network())

    [group] = module.configure_optimizers().param_groups

    assert (group["lr"], group["weight_decay"]) == (0.5, 0.25)


@pytest.mark.parametrize("metrics", [{}, {**ACCURACY, "other": LargestLogitAccuracy}])
def test_one_metric_is_needed(metrics: Any) -> None:
    with pytest.raises(ValueError, match="metrics must hold one metric"):
        MultiModelSupervisedLearningModule(nn.CrossEntropyLoss, metrics)


def test_evaluator_of_another_process_has_the_same_arguments() -> None:
    made = nni.load(nni.dump(Classification(learning_rate=0.5, max_epochs=3, **QUIET)))

    assert (made.module.learning_rate, made.trainer.max_epochs) == (0.5, 3)


def test_module_warns_of_the_newer_name_once() -> None:
    warn_once.cache_clear()

    with pytest.warns(DeprecationWarning, match="MultiModelLightningModule") as caught:
        _ = [MultiModelSupervisedLearningModule(nn.MSELoss, ACCURACY) for _ in range(2)]

    assert len(caught) == 1
