"""Training by epochs, with the callbacks of NNI 1.x or an evaluator."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from nni.compression.base.evaluator import Evaluator

Trainer = Callable[..., object]


@dataclass(frozen=True, slots=True)
class EpochTraining:
    """Callbacks of NNI 2.x, or an evaluator, which train the model and run it on data."""

    evaluator: Evaluator | None = None
    """Used where there is no trainer or forward runner."""
    trainer: Trainer | None = None
    """`(model, optimizer, criterion, epoch)`; trains one epoch."""
    optimizer: Optimizer | None = None
    """Optimizer of the model, for the trainer."""
    criterion: Callable[..., Tensor] | None = None
    """`(output, target) -> loss`, for the trainer."""
    forward_runner: Callable[[nn.Module], object] | None = None
    """`(model)`; runs the model on all data."""

    @property
    def can_train(self) -> bool:
        """Return whether there is an evaluator, or a trainer with its optimizer."""
        with_trainer = self.trainer is not None and self.optimizer is not None
        return with_trainer or self.evaluator is not None

    @property
    def can_run(self) -> bool:
        """Return whether there is a forward runner or an evaluator."""
        return self.forward_runner is not None or self.evaluator is not None

    def epoch(self, model: nn.Module, number: int | None) -> None:
        """Train for one epoch by the trainer, else by the evaluator; without either do nothing.

        Args:
            model: the model, which may be wrapped.
            number: number of the epoch, for the trainer; None if the epoch only collects gradients.
        """
        if self.trainer is not None:
            self.trainer(model, optimizer=self.optimizer, criterion=self.criterion, epoch=number)
        elif self.evaluator is not None:
            with _bound(self.evaluator, model):
                self.evaluator.train(max_epochs=1)

    def forward(self, model: nn.Module) -> None:
        """Run the model on data without gradients, by the runner, else by an evaluation.

        Args:
            model: the model, which may be wrapped.
        """
        with torch.no_grad():
            if self.forward_runner is not None:
                self.forward_runner(model)
            elif self.evaluator is not None:
                with _bound(self.evaluator, model):
                    self.evaluator.evaluate()


@contextmanager
def _bound(evaluator: Evaluator, model: nn.Module) -> Iterator[None]:
    evaluator.bind_model(model)
    try:
        yield
    finally:
        evaluator.unbind_model()
