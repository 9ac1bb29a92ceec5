"""Training logic and trainer for several models at once."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytorch_lightning
import torchmetrics
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

import nni
from nni.nas.evaluator.pytorch import LightningModule

_RATE = 1e-3


@nni.trace
class MultiModelLightningModule(LightningModule):
    """Training logic of a network that returns a tuple: the outputs of several models.

    Each model has a loss and a metric of its own, on the same batch. The sum of the losses is
    minimised, which trains each model as if it is alone, since they share no parameters; the
    optimizer is Adam with the rate 0.001. Losses and metrics are computed on the CPU. They are
    logged as `train_loss_0`, `val_metric_0` and so on. Metrics are reported as a list in the order
    of the models; that of a network of one model as a number.

    Args:
        criterion: loss of outputs and targets.
        metric: metric of torchmetrics, of which each model gets a copy.
        n_models: number of models; None: as many as the network has outputs.

    Raises:
        TypeError: `metric` is no metric of torchmetrics.

    Examples:
        >>> import torchmetrics
        >>> from torch import nn
        >>> module = MultiModelLightningModule(nn.MSELoss(), torchmetrics.MeanSquaredError())
        >>> module.set_model(nn.Linear(1, 1))
    """

    def __init__(
        self,
        criterion: Callable[[Tensor, Tensor], Tensor],
        metric: torchmetrics.Metric,
        n_models: int | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(metric, torchmetrics.Metric):
            raise TypeError(f"metric must be a metric of torchmetrics, got {type(metric).__name__}")
        self.criterion = criterion
        self.n_models = n_models
        # In a tuple, which Lightning does not move to the device of the network.
        self._metric = (metric,)
        self._stages: dict[str, list[torchmetrics.Metric]] = {}
        self._latest: dict[str, list[float]] = {}

    def set_model(self, model: nn.Module) -> None:
        """Set the network to train, and begin with new metrics.

        Args:
            model: network that returns a tensor, or a tuple of tensors, one for each model.
        """
        super().set_model(model)
        self._stages, self._latest = {}, {}

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        """Update metrics and log each model's loss of a batch; return the sum of the losses.

        Args:
            batch: inputs and targets.
            batch_idx: position in the epoch.

        Returns:
            A scalar with a gradient.
        """
        del batch_idx
        losses = self._step("train", batch)
        return sum(losses[1:], losses[0])

    def validation_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        """Log each model's loss of a batch, and update its metric.

        Args:
            batch: inputs and targets.
            batch_idx: position in the epoch.
        """
        del batch_idx
        self._step("val", batch)

    def configure_optimizers(self) -> Optimizer:
        """Return Adam for the parameters of all models.

        Returns:
            A new optimizer.
        """
        return Adam(self.parameters(), lr=_RATE)

    def on_train_epoch_end(self) -> None:
        """Compute, log and reset each model's training metric; report nothing."""
        self._compute("train")

    def on_validation_epoch_end(self) -> None:
        """Compute and log metrics; in a fit report them as intermediate, not in sanity checks."""
        self._compute("val")
        if not self.trainer.sanity_checking and self.trainer.state.fn == "fit":
            nni.report_intermediate_result(self._reported("val"))

    def teardown(self, stage: str) -> None:
        """Report validation's last metrics, or without them those of training, as final result.

        Args:
            stage: what has ended.
        """
        if stage not in {"fit", "validate"} or not self._latest:
            return
        nni.report_final_result(self._reported("val" if "val" in self._latest else "train"))

    def _step(self, stage: str, batch: tuple[Tensor, Tensor]) -> list[Tensor]:
        inputs, targets = batch
        predictions = self.model(inputs)
        outputs = predictions if isinstance(predictions, tuple) else (predictions,)
        if self.n_models is not None and len(outputs) not in {1, self.n_models}:
            raise ValueError(
                f"a network of {self.n_models} models must have as many outputs, got {len(outputs)}"
            )
        metrics = self._stages.setdefault(stage, [copy.deepcopy(self._metric[0]) for _ in outputs])
        losses = []
        for index, (output, metric) in enumerate(zip(outputs, metrics, strict=True)):
            loss: Tensor = self.criterion(output.cpu(), targets.cpu())
            metric.update(output.detach().cpu(), targets.cpu())
            self.log(f"{stage}_loss_{index}", loss.detach(), on_epoch=True, batch_size=len(inputs))
            losses.append(loss)
        return losses

    def _compute(self, stage: str) -> None:
        values = []
        for index, metric in enumerate(self._stages.get(stage, [])):
            values.append(float(metric.compute()))
            metric.reset()
            self.log(f"{stage}_metric_{index}", values[-1])
        self._latest[stage] = values

    def _reported(self, stage: str) -> Any:  # noqa: ANN401 - number or list
        values = self._latest[stage]
        return values[0] if len(values) == 1 else values


class _MultiModelTrainer(pytorch_lightning.Trainer):
    """Lightning trainer for a network of several models; takes no `strategy`.

    Args:
        use_cgo: without effect; the network tells how many models it has.
        **trainer_kwargs: those of `pytorch_lightning.Trainer`, without `strategy`.

    Raises:
        ValueError: `strategy` is given.
    """

    def __init__(self, use_cgo: bool = True, **trainer_kwargs: Any) -> None:  # noqa: ANN401, FBT001, FBT002 - as documented
        del use_cgo
        if "strategy" in trainer_kwargs:
            raise ValueError(
                "strategy must not be given: models that are trained together share one device"
            )
        super().__init__(**trainer_kwargs)


MultiModelTrainer = nni.trace(_MultiModelTrainer)
"""Trainer of Lightning for a network of several models, traced."""
