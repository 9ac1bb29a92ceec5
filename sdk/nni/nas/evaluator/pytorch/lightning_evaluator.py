"""Evaluator that trains and validates each model with a trainer of Lightning."""

import copy
import signal
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytorch_lightning
from torch import nn

import nni
from nni.common.serializer import is_traceable
from nni.nas.evaluator.base import MutableEvaluator
from nni.nas.evaluator.pytorch.lightning_module import LightningModule
from nni.nas.evaluator.pytorch.traced_originals import (
    is_interrupted,
    is_used,
    new_trainer,
    untraced_loaders,
)


@nni.trace
class Lightning(MutableEvaluator):
    """Evaluator that sets a model in a training logic and runs a Lightning trainer on it.

    Trainer, loaders, data sets and the module are traced, so that the evaluator can travel. The
    data module is used if there is one. With a validation loader alone the model is validated and
    not trained. Each model gets a trainer in its first state.

    Args:
        lightning_module: training logic.
        trainer: made by `nni.nas.evaluator.pytorch.Trainer`.
        train_dataloaders: loaders for training, as `Trainer.fit` takes them.
        val_dataloaders: loaders for validation.
        train_dataloader: deprecated name of `train_dataloaders`.
        datamodule: data module of Lightning, in place of loaders.
        fit_kwargs: further arguments of `Trainer.fit`.
        detect_interrupt: raise `KeyboardInterrupt` if the training was interrupted, which
            Lightning hides.

    Attributes:
        module: training logic.
        trainer: trainer of the last model.
        train_dataloaders: loaders for training.
        val_dataloaders: loaders for validation.
        datamodule: data module.
        fit_kwargs: further arguments of `Trainer.fit`.

    Raises:
        TypeError: `trainer` is not traced, or the module is no `LightningModule` of NNI.
        ValueError: `train_dataloader` and `train_dataloaders` are both given.

    Examples:
        See `docs/nas-evaluators.md`, which evaluates a network with a module of its own.

        >>> from nni.nas.evaluator.pytorch import RegressionModule
        >>> import pytorch_lightning
        >>> Lightning(RegressionModule(), pytorch_lightning.Trainer(logger=False))
        Traceback (most recent call last):
        TypeError: trainer must be made by nni.nas.evaluator.pytorch.Trainer, or ...
    """

    def __init__(
        self,
        lightning_module: LightningModule,
        trainer: pytorch_lightning.Trainer,
        train_dataloaders: Any = None,  # noqa: ANN401 - as Lightning takes them
        val_dataloaders: Any = None,  # noqa: ANN401 - as above
        train_dataloader: Any = None,  # noqa: ANN401 - as above
        datamodule: pytorch_lightning.LightningDataModule | None = None,
        fit_kwargs: Mapping[str, Any] | None = None,
        detect_interrupt: bool = True,  # noqa: FBT001, FBT002 - as documented
    ) -> None:
        super().__init__()
        if not isinstance(lightning_module, LightningModule):
            raise TypeError(
                "lightning_module must be a nni.nas.evaluator.pytorch.LightningModule, whose "
                f"model can be set, got {type(lightning_module).__name__}"
            )
        if not is_traceable(trainer) or not hasattr(trainer, "fit"):
            raise TypeError(
                "trainer must be made by nni.nas.evaluator.pytorch.Trainer, or by "
                f"nni.trace(pytorch_lightning.Trainer), got {type(trainer).__name__}"
            )
        if train_dataloader is not None:
            train_dataloaders = _renamed_loaders(train_dataloader, train_dataloaders)
        for name in untraced_loaders([train_dataloaders, val_dataloaders]):
            warnings.warn(
                f"a {name} is not traced, so the evaluator cannot travel to another process; "
                "make it by nni.nas.evaluator.pytorch.DataLoader",
                RuntimeWarning,
                stacklevel=3,
            )
        self.module = lightning_module
        self.trainer = trainer
        self.train_dataloaders = train_dataloaders
        self.val_dataloaders = val_dataloaders
        self.datamodule = datamodule
        self.fit_kwargs = dict(fit_kwargs or {})
        self.detect_interrupt = detect_interrupt
        # A trainer changes its callbacks; the next model needs them as they are now.
        self._callbacks = copy.deepcopy(vars(trainer)["trace_kwargs"].get("callbacks"))

    def evaluate(self, model: nn.Module) -> None:
        """Train and validate a model; the module reports metrics; raise if an argument is mutable.

        Raises:
            RuntimeError: an argument is mutable; `freeze` returns an evaluator for a sample.
            KeyboardInterrupt: the training was interrupted.
        """
        if self.is_mutable():
            raise RuntimeError(
                "an evaluator with mutable arguments must be frozen before it evaluates a model: "
                "evaluator.freeze(sample).evaluate(model)"
            )
        self.module.set_model(model)
        if is_used(self.trainer):
            self.trainer = new_trainer(self.trainer, self._callbacks)
        with self._interrupts():
            self._run()

    def fit(self, model: nn.Module) -> None:
        """Evaluate a model; deprecated name of `evaluate`.

        Args:
            model: network.
        """
        warnings.warn("fit is deprecated; use evaluate", DeprecationWarning, stacklevel=2)
        self.evaluate(model)

    def _run(self) -> None:
        if self.datamodule is not None:
            self.trainer.fit(self.module, datamodule=self.datamodule, **self.fit_kwargs)
        elif self.train_dataloaders is None and self.val_dataloaders is not None:
            self.trainer.validate(self.module, self.val_dataloaders)
        else:
            self.trainer.fit(
                self.module, self.train_dataloaders, self.val_dataloaders, **self.fit_kwargs
            )

    @contextmanager
    def _interrupts(self) -> Iterator[None]:
        """Raise KeyboardInterrupt after a block in which Lightning ended by an interrupt."""
        handler = signal.getsignal(signal.SIGINT)
        try:
            yield
        except SystemExit:
            if not (self.detect_interrupt and is_interrupted(self.trainer)):
                raise
        if not (self.detect_interrupt and is_interrupted(self.trainer)):
            return
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)  # Lightning has set it to be ignored
        raise KeyboardInterrupt


def _renamed_loaders(old: Any, new: Any) -> Any:  # noqa: ANN401 - as Lightning takes them
    if new is not None:
        raise ValueError("give train_dataloaders only; train_dataloader is its deprecated name")
    warnings.warn(
        "train_dataloader is deprecated; use train_dataloaders", DeprecationWarning, stacklevel=4
    )
    return old
