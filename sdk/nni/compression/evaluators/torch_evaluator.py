"""Evaluator of a training function in plain PyTorch."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.hooks import RemovableHandle

from nni.compression.base.module_wrapper import plain_parameters
from nni.compression.evaluators.optimizer_recipe import OptimizerRecipe, rebuilt_scheduler

TrainingStep = Callable[..., Any]
"""`(batch, model) -> loss`, `(loss, ...)` or `{"loss": ...}`."""
TrainingFunction = Callable[..., None]
"""`(model, optimizers, training_step, lr_schedulers, max_steps, max_epochs) -> None`."""
EvaluatingFunction = Callable[[nn.Module], Any]
"""`(model) -> float`, or a dict with the key `default`; larger is better."""
LossPatch = Callable[[Tensor], Tensor]


class TorchEvaluator:
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
        self._training_func = training_func
        self._training_step = training_step
        self._evaluating_func = evaluating_func
        self._dummy_input = dummy_input
        self._single_optimizer = isinstance(optimizers, Optimizer)
        self._given_optimizers = _listed(optimizers, Optimizer, "optimizers")
        self._single_scheduler = isinstance(lr_schedulers, LRScheduler)
        self._given_schedulers = (
            [] if lr_schedulers is None else _listed(lr_schedulers, LRScheduler, "lr_schedulers")
        )
        self._recipes: list[OptimizerRecipe] | None = None
        self._model: nn.Module | None = None
        self._optimizers: list[Optimizer] = []
        self._schedulers: list[LRScheduler] = []
        self._loss_patches: list[LossPatch] = []
        self._handles: list[RemovableHandle] = []

    @classmethod
    def from_trainer(
        cls,
        trainer: Callable[..., object],
        optimizer: Optimizer,
        criterion: Callable[..., Tensor],
        *,
        evaluator: EvaluatingFunction | None = None,
        dummy_input: object = None,
        epochs: int = 1,
    ) -> Self:
        """Return an evaluator of the callbacks of NNI 2.x.

        Args:
            trainer: `(model, optimizer, criterion)`; trains one epoch.
            optimizer: optimizer of the model.
            criterion: `(output, target) -> loss`.
            evaluator: `(model) -> float`.
            dummy_input: example input of the model.
            epochs: calls of `trainer` in a training without a limit in epochs.

        Returns:
            An evaluator that counts in epochs; `max_steps` ends no training, because a trainer
            takes no such argument.

        Examples:
            >>> import torch
            >>> from torch import nn
            >>> from nni.compression import TorchEvaluator
            >>> def trainer(model, optimizer, criterion):
            ...     optimizer.zero_grad()
            ...     criterion(model(torch.ones(4, 2)), torch.ones(4, 1)).backward()
            ...     optimizer.step()
            >>> model = nn.Linear(2, 1)
            >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            >>> evaluator = TorchEvaluator.from_trainer(trainer, optimizer, nn.MSELoss())
        """

        def train(
            model: nn.Module,
            optimizers: Optimizer,
            training_step: TrainingStep,
            _lr_schedulers: object = None,
            _max_steps: int | None = None,
            max_epochs: int | None = None,
        ) -> None:
            for _ in range(max_epochs or epochs):
                trainer(model, optimizers, training_step)

        return cls(train, optimizer, criterion, dummy_input=dummy_input, evaluating_func=evaluator)

    @property
    def can_evaluate(self) -> bool:
        """Return whether there is an `evaluating_func`.

        Returns:
            True if `evaluate` can be called.
        """
        return self._evaluating_func is not None

    def bind_model(self, model: nn.Module) -> None:
        """Build optimizers and schedulers for a model, which may be wrapped.

        Args:
            model: the model of the given optimizers at first; later one with the same names.

        Raises:
            RuntimeError: another model is bound.
            ValueError: the given optimizers have parameters that the model lacks.
        """
        if self._model is not None:
            raise RuntimeError("the evaluator has a model already; call unbind_model() first")
        parameters = plain_parameters(model)
        if self._recipes is None:
            self._recipes = [OptimizerRecipe.of(one, parameters) for one in self._given_optimizers]
        self._model = model
        self._optimizers = [recipe.build(parameters) for recipe in self._recipes]
        owners = [self._given_optimizers.index(_owner(one)) for one in self._given_schedulers]
        self._schedulers = [
            rebuilt_scheduler(one, self._optimizers[owner])
            for one, owner in zip(self._given_schedulers, owners, strict=True)
        ]

    def unbind_model(self) -> None:
        """Remove all patches and hooks and forget the model; without effect if none is bound."""
        self.remove_hooks()
        self.revert_loss()
        self._model = None
        self._optimizers = []
        self._schedulers = []

    def patch_loss(self, patch: LossPatch) -> None:
        """Pass every loss of the following trainings through a function.

        Args:
            patch: takes the loss and returns the loss to minimise.
        """
        self._loss_patches.append(patch)

    def revert_loss(self) -> None:
        """Remove all patches of the loss."""
        self._loss_patches.clear()

    def patch_optimizer_step(
        self, before: Sequence[Callable[[], object]], after: Sequence[Callable[[], object]]
    ) -> None:
        """Call functions around each step of the first optimizer.

        Args:
            before: called before a step, when the gradients are complete.
            after: called after a step.

        Raises:
            RuntimeError: no model is bound.
        """
        self._bound()
        optimizer = self._optimizers[0]
        for task in before:
            self._handles.append(optimizer.register_step_pre_hook(_without_arguments(task)))
        for task in after:
            self._handles.append(optimizer.register_step_post_hook(_without_arguments(task)))

    def patch_optim_param_group(self, group: Mapping[str, object]) -> None:
        """Add parameters of an algorithm to the first optimizer.

        Args:
            group: `params` and hyperparameters.

        Raises:
            RuntimeError: no model is bound.
        """
        self._bound()
        self._optimizers[0].add_param_group(dict(group))

    def register_hooks(self, handles: Sequence[RemovableHandle]) -> None:
        """Take over hooks, which are removed at the latest with the model.

        Args:
            handles: what `register_forward_hook` and the like return.
        """
        self._handles.extend(handles)

    def remove_hooks(self) -> None:
        """Remove all hooks, those of optimizer steps included."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def train(self, max_steps: int | None = None, max_epochs: int | None = None) -> None:
        """Train the bound model by the function of the user.

        Args:
            max_steps: number of optimizer steps; None for no limit.
            max_epochs: number of epochs; None for no limit.

        Raises:
            RuntimeError: no model is bound.
        """
        model = self._bound()
        optimizers = self._optimizers[0] if self._single_optimizer else self._optimizers
        schedulers = self._schedulers[0] if self._single_scheduler else self._schedulers or None
        self._training_func(
            model, optimizers, self._patched_step, schedulers, max_steps, max_epochs
        )

    def finetune(self) -> None:
        """Train the bound model for as long as the function of the user takes without limits."""
        self.train()

    def evaluate(self) -> float:
        """Return the metric of the bound model; larger is better.

        Returns:
            What `evaluating_func` returns, or its `default`.

        Raises:
            RuntimeError: no model is bound, or there is no `evaluating_func`.
            KeyError: `evaluating_func` returns a dict without `default`.
        """
        model = self._bound()
        if self._evaluating_func is None:
            raise RuntimeError("the evaluator has no evaluating_func; pass one to TorchEvaluator")
        result = self._evaluating_func(model)
        if isinstance(result, Mapping) and "default" not in result:
            raise KeyError(f"evaluating_func must return a dict with 'default', got {result!r}")
        return float(result["default"] if isinstance(result, Mapping) else result)

    def get_dummy_input(self) -> object:
        """Return the example input.

        Returns:
            What was given as `dummy_input`; None if nothing was.
        """
        return self._dummy_input

    def _bound(self) -> nn.Module:
        if self._model is None:
            raise RuntimeError("the evaluator has no model; call bind_model(model) first")
        return self._model

    def _patched_step(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - of the user
        result = self._training_step(*args, **kwargs)
        if not self._loss_patches:
            return result
        if isinstance(result, Mapping):
            return {**result, "loss": self._patched(result["loss"])}
        if isinstance(result, tuple):
            return (self._patched(result[0]), *result[1:])
        return self._patched(result)

    def _patched(self, loss: Tensor) -> Tensor:
        for patch in self._loss_patches:
            loss = patch(loss)
        return loss


def _listed(given: Any, kind: type, name: str) -> list[Any]:  # noqa: ANN401 - checked here
    """Return one or several objects as a list; raise TypeError for any other."""
    found = [given] if isinstance(given, kind) else given
    if not isinstance(found, list | tuple) or not found:
        raise TypeError(f"{name} must be a {kind.__name__} or a list of them, got {given!r}")
    for one in found:
        if not isinstance(one, kind):
            raise TypeError(f"{name} must hold only {kind.__name__}, got {one!r}")
    return list(found)


def _owner(scheduler: LRScheduler) -> Optimizer:
    return scheduler.optimizer


def _without_arguments(task: Callable[[], object]) -> Callable[..., None]:
    def hook(*_args: object, **_kwargs: object) -> None:
        with torch.no_grad():
            task()

    return hook
