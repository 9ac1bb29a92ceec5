"""Evaluator of the callbacks of NNI 2.x: trainer, optimizer and criterion."""

import inspect
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from nni.compression.base.evaluator import Evaluator
from nni.compression.base.module_wrapper import plain_parameters
from nni.compression.evaluators.optimizer_recipe import OptimizerRecipe


class LegacyEvaluator(Evaluator):
    """Evaluator by callbacks of NNI 2.x: trainer of an epoch, optimizer, criterion, evaluator.

    The trainer trains one epoch. A limit of steps ends it in the middle: the optimizer step that
    reaches the limit leaves the trainer by an exception that `except Exception` does not catch. A
    trainer that makes no optimizer steps runs for one epoch.

    Args:
        trainer: `(model, optimizer, criterion)`, or `(model, optimizer, criterion, epoch)`; trains
            one epoch and computes losses by `criterion`.
        traced_optimizer: optimizer of the model, best made by `nni.trace(torch.optim.SGD)(...)`.
        criterion: `(output, target) -> loss`.
        dummy_input: example input of the model, for algorithms that trace it.
        evaluator: `(model) -> float`, or a dict with the key `default`; larger is better; None if
            no algorithm asks for an evaluation.
        finetuner: `(model)`, the whole fine-tuning; None for one epoch of the trainer.

    Raises:
        TypeError: `traced_optimizer` is no optimizer, or a callback cannot be called.

    Examples:
        >>> import nni, torch
        >>> from torch import nn
        >>> from nni.compression import LegacyEvaluator
        >>> def trainer(model, optimizer, criterion):
        ...     for batch in torch.ones(10, 4, 2):
        ...         optimizer.zero_grad()
        ...         criterion(model(batch), torch.ones(4, 1)).backward()
        ...         optimizer.step()
        >>> model = nn.Linear(2, 1)
        >>> optimizer = nni.trace(torch.optim.SGD)(model.parameters(), lr=0.1)
        >>> evaluator = LegacyEvaluator(trainer, optimizer, nn.MSELoss())
        >>> evaluator.bind_model(model)
        >>> evaluator.train(max_steps=3)
        >>> evaluator.unbind_model()
    """

    def __init__(
        self,
        trainer: Callable[..., object],
        traced_optimizer: Optimizer,
        criterion: Callable[..., Tensor],
        dummy_input: object = None,
        evaluator: Callable[[nn.Module], object] | None = None,
        finetuner: Callable[[nn.Module], object] | None = None,
    ) -> None:
        super().__init__(dummy_input)
        for name, value in (("trainer", trainer), ("criterion", criterion)):
            if not callable(value):
                raise TypeError(f"{name} must be a function, got {value!r}")
        if not isinstance(traced_optimizer, Optimizer):
            raise TypeError(
                "traced_optimizer must be an optimizer, such as nni.trace(torch.optim.SGD)(...), "
                f"got {traced_optimizer!r}"
            )
        self._trainer = trainer
        names = set(inspect.signature(trainer).parameters)
        self._named = {"optimizer", "criterion"} <= names  # in any order, as in NNI 1.x
        self._takes_epoch = "epoch" in names
        self._given_optimizer = traced_optimizer
        self._criterion = criterion
        self._evaluating_func = evaluator
        self._finetuner = finetuner
        self._recipe: OptimizerRecipe | None = None
        self._steps = 0
        self._limit: int | None = None
        self._inputs: object = None

    def prepare(self, model: nn.Module) -> None:
        """Build a new optimizer for a model; attach it, and count its steps.

        Args:
            model: the model of the given optimizer at first; later one with the same names.

        Raises:
            ValueError: the given optimizer has parameters that the model lacks.
        """
        parameters = plain_parameters(model)
        if self._recipe is None:
            self._recipe = OptimizerRecipe.of(self._given_optimizer, parameters)
        self._built = self._recipe.build(parameters)
        self.attach(self._built)
        self._built.register_step_post_hook(self._count)

    def release(self) -> None:  # noqa: D102 - see the base
        self._inputs = None
        if hasattr(self, "_built"):
            del self._built

    def run_training(self, max_steps: int | None, max_epochs: int | None) -> None:
        """Call the trainer once per epoch until the limit of epochs or steps; once without one.

        Args:
            max_steps: number of optimizer steps; None for no limit.
            max_epochs: number of epochs; None for no limit; one epoch without any limit.
        """
        self._steps, self._limit = 0, max_steps
        hook = self.bound_model.register_forward_pre_hook(self._remember, with_kwargs=True)
        try:
            self._train_epochs(max_epochs)
        except _StepLimit:
            pass
        finally:
            hook.remove()
            self._inputs = None

    def finetune(self) -> None:
        """Call the fine-tuner; without one, train for one epoch.

        Raises:
            RuntimeError: no model is bound.
        """
        if self._finetuner is None:
            self.train()
        else:
            self._finetuner(self.bound_model)

    @property
    def can_evaluate(self) -> bool:  # noqa: D102 - see the base
        return self._evaluating_func is not None

    def run_evaluation(self) -> object:
        """Return the result of the evaluating function; raise RuntimeError if there is none.

        Returns:
            What it returns.

        Raises:
            RuntimeError: there is none.
        """
        if self._evaluating_func is None:
            raise RuntimeError("there is no function to evaluate: pass evaluator=(model) -> float")
        return self._evaluating_func(self.bound_model)

    def _train_epochs(self, max_epochs: int | None) -> None:
        epoch = 0
        while epoch < (max_epochs or 1) or (max_epochs is None and self._limit is not None):
            before = self._steps
            self._train_epoch(epoch)
            epoch += 1
            if max_epochs is None and self._steps == before:
                return  # without steps no limit of them is ever reached

    def _train_epoch(self, epoch: int) -> None:
        criterion = self._patched_criterion if self._loss_patches else self._criterion
        kwargs = {"epoch": epoch} if self._takes_epoch else {}
        if self._named:
            self._trainer(self.bound_model, optimizer=self._built, criterion=criterion, **kwargs)
        else:
            self._trainer(self.bound_model, self._built, criterion, **kwargs)

    def _patched_criterion(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - of the user
        target = args[1] if len(args) > 1 else kwargs.get("target")
        return self.patched_result(self._criterion(*args, **kwargs), (self._inputs, target))

    def _remember(self, _model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._inputs = args[0] if len(args) == 1 and not kwargs else (args, kwargs)

    def _count(self, *_: object) -> None:
        self._steps += 1
        if self._steps == self._limit:
            raise _StepLimit


class _StepLimit(BaseException):
    """BaseException that ends a trainer at the step limit; no `Exception`, which it might catch."""
