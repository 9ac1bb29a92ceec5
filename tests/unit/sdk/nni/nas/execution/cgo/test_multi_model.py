"""Training of several models at once."""

from typing import Any

import pytest
import torch
import torchmetrics
from torch import Tensor, nn

import nni
from nni.nas.evaluator.pytorch import Lightning
from nni.nas.execution.cgo import MultiModelLightningModule, MultiModelTrainer
from tests.support.lightning_tasks import QUIET, loader, network, reports_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    # Lightning 2.6 calls functions of torch 2.13 that are deprecated.
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]


class Two(nn.Module):
    """Network of two models."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = network(), network()

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        return self.first(inputs), self.second(inputs)


def module(n_models: int | None = None) -> Any:
    accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=2)
    return MultiModelLightningModule(nn.CrossEntropyLoss(), accuracy, n_models)


def evaluator(**kwargs: Any) -> Any:
    return Lightning(
        module(kwargs.pop("n_models", None)),
        MultiModelTrainer(max_epochs=2, **QUIET),
        kwargs.pop("train", loader(16)),
        kwargs.pop("val", loader(8)),
    )


def test_each_model_is_trained_as_if_it_is_alone() -> None:
    together, alone = Two(), network()

    reports_of(lambda: evaluator().evaluate(together))
    reports_of(lambda: evaluator().evaluate(alone))

    weights = alone.state_dict()["weight"]
    # The same operations on the same batches: the order of additions does not differ.
    assert torch.equal(together.first.state_dict()["weight"], weights)
    assert torch.equal(together.second.state_dict()["weight"], weights)


def test_metrics_of_several_models_are_reported_as_lists() -> None:
    intermediates, finals = reports_of(lambda: evaluator().evaluate(Two()))

    assert [len(one) for one in intermediates] == [2, 2]
    assert finals == [intermediates[-1]]
    assert finals[0][0] == finals[0][1]


def test_metric_of_one_model_is_a_number() -> None:
    intermediates, finals = reports_of(lambda: evaluator().evaluate(network()))

    assert finals == [intermediates[-1]]
    assert isinstance(finals[0], float)


@pytest.mark.filterwarnings("ignore:.*no `val_dataloader`:UserWarning")
def test_metrics_of_the_training_are_the_result_without_validation() -> None:
    intermediates, finals = reports_of(lambda: evaluator(val=None).evaluate(Two()))

    assert intermediates == []
    assert [len(one) for one in finals] == [2]


def test_losses_and_metrics_are_logged_by_position() -> None:
    made = evaluator()

    reports_of(lambda: made.evaluate(Two()))

    logged = set(made.trainer.callback_metrics)
    assert {"train_loss_0", "train_loss_1", "val_loss_1", "val_metric_0", "val_metric_1"} <= logged


def test_network_of_another_number_of_models_is_refused() -> None:
    made = evaluator(n_models=3)

    with pytest.raises(ValueError, match="a network of 3 models must have as many outputs, got 2"):
        made.evaluate(Two())


def test_metric_must_be_one_of_torchmetrics() -> None:
    metric: Any = 3

    with pytest.raises(TypeError, match="must be a metric of torchmetrics, got int"):
        MultiModelLightningModule(nn.MSELoss(), metric)


def test_trainer_takes_no_strategy() -> None:
    with pytest.raises(ValueError, match="strategy must not be given"):
        MultiModelTrainer(strategy="ddp", **QUIET)


def test_evaluator_travels_as_json() -> None:
    text = nni.dump(evaluator(), pickle_size_limit=0)

    assert isinstance(nni.load(text).module, MultiModelLightningModule)
