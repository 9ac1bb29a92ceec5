"""Lightning modules that train a supernet through the module of an evaluator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytorch_lightning
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from nni.mutable import Sample
from nni.nas.evaluator.pytorch.lightning_module import LightningModule

FORWARDED = (
    "on_fit_start",
    "on_fit_end",
    "on_train_start",
    "on_train_end",
    "on_train_epoch_start",
    "on_validation_start",
    "on_validation_end",
    "on_validation_epoch_start",
    "on_validation_epoch_end",
    "on_save_checkpoint",
    "on_load_checkpoint",
)
"""Hooks of Lightning that the module of the evaluator receives unchanged."""


class BaseOneShotLightningModule(LightningModule):
    """Lightning module around the one of an evaluator, which computes losses and metrics.

    The inner module holds the supernet as its model. A subclass decides in `training_step` which
    architecture is computed and what is learned, and exports the result by `export`.

    Args:
        training_module: module of the evaluator.

    Attributes:
        training_module: module of the evaluator.
        on_batch: function that is called before each training batch; None for none.
    """

    def __init__(self, training_module: pytorch_lightning.LightningModule) -> None:
        super().__init__()
        self.training_module = training_module
        self.on_batch: Callable[[], None] | None = None
        self._collected: dict[str, Any] | None = None

    # What the evaluator and Lightning call

    def set_model(self, model: nn.Module) -> None:
        """Set the supernet as the model of the inner module.

        Args:
            model: the supernet.
        """
        self.inner.set_model(model)

    @property
    def model(self) -> nn.Module:
        """The supernet."""
        model: nn.Module = self.inner.model
        return model

    @property
    def inner(self) -> Any:  # noqa: ANN401 - torch types attributes of modules as tensors
        """Module of the evaluator, with the model that `set_model` gave it."""
        return self.training_module

    def forward(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - what the model takes
        """Return what the inner module returns."""
        return self.training_module(*args, **kwargs)

    def setup(self, stage: str) -> None:
        """Let the inner module log through this one, and set it up."""
        vars(self.training_module)["log"] = self._log_inner
        self.training_module.setup(stage)

    def teardown(self, stage: str) -> None:
        """Tear the inner module down; end its logging through this one."""
        self.training_module.teardown(stage)
        vars(self.training_module).pop("log", None)

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> int | None:  # noqa: ANN401 - any batch
        """Call `on_batch`; return what the inner module returns, -1 to skip the epoch."""
        if self.on_batch is not None:
            self.on_batch()
        return self.training_module.on_train_batch_start(batch, batch_idx)

    def on_train_epoch_end(self) -> None:
        """Let the inner module end its epoch."""
        self.training_module.on_train_epoch_end()

    def configure_optimizers(self) -> Any:  # noqa: ANN401 - any form that Lightning takes
        """Return the optimizers of the inner module."""
        return self.training_module.configure_optimizers()

    def validation_step(self, *args: Any) -> Any:  # noqa: ANN401 - of the inner module
        """Return what the inner module returns."""
        return self.training_module.validation_step(*args)

    # What algorithms use and provide

    def export(self) -> Sample:
        """Return the architecture that the search prefers; by default raise TypeError.

        Returns:
            Values by label.

        Raises:
            TypeError: the subclass does not override this method.
        """
        raise TypeError(f"{type(self).__name__} must override export")

    def loss_of(self, batch: Any, batch_idx: int) -> Tensor:  # noqa: ANN401 - any batch
        """Return the loss that the inner module computes for a batch.

        Args:
            batch: batch of the loader.
            batch_idx: its index.

        Returns:
            0-dimensional tensor.
        """
        output = self.inner.training_step(batch, batch_idx)
        loss: Tensor = output["loss"] if isinstance(output, Mapping) else output
        return trainable(loss)

    @contextmanager
    def collected_logs(self) -> Iterator[dict[str, Any]]:
        """Collect what the inner module logs inside, instead of logging it.

        Yields:
            Values by name, filled as the module logs.
        """
        before, self._collected = self._collected, {}
        try:
            yield self._collected
        finally:
            self._collected = before

    def _log_inner(self, name: str, value: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as Lightning's
        if self._collected is not None:
            self._collected[name] = value
        else:
            self.log(name, value, *args, **kwargs)


def trainable(loss: Tensor) -> Tensor:
    """Return the loss; a detached one that requires gradients if it depends on no weight.

    Args:
        loss: 0-dimensional tensor, of a path without weights for example.

    Returns:
        The loss; one without gradients to any weight if it had none.
    """
    return loss if loss.requires_grad else loss.detach().requires_grad_()


def _forwarding(name: str) -> Callable[..., Any]:
    def hook(self: BaseOneShotLightningModule, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - of any hook
        return getattr(self.training_module, name)(*args, **kwargs)

    hook.__name__ = name
    hook.__doc__ = "Call the hook of the inner module."
    return hook


for _name in FORWARDED:
    setattr(BaseOneShotLightningModule, _name, _forwarding(_name))


class ManualOneShotLightningModule(BaseOneShotLightningModule):
    """One-shot module that steps the optimizer and the schedulers of the inner one itself.

    Args:
        training_module: module of the evaluator; it uses automatic optimization and one optimizer.
        gradient_clip_val: largest norm of the gradient of the weights; None for no limit.

    Raises:
        ValueError: the inner module steps optimizers itself.
    """

    def __init__(
        self,
        training_module: pytorch_lightning.LightningModule,
        gradient_clip_val: float | None = None,
    ) -> None:
        super().__init__(training_module)
        if not training_module.automatic_optimization:
            raise ValueError(
                "the Lightning module of a one-shot search must use automatic optimization, got "
                f"automatic_optimization=False in {type(training_module).__name__}"
            )
        self.automatic_optimization = False
        self.gradient_clip_val = gradient_clip_val
        self._schedules: list[Schedule] = []
        self._weights: list[nn.Parameter] = []

    def architecture_optimizers(self) -> list[Optimizer]:
        """Return optimizers of the architecture, which precede that of the weights; here none."""
        return []

    def configure_optimizers(self) -> Any:  # noqa: ANN401 - as Lightning's
        """Return architecture optimizers, the inner module's only one, and schedulers; or raise."""
        optimizers, self._schedules = optimizers_and_schedules(
            self.training_module.configure_optimizers()
        )
        if len(optimizers) != 1:
            raise ValueError(
                "the Lightning module of a one-shot search must have one optimizer, got "
                f"{len(optimizers)} in {type(self.training_module).__name__}"
            )
        self._weights = [one for group in optimizers[0].param_groups for one in group["params"]]
        schedulers = [{"scheduler": one.scheduler} for one in self._schedules]
        return [*self.architecture_optimizers(), *optimizers], schedulers

    @property
    def weights(self) -> list[nn.Parameter]:
        """Parameters that the optimizer of the inner module trains."""
        return [one for one in self._weights if one.requires_grad]

    @property
    def weight_optimizer(self) -> Any:  # noqa: ANN401 - wrapper of Lightning
        """Optimizer of the weights, as Lightning wraps it."""
        found = self.optimizers()
        return found[-1] if isinstance(found, list) else found

    def weight_step(self, batch: Any, batch_idx: int) -> Tensor:  # noqa: ANN401 - any batch
        """Train the weights by one batch, step their schedulers; return the detached loss.

        Args:
            batch: training batch.
            batch_idx: its index.

        Returns:
            The loss.
        """
        optimizer = self.weight_optimizer
        optimizer.zero_grad()
        loss = self.loss_of(batch, batch_idx)
        self.manual_backward(loss)
        # A path without weights leaves no gradient, which the scaler of mixed precision refuses.
        if any(one.grad is not None for group in optimizer.param_groups for one in group["params"]):
            optimizer.step()
        self._step_schedulers("step", batch_idx + 1)
        return loss.detach()

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        """Clip the weights' gradient, if configured; then call the inner module's hook."""
        if self.gradient_clip_val is not None and not self.is_architecture(optimizer):
            parameters = [one for group in optimizer.param_groups for one in group["params"]]
            nn.utils.clip_grad_norm_(parameters, self.gradient_clip_val)
        self.training_module.on_before_optimizer_step(optimizer)

    def is_architecture(self, optimizer: Optimizer) -> bool:
        """Return whether an optimizer is not that of the weights.

        Args:
            optimizer: optimizer of torch.
        """
        return bool(optimizer is not self.weight_optimizer.optimizer)

    def on_train_epoch_end(self) -> None:
        """Step the schedulers, and let the inner module end its epoch."""
        super().on_train_epoch_end()
        self._step_schedulers("epoch", self.current_epoch + 1)

    def _step_schedulers(self, interval: str, count: int) -> None:
        for schedule in self._schedules:
            if schedule.interval == interval and count % schedule.frequency == 0:
                if isinstance(schedule.scheduler, ReduceLROnPlateau):
                    schedule.scheduler.step(self.trainer.callback_metrics[schedule.monitor])
                else:
                    schedule.scheduler.step()


@dataclass(frozen=True, slots=True)
class Schedule:
    """Scheduler of torch with its interval (epoch or step), frequency and monitored metric."""

    scheduler: Any
    """Scheduler of torch."""
    interval: str = "epoch"
    """`epoch` or `step`."""
    frequency: int = 1
    """Number of intervals between two steps."""
    monitor: str = "val_loss"
    """Metric that `ReduceLROnPlateau` reads."""


def optimizers_and_schedules(configured: Any) -> tuple[list[Optimizer], list[Schedule]]:  # noqa: ANN401 - any form that Lightning takes
    """Return configured optimizers and schedulers as two lists; raise ValueError for others.

    Args:
        configured: what `configure_optimizers` returned.

    Returns:
        Optimizers; schedulers.

    Raises:
        ValueError: the form is unknown.
    """
    match configured:
        case None:
            return [], []
        case Optimizer():
            return [configured], []
        case Mapping():
            scheduler = configured.get("lr_scheduler")
            return [configured["optimizer"]], [] if scheduler is None else [_schedule(scheduler)]
        case (list() | tuple() as optimizers, list() | tuple() as schedulers):
            return list(optimizers), [_schedule(one) for one in schedulers]
        case list() | tuple():
            parts = [optimizers_and_schedules(one) for one in configured]
            return [one for found, _ in parts for one in found], [
                one for _, found in parts for one in found
            ]
    raise ValueError(f"configure_optimizers must return optimizers, got {configured!r}")


def _schedule(scheduler: Any) -> Schedule:  # noqa: ANN401 - scheduler, or a dict with it
    if not isinstance(scheduler, Mapping):
        return Schedule(scheduler)
    known = {
        name: scheduler[name] for name in ("interval", "frequency", "monitor") if name in scheduler
    }
    return Schedule(scheduler["scheduler"], **known)


class TaggedLoader:
    """Iterable of name and batch, for all batches of several loaders one after the other.

    Args:
        loaders: loader by name.
    """

    def __init__(self, loaders: Mapping[str, Any]) -> None:
        self.loaders = dict(loaders)

    def __len__(self) -> int:
        return sum(len(one) for one in self.loaders.values())

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for name, loader in self.loaders.items():
            for batch in loader:
                yield name, batch
