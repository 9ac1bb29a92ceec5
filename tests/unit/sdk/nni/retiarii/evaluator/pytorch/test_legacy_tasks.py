"""Classification and regression with the arguments of NNI 2.x."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD

import nni
import nni.retiarii.evaluator.pytorch.lightning as pl
from nni.retiarii.deprecation import warn_once
from nni.retiarii.evaluator.pytorch.legacy_tasks import LargestLogitAccuracy
from tests.support.lightning_tasks import QUIET, loader, network, reports_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    # Lightning 2.6 calls functions of torch 2.13 that are deprecated.
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]


def test_accuracy_counts_predictions_over_all_batches() -> None:
    metric = LargestLogitAccuracy()
    metric.update(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([1, 1]))
    metric.update(torch.tensor([[0.0, 1.0], [0.0, 1.0]]), torch.tensor([1, 1]))

    assert float(metric.compute()) == 0.75


def test_arguments_reach_module_trainer_and_loaders() -> None:
    train, held = loader(), loader(8)

    made: Any = pl.Classification(
        nn.NLLLoss, 0.5, 0.25, SGD, train, held, False, max_epochs=4, **QUIET
    )

    assert type(made.module.criterion) is nn.NLLLoss
    assert (made.module.learning_rate, made.module.weight_decay) == (0.5, 0.25)
    assert (made.module.optimizer, made.trainer.max_epochs) == (SGD, 4)
    assert (made.train_dataloaders, made.val_dataloaders) == (train, held)


@pytest.mark.parametrize("task", [pl.Classification, pl.Regression])
def test_file_of_the_network_is_written_by_default(task: Any) -> None:
    assert task(**QUIET).module.export_path.name == "model.onnx"


def test_classification_without_a_number_of_classes_reports_its_accuracy() -> None:
    made = pl.Classification(
        train_dataloader=loader(),
        val_dataloaders=loader(),
        export_onnx=False,
        max_epochs=1,
        **QUIET,
    )

    intermediates, finals = reports_of(lambda: made.evaluate(network(2)))

    assert finals == intermediates
    assert 0 <= finals[0] <= 1


def test_regression_reports_its_error() -> None:
    made = pl.Regression(
        train_dataloader=loader(classes=False),
        val_dataloaders=loader(classes=False),
        export_onnx=False,
        max_epochs=1,
        **QUIET,
    )

    assert len(reports_of(lambda: made.evaluate(network(1)))[1]) == 1


def test_evaluator_of_another_process_has_the_same_arguments() -> None:
    made = nni.load(nni.dump(pl.Classification(max_epochs=3, export_onnx=False, **QUIET)))

    assert isinstance(made, pl.Classification)
    assert made.trainer.max_epochs == 3


@pytest.mark.parametrize("name", ["Classification", "Regression"])
def test_evaluator_warns_of_the_newer_name_once(name: str) -> None:
    warn_once.cache_clear()

    with pytest.warns(DeprecationWarning, match=rf"nni\.nas\.evaluator\.pytorch\.{name}") as caught:
        _ = [getattr(pl, name)(**QUIET) for _ in range(2)]

    # Lightning may warn of its own, as it does where Slurm is installed.
    assert [one.category for one in caught].count(DeprecationWarning) == 1
