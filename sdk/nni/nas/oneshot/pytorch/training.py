"""Lightning modules that train a supernet through the module of an evaluator."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytorch_lightning
import torch
from pytorch_lightning.utilities.model_helpers import is_overridden
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from nni.mutable import Sample
from nni.nas.evaluator.pytorch.lightning_module import LightningModule
from nni.nas.oneshot.pytorch.schedules import Schedule, optimizers_and_schedules

FORWARDED = (
    "on_fit_start",
    "on_fit_end",
    "prepare_data",
    "configure_callbacks",
    "on_train_start",
    "on_train_end",
    "on_train_epoch_start",
    "on_validation_start",
    "on_validation_end",
    "on_validation_epoch_start",
    "on_validation_epoch_end",
    "on_validation_batch_start",
    "on_validation_batch_end",
    "on_before_zero_grad",
    "on_before_optimizer_step",
    "on_save_checkpoint",
    "on_load_checkpoint",
)
"""Hooks of Lightning that the module of the evaluator receives unchanged."""
BATCH_HOOKS = ("on_before_batch_transfer", "transfer_batch_to_device", "on_after_batch_transfer")
"""Hooks that get a batch and return it."""
OPTIMIZATION_HOOKS = (
    "optimizer_step",
    "optimizer_zero_grad",
    "lr_scheduler_step",
    "configure_gradient_clipping",
    "backward",
)
"""Hooks of automatic optimization, which other modules do not call."""


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
        for name in BATCH_HOOKS:
            if is_overridden(name, training_module):
                vars(self)[name] = partial(self._batch_hook, name)

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
        for one in self.training_batches(batch):
            return self.training_module.on_train_batch_start(one, batch_idx)
        return None

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:  # noqa: ANN401 - of any step
        """Call the hook of the inner module if the batch has trained weights."""
        for one in self.training_batches(batch):
            self.training_module.on_train_batch_end(outputs, one, batch_idx)

    def on_before_backward(self, loss: Tensor) -> None:
        """Call the hook of the inner module, unless the architecture is learned at present."""
        if self._collected is None:
            self.training_module.on_before_backward(loss)

    def on_after_backward(self) -> None:
        """Call the hook of the inner module, unless the architecture is learned at present."""
        if self._collected is None:
            self.training_module.on_after_backward()

    def on_train_epoch_end(self) -> None:
        """Let the inner module end its epoch."""
        self.training_module.on_train_epoch_end()

    def configure_optimizers(self) -> Any:  # noqa: ANN401 - any form that Lightning takes
        """Return the optimizers of the inner module."""
        return self.training_module.configure_optimizers()

    def validation_step(self, *args: Any) -> Any:  # noqa: ANN401 - of the inner module
        """Return what the inner module returns."""
        return step_output(self.training_module.validation_step, *args)

    # What algorithms use and provide

    def export(self) -> Sample:
        """Return the architecture that the search prefers; by default raise TypeError.

        Returns:
            Values by label.

        Raises:
            TypeError: the subclass does not override this method.
        """
        raise TypeError(f"{type(self).__name__} must override export")

    def training_batches(self, batch: Any) -> tuple[Any, ...]:  # noqa: ANN401 - any batch
        """Return the training batch in a batch of the loader; nothing if it has none.

        Args:
            batch: batch of the loader that the strategy made.

        Returns:
            One batch of the evaluator's training loader, by default the given one, or none.
        """
        return (batch,)

    def each_batch(self, batch: Any, function: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - any batch
        """Return a batch of the loader with each batch of the evaluator's loaders replaced.

        Args:
            batch: batch of the loader that the strategy made.
            function: returns what takes the place of a batch.

        Returns:
            The same form, by default the result for the given batch.
        """
        return function(batch)

    def _batch_hook(self, name: str, batch: Any, *args: Any) -> Any:  # noqa: ANN401 - of any hook
        hook = getattr(self.training_module, name)
        return self.each_batch(batch, lambda one: hook(one, *args))

    def loss_of(self, batch: Any, batch_idx: int) -> Tensor:  # noqa: ANN401 - any batch
        """Return the loss that the inner module computes for a batch.

        Args:
            batch: batch of the loader.
            batch_idx: its index.

        Returns:
            0-dimensional tensor; zero if the inner module skips the batch by None.
        """
        output = step_output(self.inner.training_step, batch, batch_idx)
        loss = output["loss"] if isinstance(output, Mapping) else output
        return trainable(torch.zeros((), device=self.device) if loss is None else loss)

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


def step_output(step: Callable[..., Any], *args: Any) -> Any:  # noqa: ANN401 - of any step
    """Call a step with as many positional arguments as it takes, and return its output.

    Args:
        step: `training_step` or `validation_step`, which need not take the index of the batch.
        *args: batch, its index and, of several loaders, that of the loader.
    """
    parameters = inspect.signature(step).parameters.values()
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return step(*args)
    taken = sum(one.kind in {one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD} for one in parameters)
    return step(*args[:taken])


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
        ignored = [one for one in OPTIMIZATION_HOOKS if is_overridden(one, training_module)]
        if ignored:
            warnings.warn(
                f"{', '.join(ignored)} of {type(training_module).__name__} are not called in this "
                "search, which steps optimizers and schedulers itself",
                RuntimeWarning,
                stacklevel=2,
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
                    schedule.scheduler.step(self._monitored(schedule.monitor))
                else:
                    schedule.scheduler.step()

    def _monitored(self, name: str) -> Tensor:
        logged = self.trainer.callback_metrics
        if name not in logged:
            raise ValueError(
                f"ReduceLROnPlateau must monitor a metric that the search logs, got {name!r}; "
                f"logged are {sorted(logged)}: there may be no validation, so log a metric in "
                "training_step, or use another scheduler"
            )
        return logged[name]


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
