"""Interface of the user's code that an auto-compression experiment runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

Trainer = Callable[..., object]
"""`(model, optimizer, criterion, epoch)`; trains one epoch."""


class AbstractAutoCompressionModule(ABC):
    """Base of user classes that give a trial its model, training and evaluation; all class methods.

    `model` and `evaluator` are needed. Pruners that train (slim, taylorfo, apoz, mean_activation,
    admm) need `optimizer_factory`, `criterion` and `sparsifying_trainer` too; fine-tuning needs
    `optimizer_factory`, `criterion`, `post_compress_finetuning_trainer` and
    `post_compress_finetuning_epochs`.

    Examples:
        >>> from torch import nn
        >>> from nni.compression.experiment import AbstractAutoCompressionModule
        >>> class Module(AbstractAutoCompressionModule):
        ...     @classmethod
        ...     def model(cls):
        ...         return nn.Sequential(nn.Linear(4, 2))  # with trained weights
        ...     @classmethod
        ...     def evaluator(cls):
        ...         return lambda model: float(model[0].weight.sum())
    """

    @classmethod
    @abstractmethod
    def model(cls) -> nn.Module:
        """Return a new model with the weights of its training.

        Returns:
            The model that is compressed.
        """

    @classmethod
    @abstractmethod
    def evaluator(cls) -> Callable[[nn.Module], Any]:
        """Return the function that evaluates a model.

        Returns:
            `(model) -> float`, or a dict with the key `default`.
        """

    @classmethod
    def optimizer_factory(cls) -> Callable[[Iterable[nn.Parameter]], Optimizer] | None:
        """Return the function that makes an optimizer of parameters; None, the default: none.

        Returns:
            `(parameters) -> optimizer`; None if nothing is trained.
        """
        return None

    @classmethod
    def criterion(cls) -> Callable[..., Tensor] | None:
        """Return the loss function that is passed to trainers; None by default.

        Returns:
            `(output, target) -> loss`; None if nothing is trained.
        """
        return None

    @classmethod
    def sparsifying_trainer(cls, compress_algorithm_name: str) -> Trainer | None:
        """Return the trainer to run while a pruner observes the model; None by default.

        Args:
            compress_algorithm_name: name of the pruner.

        Returns:
            `(model, optimizer, criterion, epoch)`, one epoch; None for none.
        """
        return None

    @classmethod
    def post_compress_finetuning_trainer(cls, compress_algorithm_name: str) -> Trainer | None:
        """Return the trainer that fine-tunes the compressed model; None, the default: no tuning.

        Args:
            compress_algorithm_name: name of the algorithm.

        Returns:
            `(model, optimizer, criterion, epoch)`, one epoch; None for no fine-tuning.
        """
        return None

    @classmethod
    def post_compress_finetuning_epochs(cls, compress_algorithm_name: str) -> int:
        """Return the number of epochs of fine-tuning; 0, the default, for none.

        Args:
            compress_algorithm_name: name of the algorithm.

        Returns:
            Number of epochs, 0 for no fine-tuning.
        """
        return 0

    @classmethod
    def dummy_input(cls) -> Any:  # noqa: ANN401 - inputs of a model
        """Return example inputs, which turn on speedup and measurements; None by default.

        Returns:
            Inputs; with them masked channels are removed after the fine-tuning, and a trial
            reports `latency_ms`, `flops`, `parameters` and `size_bytes` beside the metric. None for
            neither.
        """
        return None
