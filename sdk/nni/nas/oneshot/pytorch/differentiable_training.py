"""Training of a supernet whose architecture is learned by gradient descent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytorch_lightning import LightningModule
from torch import Tensor
from torch.optim import Adam, Optimizer

from nni.mutable import Sample
from nni.nas.oneshot.pytorch.architecture import ArchitectureWeights, GumbelWeights
from nni.nas.oneshot.pytorch.mixing_cell import MixingCell
from nni.nas.oneshot.pytorch.profiler import ExpectationProfilerPenalty
from nni.nas.oneshot.pytorch.second_order import restored_buffers, unrolled_gradient
from nni.nas.oneshot.pytorch.temperature import TemperatureSchedule
from nni.nas.oneshot.pytorch.training import ManualOneShotLightningModule

BETAS = (0.5, 0.999)
"""Of the optimizer of the logits, as the paper on DARTS says."""
WEIGHT_DECAY = 1e-3
"""Of the optimizer of the logits, as the paper on DARTS says."""


class DifferentiableLightningModule(ManualOneShotLightningModule):
    """Training that alternates a step of the architecture on validation data and of weights.

    A batch is a dict of a training and a validation batch.

    Args:
        training_module: module of the evaluator.
        architecture: logits of the supernet.
        arc_learning_rate: learning rate of the logits.
        gradient_clip_val: largest norm of the gradient of the weights; None for no limit.
        log_prob_every_n_step: steps between two logs of the probabilities.
        warmup_epochs: first epochs, in which the weights only are trained.
        penalty: penalty for the expected cost; None without.
        unrolled: whether the gradient of the logits passes through a virtual step of the weights.
        temperature: temperature of `GumbelWeights`; None for other weights.
    """

    # Not overridden for Lightning: the training reads all batches, and no validation follows.
    validation_step = LightningModule.validation_step

    def __init__(  # noqa: PLR0913 - the arguments of the strategy
        self,
        training_module: LightningModule,
        architecture: ArchitectureWeights,
        *,
        arc_learning_rate: float = 3e-4,
        gradient_clip_val: float | None = None,
        log_prob_every_n_step: int = 10,
        warmup_epochs: int = 0,
        penalty: ExpectationProfilerPenalty | None = None,
        unrolled: bool = False,
        temperature: TemperatureSchedule | None = None,
    ) -> None:
        super().__init__(training_module, gradient_clip_val)
        self.architecture = architecture
        self.arc_learning_rate = arc_learning_rate
        self.log_prob_every_n_step = log_prob_every_n_step
        self.warmup_epochs = warmup_epochs
        self.penalty = penalty
        self.unrolled = unrolled
        self.temperature = temperature

    def architecture_optimizers(self) -> list[Optimizer]:
        """Return one Adam optimizer of all logits, in a list."""
        logits = self.architecture.parameters()
        return [Adam(logits, self.arc_learning_rate, betas=BETAS, weight_decay=WEIGHT_DECAY)]

    def training_batches(self, batch: dict[str, Any]) -> tuple[Any, ...]:
        """Return the training batch of a pair."""
        return (batch["train"],)

    def each_batch(self, batch: dict[str, Any], function: Callable[[Any], Any]) -> dict[str, Any]:
        """Return a pair of batches with each replaced by the result of a function."""
        return {name: function(one) for name, one in batch.items()}

    def on_train_epoch_start(self) -> None:
        """Call the hook of the training logic, and set the temperature of the epoch."""
        self.training_module.on_train_epoch_start()
        if self.temperature is not None and isinstance(self.architecture, GumbelWeights):
            total = self.trainer.max_epochs or 1
            self.architecture.temperature = self.temperature.at(self.current_epoch, total)

    def training_step(self, batch: dict[str, Any], batch_idx: int) -> Tensor:
        """Step the architecture, unless warming up, then the weights; return their loss.

        Args:
            batch: batches by the names `train` and `val`.
            batch_idx: its index.

        Returns:
            Loss of the training batch.
        """
        if self.current_epoch >= self.warmup_epochs:
            self.architecture_step(batch, batch_idx)
        with self.architecture.draw(constant=True):
            loss = self.weight_step(batch["train"], batch_idx)
        if batch_idx % self.log_prob_every_n_step == 0:
            self._log_probabilities()
        return loss

    def architecture_step(self, batch: dict[str, Any], batch_idx: int) -> None:
        """Step the logits by the loss of a validation batch, of second order if unrolled.

        Args:
            batch: batches by the names `train` and `val`.
            batch_idx: its index.
        """
        optimizer = self._architecture_optimizer()
        optimizer.zero_grad()
        logits = list(self.architecture.parameters())
        with self.collected_logs():
            if self.unrolled:
                self._unrolled_backward(batch, batch_idx, logits)
            else:
                with self.architecture.draw(constant=False):
                    loss = self._penalized(self.loss_of(batch["val"], batch_idx))
                    self.manual_backward(loss, inputs=logits)
        optimizer.step()

    def _unrolled_backward(self, batch: dict[str, Any], batch_idx: int, logits: list[Any]) -> None:
        """Set the gradients of the logits by the second-order form.

        The loss scale of mixed precision is applied, because the optimizer divides by it.
        """
        with restored_buffers(self.model):
            gradients = unrolled_gradient(
                lambda: self._drawn_loss(batch["train"], batch_idx),
                lambda: self._penalized(self._drawn_loss(batch["val"], batch_idx)),
                logits,
                self.weights,
                self.weight_optimizer.optimizer,
            )
        scaler = getattr(self.trainer.precision_plugin, "scaler", None)
        for logit, gradient in zip(logits, gradients, strict=True):
            logit.grad = gradient if scaler is None else scaler.scale(gradient)

    def _drawn_loss(self, batch: Any, batch_idx: int) -> Tensor:  # noqa: ANN401 - any batch
        with self.architecture.draw(constant=False):
            return self.loss_of(batch, batch_idx)

    def _penalized(self, loss: Tensor) -> Tensor:
        if self.penalty is None:
            return loss
        total, details = self.penalty(loss, self.architecture.distribution())
        self.log_dict({f"penalty/{name}": value for name, value in details.items()})
        return total

    def _architecture_optimizer(self) -> Any:  # noqa: ANN401 - wrapper of Lightning
        found = self.optimizers()
        assert isinstance(found, list)
        return found[0]

    def _log_probabilities(self) -> None:
        values = self.architecture.values
        self.log_dict(
            {
                f"prob/{label}/{value}": chance
                for label, chances in self.architecture.distribution().items()
                for value, chance in zip(values[label], chances.detach().unbind(), strict=True)
            }
        )

    def export(self) -> Sample:
        """Return the most probable value of each label; cells get their strongest edges."""
        return self._completed(self.architecture.best())

    def export_sampled(self) -> Sample:
        """Return a random sample of the learned distribution; cells get their strongest edges.

        Returns:
            Values by label; cells have their best edges.
        """
        return self._completed(self.architecture.drawn_sample())

    def _completed(self, sample: Sample) -> Sample:
        for module in self.model.modules():
            if isinstance(module, MixingCell):
                sample = {**sample, **module.best()}
        return sample
