"""Base of all evaluators: what a compressor needs of the training of a model."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.hooks import RemovableHandle

from nni.compression.base.optimizer_groups import add_group

LossPatch = Callable[[Tensor, Any], Tensor]
"""`(loss, batch) -> loss`."""
Task = Callable[[], object]
"""Function that runs before or after an optimizer step, without gradients."""


class Evaluator(ABC):
    """Base of evaluators: training and evaluation of a bound model by code of the user.

    A compressor binds the evaluator to its model, patches loss and optimizer steps, calls `train`
    and unbinds the model, which removes all patches. Each binding starts anew: no optimizer or
    scheduler keeps state of an earlier one. One thread uses an evaluator at a time.

    An evaluator of one's own implements `prepare`, `run_training` and `run_evaluation`. It passes
    the optimizer of a binding to `attach` before its first step, and what a training step
    returns through `patched_result`. `nni.testing.evaluators.EvaluatorConformance` has the tests
    that it must pass.

    Args:
        dummy_input: example input of the model, for algorithms that trace it; None for none.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression import Evaluator
        >>> class OneBatch(Evaluator):
        ...     def prepare(self, model):
        ...         self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        ...         self.attach(self.optimizer)
        ...     def run_training(self, max_steps, max_epochs):
        ...         for _ in range(max_steps or max_epochs or 10):
        ...             batch = torch.ones(4, 2)
        ...             self.optimizer.zero_grad()
        ...             loss = self.bound_model(batch).square().mean()
        ...             self.patched_result(loss, batch).backward()
        ...             self.optimizer.step()
        ...     def run_evaluation(self):
        ...         return -self.bound_model(torch.ones(4, 2)).square().mean().item()
        >>> evaluator = OneBatch()
        >>> evaluator.bind_model(nn.Linear(2, 1))
        >>> before = evaluator.evaluate()
        >>> evaluator.train(max_steps=3)
        >>> evaluator.evaluate() > before
        True
        >>> evaluator.unbind_model()
    """

    def __init__(self, dummy_input: object = None) -> None:
        self._dummy_input = dummy_input
        self._model: nn.Module | None = None
        self._optimizer: Optimizer | None = None
        self._lr_schedulers: Sequence[LRScheduler] = ()
        self._groups: list[Mapping[str, object]] = []
        self._loss_patches: list[LossPatch] = []
        self._before: list[Task] = []
        self._after: list[Task] = []
        self._step_handles: list[RemovableHandle] = []
        self._handles: list[RemovableHandle] = []

    @abstractmethod
    def prepare(self, model: nn.Module) -> None:
        """Make trainer, optimizers and data for a model, which is bound next.

        Args:
            model: the model, some of whose modules may be wrapped.
        """

    @abstractmethod
    def run_training(self, max_steps: int | None, max_epochs: int | None) -> None:
        """Train the bound model until the first of two limits.

        Args:
            max_steps: number of optimizer steps; None for no limit.
            max_epochs: number of epochs; None for no limit. Without any limit, train for as long
                as a fine-tuning takes.
        """

    @abstractmethod
    def run_evaluation(self) -> object:
        """Return the bound model's metric: a number, or a dict with `default`; larger is better.

        Returns:
            A number, or a dict with the key `default`; larger is better.
        """

    def release(self) -> None:  # noqa: B027 - most need nothing
        """Release the objects that `prepare` made; called when the model is unbound."""

    @property
    def can_evaluate(self) -> bool:
        """Return whether `evaluate` can be called; the base returns True.

        Returns:
            True if `evaluate` can be called; by default it can.
        """
        return True

    @property
    def bound_model(self) -> nn.Module:
        """Return the bound model; raise RuntimeError if there is none.

        Raises:
            RuntimeError: no model is bound.
        """
        if self._model is None:
            raise RuntimeError("the evaluator has no model; call bind_model(model) first")
        return self._model

    def bind_model(self, model: nn.Module) -> None:
        """Bind a model, which may be wrapped, and prepare its training; raise if one is bound.

        Args:
            model: the model of the user at first; later any with the same parameter names.

        Raises:
            RuntimeError: a model is bound.
        """
        if self._model is not None:
            raise RuntimeError("the evaluator has a model already; call unbind_model() first")
        self.prepare(model)
        self._model = model

    def unbind_model(self) -> None:
        """Remove all patches and hooks and forget the model; without effect if none is bound."""
        self.remove_hooks()
        self.revert_loss()
        self.revert_optimizer_step()
        self._groups.clear()
        self._detach()
        self._model = None
        self.release()

    def patch_loss(self, patch: LossPatch) -> None:
        """Add a function of (loss, batch), after earlier ones; its result replaces each loss.

        Args:
            patch: takes the loss and the batch that it was computed from, and returns the loss to
                minimise.

        Raises:
            RuntimeError: no model is bound.
        """
        _ = self.bound_model
        self._loss_patches.append(patch)

    def revert_loss(self) -> None:
        """Remove all patches of the loss."""
        self._loss_patches.clear()

    def patch_optimizer_step(self, before: Sequence[Task], after: Sequence[Task]) -> None:
        """Add functions to call before and after each first-optimizer step, without gradients.

        Args:
            before: called before a step, when the gradients are complete.
            after: called after a step.

        Raises:
            RuntimeError: no model is bound.
        """
        _ = self.bound_model
        self._before.extend(before)
        self._after.extend(after)

    def revert_optimizer_step(self) -> None:
        """Remove all functions around optimizer steps."""
        self._before.clear()
        self._after.clear()

    def patch_optim_param_group(self, group: Mapping[str, object]) -> None:
        """Add parameters of an algorithm to the first optimizer, until the model is unbound.

        Its schedulers treat the group like the ones that it has.

        Args:
            group: `params` and hyperparameters.

        Raises:
            RuntimeError: no model is bound.
        """
        _ = self.bound_model
        self._groups.append(group)
        if self._optimizer is not None:
            add_group(self._optimizer, self._lr_schedulers, group)

    def register_hooks(self, handles: Sequence[RemovableHandle]) -> None:
        """Record handles of hooks, which `remove_hooks` or `unbind_model` removes.

        Args:
            handles: what `register_forward_hook` and the like return.
        """
        self._handles.extend(handles)

    def remove_hooks(self) -> None:
        """Remove all hooks that were taken over."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def train(self, max_steps: int | None = None, max_epochs: int | None = None) -> None:
        """Train the bound model until the first limit; raise RuntimeError if none is bound.

        Args:
            max_steps: number of optimizer steps; None for no limit.
            max_epochs: number of epochs; None for no limit.

        Raises:
            RuntimeError: no model is bound.
        """
        _ = self.bound_model
        self.run_training(max_steps, max_epochs)

    def finetune(self) -> None:
        """Train the bound model for as long as the code of the user does without limits.

        Raises:
            RuntimeError: no model is bound.
        """
        self.train()

    def evaluate(self) -> float:
        """Return the bound model's metric, `default` of a dict, as float; larger is better.

        Returns:
            What the code of the user returns, or its `default`.

        Raises:
            RuntimeError: no model is bound, or there is no code for an evaluation.
            KeyError: there are metrics, but none is the default.
        """
        _ = self.bound_model
        result = self.run_evaluation()
        if isinstance(result, Mapping):
            if "default" not in result:
                raise KeyError(
                    "the metrics of an evaluation must have the key 'default', got "
                    f"{', '.join(map(repr, result)) or 'none'}"
                )
            result = result["default"]
        return _number(result)

    def get_dummy_input(self) -> object:
        """Return the example input that the constructor got; None if it got none.

        Returns:
            What was given as `dummy_input`; None if nothing was.
        """
        return self._dummy_input

    def attach(self, optimizer: Optimizer, lr_schedulers: Sequence[LRScheduler] = ()) -> None:
        """Run tasks around an optimizer's steps, add the algorithm's groups; detach any other.

        For implementations, once for each new optimizer; without effect if it is attached.

        Args:
            optimizer: first optimizer of the bound model.
            lr_schedulers: its schedulers.
        """
        if optimizer is self._optimizer:
            return
        self._detach()
        self._optimizer, self._lr_schedulers = optimizer, tuple(lr_schedulers)
        for group in self._groups:
            add_group(optimizer, self._lr_schedulers, group)
        self._step_handles = [
            optimizer.register_step_pre_hook(self._before_step),
            optimizer.register_step_post_hook(self._after_step),
        ]

    def patched_result(self, result: Any, batch: object) -> Any:  # noqa: ANN401 - of the user
        """Return a training step's result: the loss, or the loss within, passed through patches.

        For implementations.

        Args:
            result: the loss, or a tuple that begins with the loss, or a dict with the key `loss`.
            batch: what the loss was computed from.

        Returns:
            The same form.
        """
        if not self._loss_patches:
            return result
        if isinstance(result, Mapping):
            return {**result, "loss": self._patched(result["loss"], batch)}
        if isinstance(result, tuple):
            return (self._patched(result[0], batch), *result[1:])
        return self._patched(result, batch)

    def _patched(self, loss: Tensor, batch: object) -> Tensor:
        for patch in self._loss_patches:
            loss = patch(loss, batch)
        return loss

    def _detach(self) -> None:
        for handle in self._step_handles:
            handle.remove()
        self._step_handles = []
        self._optimizer, self._lr_schedulers = None, ()

    def _before_step(
        self, _optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        closure = kwargs.get("closure") or (args[1] if len(args) > 1 else None)
        if closure is None:
            self.run_tasks(self._before)
            return None

        def complete() -> object:
            loss = closure()  # computes the gradients
            self.run_tasks(self._before)
            return loss

        return args[:1], {**kwargs, "closure": complete}

    def _after_step(self, *_: object) -> None:
        self.run_tasks(self._after)

    @staticmethod
    def run_tasks(tasks: Sequence[Task]) -> None:
        """Call functions without gradients, as around an optimizer step.

        Args:
            tasks: the functions.
        """
        with torch.no_grad():
            for task in tuple(tasks):
                task()


def _number(result: object) -> float:
    if isinstance(result, Tensor):
        result = result.item()
    if isinstance(result, bool) or not isinstance(result, int | float):
        raise TypeError(f"an evaluation must return a number, got {result!r}")
    return float(result)
