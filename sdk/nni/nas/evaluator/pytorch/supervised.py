"""Training logic of supervised learning, for classification and regression."""

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torchmetrics
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

import nni
from nni.nas.evaluator.pytorch.lightning_module import LightningModule
from nni.nas.evaluator.pytorch.onnx_file import export_network, output_path

Batch = tuple[Tensor, Tensor]
"""Inputs and targets."""
_DEFAULT = "default"


@nni.trace
class SupervisedLearningModule(LightningModule):
    """Training logic for pairs of inputs and targets; reports its metrics to the search.

    It logs `train_loss`, `val_loss` and `test_loss`, and each metric under the same prefixes. At
    the end of each epoch of validation the metrics are an intermediate result, at the end of the
    training they are the result; without validation those of the training are. One metric is
    reported as a number, several as a dict, in which `default` is what a search maximises.

    Args:
        criterion: class of the loss, called without arguments.
        metrics: name to class of torchmetrics, called without arguments.
        learning_rate: of the optimizer.
        weight_decay: of the optimizer.
        optimizer: class of the optimizer.
        export_onnx: write the network in ONNX at the first step of validation: true for
            `model.onnx` in the folder of the trial (`NNI_OUTPUT_DIR`), or a path.

    Examples:
        >>> import torchmetrics
        >>> from torch import nn
        >>> module = SupervisedLearningModule(
        ...     nn.L1Loss, {"default": torchmetrics.MeanAbsoluteError}, learning_rate=0.01
        ... )
        >>> list(module.metrics)
        ['default']
    """

    def __init__(
        self,
        criterion: type[nn.Module],
        metrics: Mapping[str, Callable[[], torchmetrics.Metric]],
        learning_rate: float = 0.001,
        weight_decay: float = 0.0,
        optimizer: type[Optimizer] = Adam,
        export_onnx: bool | str | Path | None = None,  # noqa: FBT001 - as documented
    ) -> None:
        super().__init__()
        if len(metrics) > 1 and _DEFAULT not in metrics:
            warnings.warn(
                f"of several metrics one must be named {_DEFAULT!r}, which a search maximises; "
                f"got {', '.join(metrics)}",
                RuntimeWarning,
                stacklevel=3,
            )
        self.criterion = criterion()
        # Each stage has metrics of its own: a validation falls into an epoch of training.
        self.metrics = nn.ModuleDict({name: make() for name, make in metrics.items()})
        self.train_metrics = nn.ModuleDict({name: make() for name, make in metrics.items()})
        self.test_metrics = nn.ModuleDict({name: make() for name, make in metrics.items()})
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.optimizer = optimizer
        self.export_path = output_path(export_onnx)

    def set_model(self, model: nn.Module) -> None:
        """Set the network to train; forget the batches of an earlier one, which may have failed.

        Args:
            model: network.

        Raises:
            TypeError: `model` is no network.
        """
        super().set_model(model)
        for stage in (self.metrics, self.train_metrics, self.test_metrics):
            for metric in stage.values():
                assert isinstance(metric, torchmetrics.Metric)
                metric.reset()

    def forward(self, inputs: Tensor) -> Any:  # noqa: ANN401 - what the network returns
        """Return the predictions of the network.

        Args:
            inputs: batch, as the network takes it.

        Returns:
            What the network returns.
        """
        return self.model(inputs)

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Return the loss of a batch, and log it and the metrics.

        Args:
            batch: inputs and targets.
            batch_idx: position in the epoch.

        Returns:
            A scalar with a gradient.
        """
        del batch_idx
        return self._step("train", batch, self.train_metrics)

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Log loss and metrics of a batch; at the first one export the network, if configured.

        Args:
            batch: inputs and targets.
            batch_idx: position in the epoch.
        """
        del batch_idx
        if self.export_path is not None:
            path, self.export_path = self.export_path, None
            export_network(self.model, batch[0], path)
        self._step("val", batch, self.metrics)

    def test_step(self, batch: Batch, batch_idx: int) -> None:
        """Log loss and metrics of a batch.

        Args:
            batch: inputs and targets.
            batch_idx: position in the epoch.
        """
        del batch_idx
        self._step("test", batch, self.test_metrics)

    def configure_optimizers(self) -> Optimizer:
        """Construct the configured optimizer of all parameters.

        Returns:
            A new one, without state.
        """
        make: Any = self.optimizer
        made: Optimizer = make(
            self.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay
        )
        return made

    def on_validation_epoch_end(self) -> None:
        """In a fit, report validation's metrics as an intermediate result; not in sanity checks."""
        if self.trainer.sanity_checking or self.trainer.state.fn != "fit":
            return
        metrics = self._reported("val")
        if metrics is not None:
            nni.report_intermediate_result(metrics)

    def teardown(self, stage: str) -> None:
        """Report the last validation metrics as final result; after a fit without any, training's.

        Args:
            stage: what has ended: `fit` or `validate`.
        """
        if stage not in {"fit", "validate"}:
            return
        metrics = self._reported("val")
        if metrics is None and stage == "fit":
            metrics = self._reported("train")
        if metrics is not None:
            nni.report_final_result(metrics)

    def _step(self, stage: str, batch: Batch, metrics: nn.ModuleDict) -> Tensor:
        inputs, targets = batch
        predictions = self(inputs)
        loss: Tensor = self.criterion(predictions, targets)
        logged: dict[str, Any] = {f"{stage}_loss": loss}
        for name, metric in metrics.items():
            metric(predictions.detach(), targets)
            logged[f"{stage}_{name}"] = metric  # Lightning computes it over the whole epoch
        self.log_dict(
            logged, prog_bar=True, on_step=False, on_epoch=True, batch_size=_length(inputs)
        )
        return loss

    def _reported(self, stage: str) -> float | dict[str, float] | None:
        """Return a stage's logged metrics: a number if one, else a dict; None if not logged."""
        logged = self.trainer.callback_metrics
        names = {name: f"{stage}_{name}" for name in self.metrics}
        if not all(name in logged for name in names.values()):
            return None
        values = {name: float(logged[logged_as]) for name, logged_as in names.items()}
        return next(iter(values.values())) if len(values) == 1 else values


def _length(inputs: object) -> int:
    return len(inputs) if isinstance(inputs, Tensor | list) else 1


@nni.trace
class ClassificationModule(SupervisedLearningModule):
    """Training logic of classification into one of several classes; its metric is `acc`.

    Args:
        criterion: class of the loss.
        learning_rate: of the optimizer.
        weight_decay: of the optimizer.
        optimizer: class of the optimizer.
        export_onnx: see `SupervisedLearningModule`.
        num_classes: number of classes.

    Raises:
        ValueError: `num_classes` is not given.

    Examples:
        >>> module = ClassificationModule(learning_rate=0.01, num_classes=10)
        >>> module.learning_rate, list(module.metrics)
        (0.01, ['acc'])
    """

    def __init__(
        self,
        criterion: type[nn.Module] = nn.CrossEntropyLoss,
        learning_rate: float = 0.001,
        weight_decay: float = 0.0,
        optimizer: type[Optimizer] = Adam,
        export_onnx: bool | str | Path | None = False,  # noqa: FBT001, FBT002 - as documented
        num_classes: int | None = None,
    ) -> None:
        if num_classes is None:
            raise ValueError("num_classes must be the number of classes, got None")

        def accuracy() -> torchmetrics.Metric:
            return torchmetrics.Accuracy(task="multiclass", num_classes=num_classes)

        super().__init__(
            criterion, {"acc": accuracy}, learning_rate, weight_decay, optimizer, export_onnx
        )


@nni.trace
class RegressionModule(SupervisedLearningModule):
    """Training logic of regression; its metric is `mse`.

    A search maximises what is reported: use it with a strategy or an engine that minimises, or
    report the negative in a module of your own.

    Args:
        criterion: class of the loss.
        learning_rate: of the optimizer.
        weight_decay: of the optimizer.
        optimizer: class of the optimizer.
        export_onnx: see `SupervisedLearningModule`.

    Examples:
        >>> list(RegressionModule().metrics)
        ['mse']
    """

    def __init__(
        self,
        criterion: type[nn.Module] = nn.MSELoss,
        learning_rate: float = 0.001,
        weight_decay: float = 0.0,
        optimizer: type[Optimizer] = Adam,
        export_onnx: bool | str | Path | None = False,  # noqa: FBT001, FBT002 - as documented
    ) -> None:
        metrics = {"mse": torchmetrics.MeanSquaredError}
        super().__init__(criterion, metrics, learning_rate, weight_decay, optimizer, export_onnx)
