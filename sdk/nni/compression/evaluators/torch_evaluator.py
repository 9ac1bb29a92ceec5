"""Evaluator of a training function in plain PyTorch."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from nni.compression.base.evaluator import Evaluator
from nni.compression.base.module_wrapper import plain_parameters
from nni.compression.evaluators.optimizer_recipe import OptimizerRecipe, rebuilt_scheduler

TrainingStep = Callable[..., Any]
"""`(batch, model) -> loss`, `(loss, ...)` or `{"loss": ...}`."""
TrainingFunction = Callable[..., None]
"""`(model, optimizers, training_step, lr_schedulers, max_steps, max_epochs) -> None`."""
EvaluatingFunction = Callable[[nn.Module], Any]
"""`(model) -> float`, or a dict with the key `default`; larger is better."""


class TorchEvaluator(Evaluator):
    """Training and evaluation of a model by functions of the user.

    A compressor binds the evaluator to its model, patches loss and optimizer step, and calls
    `train`. Each binding builds the optimizers and schedulers anew, so that none of them keeps
    state of an earlier training.

    Args:
        training_func: `(model, optimizers, training_step, lr_schedulers, max_steps, max_epochs)`;
            trains until `max_steps` or `max_epochs`, or, if both are None, for as long as a
            fine-tuning takes. It must compute losses by `training_step`.
        optimizers: optimizer or list of optimizers of the model, best made by
            `nni.trace(torch.optim.SGD)(...)`. `training_func` gets the new one, or the new list.
        training_step: `(batch, model)`; returns the loss, or a tuple that begins with the loss,
            or a dict with the key `loss`.
        lr_schedulers: scheduler or list of schedulers, best made by `nni.trace`; None for none.
        dummy_input: example input of the model, for algorithms that trace it.
        evaluating_func: `(model)`; returns a float, or a dict with the key `default`, where
            larger is better; None if nothing asks for an evaluation.

    Raises:
        TypeError: an argument has another type.
        ValueError: a scheduler is of another optimizer.

    Examples:
        >>> import nni, torch
        >>> from torch import nn
        >>> from nni.compression import TorchEvaluator
        >>> model = nn.Linear(2, 1)
        >>> def training_step(batch, model):
        ...     return model(batch).square().mean()
        >>> def training_func(model, optimizer, step, lr_scheduler, max_steps, max_epochs):
        ...     for _ in range(max_steps or 10):
        ...         optimizer.zero_grad()
        ...         step(torch.ones(4, 2), model).backward()
        ...         optimizer.step()
        >>> optimizer = nni.trace(torch.optim.SGD)(model.parameters(), lr=0.1)
        >>> evaluator = TorchEvaluator(training_func, optimizer, training_step)
        >>> evaluator.bind_model(model)
        >>> evaluator.train(max_steps=3)
        >>> evaluator.unbind_model()
    """

    def __init__(
        self,
        training_func: TrainingFunction,
        optimizers: Optimizer | Sequence[Optimizer],
        training_step: TrainingStep,
        lr_schedulers: LRScheduler | Sequence[LRScheduler] | None = None,
        dummy_input: object = None,
        evaluating_func: EvaluatingFunction | None = None,
    ) -> None:
        super().__init__(dummy_input)
        self._training_func = training_func
        self._training_step = training_step
        self._evaluating_func = evaluating_func
        self._single_optimizer = isinstance(optimizers, Optimizer)
        self._given_optimizers = _listed(optimizers, Optimizer, "optimizers")
        self._single_scheduler = isinstance(lr_schedulers, LRScheduler)
        self._given_schedulers = (
            [] if lr_schedulers is None else _listed(lr_schedulers, LRScheduler, "lr_schedulers")
        )
        for one in self._given_schedulers:
            if not any(one.optimizer is owner for owner in self._given_optimizers):
                raise ValueError(
                    "lr_schedulers must be of the given optimizers, got a "
                    f"{type(one).__name__} of another {type(one.optimizer).__name__}; make it "
                    "from the optimizer that is passed as optimizers"
                )
        self._recipes: list[OptimizerRecipe] | None = None
        self._optimizers: list[Optimizer] = []
        self._schedulers: list[LRScheduler] = []

    @property
    def can_evaluate(self) -> bool:  # noqa: D102 - see the base
        return self._evaluating_func is not None

    def prepare(self, model: nn.Module) -> None:
        """Build new optimizers and schedulers for a model; attach the first optimizer.

        Args:
            model: the model of the given optimizers at first; later one with the same names.

        Raises:
            ValueError: the given optimizers have parameters that the model lacks.
        """
        parameters = plain_parameters(model)
        if self._recipes is None:
            self._recipes = [OptimizerRecipe.of(one, parameters) for one in self._given_optimizers]
        self._optimizers = [recipe.build(parameters) for recipe in self._recipes]
        owners = [self._given_optimizers.index(_owner(one)) for one in self._given_schedulers]
        self._schedulers = [
            rebuilt_scheduler(one, self._optimizers[owner])
            for one, owner in zip(self._given_schedulers, owners, strict=True)
        ]
        own = [one for one, owner in zip(self._schedulers, owners, strict=True) if owner == 0]
        self.attach(self._optimizers[0], own)

    def release(self) -> None:  # noqa: D102 - see the base
        self._optimizers = []
        self._schedulers = []

    def run_training(self, max_steps: int | None, max_epochs: int | None) -> None:
        """Call `training_func` with model, optimizers, patched step, schedulers and limits.

        Args:
            max_steps: number of optimizer steps; None for no limit.
            max_epochs: number of epochs; None for no limit.
        """
        optimizers = self._optimizers[0] if self._single_optimizer else self._optimizers
        schedulers = self._schedulers[0] if self._single_scheduler else self._schedulers or None
        self._training_func(
            self.bound_model, optimizers, self._patched_step, schedulers, max_steps, max_epochs
        )

    def run_evaluation(self) -> object:
        """Return the result of `evaluating_func`; raise RuntimeError if there is none.

        Returns:
            What it returns.

        Raises:
            RuntimeError: there is no `evaluating_func`.
        """
        if self._evaluating_func is None:
            raise RuntimeError("the evaluator has no evaluating_func; pass one to TorchEvaluator")
        return self._evaluating_func(self.bound_model)

    def _patched_step(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - of the user
        result = self._training_step(*args, **kwargs)
        return self.patched_result(result, args[0] if args else kwargs.get("batch"))


def _listed(given: Any, kind: type, name: str) -> list[Any]:  # noqa: ANN401 - checked here
    """Return one or several objects as a list; raise TypeError for none or another type."""
    found = [given] if isinstance(given, kind) else given
    if not isinstance(found, list | tuple) or not found:
        raise TypeError(f"{name} must be a {kind.__name__} or a list of them, got {given!r}")
    for one in found:
        if not isinstance(one, kind):
            raise TypeError(f"{name} must hold only {kind.__name__}, got {one!r}")
    return list(found)


def _owner(scheduler: LRScheduler) -> Optimizer:
    return scheduler.optimizer
