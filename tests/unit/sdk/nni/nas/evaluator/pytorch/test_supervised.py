import warnings
from typing import Any

import pytest
import torchmetrics
from torch import Tensor, nn
from torch.optim import SGD

import nni
from nni.nas.evaluator.pytorch import (
    ClassificationModule,
    Lightning,
    RegressionModule,
    SupervisedLearningModule,
    Trainer,
)
from tests.support.lightning_tasks import QUIET, loader, network, reports_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    # Lightning 2.6 calls functions of torch 2.13 that are deprecated.
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*have no `val_dataloader`:UserWarning"),
]


def run(module: Any, outputs: int = 2, **kwargs: Any) -> tuple[Any, list[Any], list[Any]]:
    """Return the evaluator, and what the module reports, after an evaluation of two epochs."""
    arguments = {"train_dataloaders": loader(), "val_dataloaders": loader(24, seed=1), **kwargs}
    evaluator: Any = Lightning(module, Trainer(max_epochs=2, **QUIET), **arguments)
    reports = reports_of(lambda: evaluator.evaluate(network(outputs)))
    return evaluator, *reports


def test_each_epoch_and_the_end_report_the_accuracy() -> None:
    evaluator, intermediates, finals = run(ClassificationModule(num_classes=2, learning_rate=0.1))

    assert len(intermediates) == 2
    assert finals == [intermediates[-1]]
    assert {"train_loss", "train_acc", "val_loss", "val_acc"} <= set(
        evaluator.trainer.callback_metrics
    )


def test_the_reported_accuracy_is_that_of_the_trained_network() -> None:
    evaluator, _, finals = run(ClassificationModule(num_classes=2, learning_rate=0.1))

    data = evaluator.val_dataloaders.dataset
    right = evaluator.module.model(data.inputs).argmax(1) == data.targets
    assert finals[0] == pytest.approx(float(right.float().mean()))


def test_without_validation_the_metric_of_the_training_is_the_result() -> None:
    evaluator, intermediates, finals = run(
        ClassificationModule(num_classes=2), val_dataloaders=None
    )

    assert intermediates == []
    assert finals == [pytest.approx(float(evaluator.trainer.callback_metrics["train_acc"]))]


def test_a_validation_alone_reports_one_result() -> None:
    _, intermediates, finals = run(ClassificationModule(num_classes=2), train_dataloaders=None)

    assert intermediates == []
    assert len(finals) == 1


def test_the_sanity_check_reports_nothing() -> None:
    checked = {**QUIET, "num_sanity_val_steps": 2}
    evaluator: Any = Lightning(
        ClassificationModule(num_classes=2),
        Trainer(max_epochs=1, **checked),
        loader(),
        loader(),
    )

    intermediates, _ = reports_of(lambda: evaluator.evaluate(network()))

    assert len(intermediates) == 1


def test_regression_reports_the_mean_squared_error() -> None:
    data = {
        "train_dataloaders": loader(classes=False),
        "val_dataloaders": loader(24, classes=False),
    }
    evaluator, _, finals = run(RegressionModule(learning_rate=0.1), outputs=1, **data)

    held = evaluator.val_dataloaders.dataset
    error = (evaluator.module.model(held.inputs) - held.targets).detach().square().mean()
    assert finals == [pytest.approx(error.item())]


def test_several_metrics_are_reported_as_a_dict() -> None:
    metrics = {"default": torchmetrics.MeanSquaredError, "mae": torchmetrics.MeanAbsoluteError}
    module = SupervisedLearningModule(nn.MSELoss, metrics, optimizer=SGD)
    data = {"train_dataloaders": loader(classes=False), "val_dataloaders": None}

    _, _, finals = run(module, outputs=1, **data)

    assert list(finals[0]) == ["default", "mae"]


def test_several_metrics_without_the_one_of_the_search_warn() -> None:
    metrics = {"mse": torchmetrics.MeanSquaredError, "mae": torchmetrics.MeanAbsoluteError}

    with pytest.warns(RuntimeWarning, match="one must be named 'default'.*got mse, mae"):
        SupervisedLearningModule(nn.MSELoss, metrics)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SupervisedLearningModule(nn.MSELoss, {"mse": torchmetrics.MeanSquaredError})


def test_the_optimizer_has_the_given_rates() -> None:
    module = ClassificationModule(
        learning_rate=0.25, weight_decay=0.5, optimizer=SGD, num_classes=2
    )
    module.set_model(network())

    optimizer = module.configure_optimizers()

    assert type(optimizer) is SGD
    assert (optimizer.defaults["lr"], optimizer.defaults["weight_decay"]) == (0.25, 0.5)


def test_the_number_of_classes_is_needed() -> None:
    with pytest.raises(ValueError, match="num_classes must be the number of classes, got None"):
        ClassificationModule()


def test_test_metrics_are_logged() -> None:
    evaluator, _, _ = run(ClassificationModule(num_classes=2))

    _, finals = reports_of(
        lambda: evaluator.trainer.test(evaluator.module, loader(8), verbose=False)
    )

    assert {"test_loss", "test_acc"} <= set(evaluator.trainer.callback_metrics)
    assert finals == []


def test_a_module_travels_as_a_call() -> None:
    module: Any = ClassificationModule(learning_rate=0.25, num_classes=2)

    assert module.trace_kwargs == {"learning_rate": 0.25, "num_classes": 2}
    assert nni.load(nni.dump(module)).learning_rate == 0.25


class Failing(nn.Module):
    """Network that fails in its second pass; the first one chooses the other class."""

    def __init__(self) -> None:
        super().__init__()
        self.network = network(2)
        self.passes = 0

    def forward(self, inputs: Tensor) -> Tensor:
        if self.passes:
            raise RuntimeError("out of memory")
        self.passes += 1
        output: Tensor = -self.network(inputs)
        return output


@pytest.mark.parametrize(
    "loaders",
    [{"train_dataloaders": loader()}, {"val_dataloaders": loader()}],
    ids=["training", "validation"],
)
def test_metrics_count_no_batches_of_an_earlier_model_that_failed(loaders: dict[str, Any]) -> None:
    def made() -> Any:
        module = ClassificationModule(num_classes=2)
        return Lightning(module, Trainer(max_epochs=1, **QUIET), **loaders)

    evaluator = made()
    with pytest.raises(RuntimeError, match="out of memory"):
        reports_of(lambda: evaluator.evaluate(Failing()))

    after_failure = reports_of(lambda: evaluator.evaluate(network(2)))
    alone = reports_of(lambda: made().evaluate(network(2)))

    assert after_failure == alone
