"""Evaluator of a training function with an engine of DeepSpeed."""

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from nni.compression.base.evaluator import Evaluator
from nni.compression.base.module_wrapper import plain_parameters
from nni.compression.base.optimizer_groups import add_group
from nni.compression.evaluators.optimizer_recipe import OptimizerRecipe, rebuilt_scheduler
from nni.compression.evaluators.torch_evaluator import (
    EvaluatingFunction,
    TrainingFunction,
    TrainingStep,
)


class DeepspeedTorchEvaluator(Evaluator):
    """Training of a model by functions of the user and an engine of DeepSpeed.

    The first training of a binding builds optimizer, scheduler and engine. `training_func` gets the
    engine in place of the model; it calls `engine.backward(loss)` and `engine.step()`. Tasks around
    optimizer steps run where the engine has accumulated all gradients.

    Args:
        training_func: `(engine, optimizer, training_step, lr_scheduler, max_steps, max_epochs)`;
            as that of `TorchEvaluator`.
        training_step: `(batch, model)`; returns the loss, or a tuple that begins with the loss,
            or a dict with the key `loss`.
        deepspeed: configuration of DeepSpeed, or the path of its JSON file.
        optimizer: optimizer of the model, best made by `nni.trace`; None if `deepspeed` names one.
        lr_scheduler: scheduler of that optimizer; None for that of `deepspeed`, or none.
        resume_from_checkpoint_args: arguments of `engine.load_checkpoint`; None to load nothing.
        dummy_input: example input of the model, for algorithms that trace it.
        evaluating_func: `(model)`; returns a float, or a dict with the key `default`.
        initialize: function with the arguments of `deepspeed.initialize`; None for that one.

    Raises:
        ImportError: DeepSpeed is not installed, and `initialize` is None.
        TypeError: an optimizer or scheduler is none.

    Examples:
        See `docs/compression-evaluators.md`, which makes one of the engine of DeepSpeed.

        >>> from nni.compression import DeepspeedTorchEvaluator
        >>> DeepspeedTorchEvaluator(print, print, "ds_config.json", optimizer="Adam")
        Traceback (most recent call last):
        TypeError: optimizer must be a Optimizer or None, got 'Adam'
    """

    def __init__(  # noqa: PLR0913 - the documented arguments of NNI 3.0
        self,
        training_func: TrainingFunction,
        training_step: TrainingStep,
        deepspeed: Mapping[str, object] | str | Path,
        optimizer: Optimizer | None = None,
        lr_scheduler: LRScheduler | None = None,
        resume_from_checkpoint_args: Mapping[str, object] | None = None,
        dummy_input: object = None,
        evaluating_func: EvaluatingFunction | None = None,
        *,
        initialize: Callable[..., tuple[Any, ...]] | None = None,
    ) -> None:
        super().__init__(dummy_input)
        for name, value, kind in (
            ("optimizer", optimizer, Optimizer),
            ("lr_scheduler", lr_scheduler, LRScheduler),
        ):
            if value is not None and not isinstance(value, kind):
                raise TypeError(f"{name} must be a {kind.__name__} or None, got {value!r}")
        self._initialize = _installed() if initialize is None else initialize
        self._training_func = training_func
        self._training_step = training_step
        self._config = str(deepspeed) if isinstance(deepspeed, Path) else deepspeed
        self._given_optimizer = optimizer
        self._given_scheduler = lr_scheduler
        self._checkpoint = resume_from_checkpoint_args
        self._evaluating_func = evaluating_func
        self._recipe: OptimizerRecipe | None = None
        self._engine: tuple[Any, ...] | None = None

    def prepare(self, model: nn.Module) -> None:
        """Record the given optimizer at the first binding; the engine is built in training.

        Args:
            model: the model of the given optimizer at first; later one with the same names.

        Raises:
            ValueError: the given optimizer has parameters that the model lacks.
        """
        if self._recipe is None and self._given_optimizer is not None:
            self._recipe = OptimizerRecipe.of(self._given_optimizer, plain_parameters(model))

    def release(self) -> None:  # noqa: D102 - see the base
        self._engine = None

    def patch_optim_param_group(self, group: Mapping[str, object]) -> None:
        """Add parameters to a given optimizer before a binding's first training; else raise.

        Args:
            group: `params` and hyperparameters.

        Raises:
            RuntimeError: no model is bound, its engine exists, or `deepspeed` makes the optimizer.
        """
        if self._engine is not None or self._given_optimizer is None:
            raise RuntimeError(
                "parameters can join only an optimizer that is passed to DeepspeedTorchEvaluator, "
                "and only before the first training of a binding"
            )
        super().patch_optim_param_group(group)

    def run_training(self, max_steps: int | None, max_epochs: int | None) -> None:
        """Call `training_func` with the engine, which the first call of a binding builds.

        Args:
            max_steps: number of optimizer steps; None for no limit.
            max_epochs: number of epochs; None for no limit.
        """
        if self._engine is None:
            self._engine = self._new_engine()
        engine, optimizer, scheduler = self._engine
        step = self._patched_step
        self._training_func(engine, optimizer, step, scheduler, max_steps, max_epochs)

    @property
    def can_evaluate(self) -> bool:  # noqa: D102 - see the base
        return self._evaluating_func is not None

    def run_evaluation(self) -> object:
        """Return the result of `evaluating_func`; raise RuntimeError if there is none.

        Returns:
            What it returns.

        Raises:
            RuntimeError: there is no `evaluating_func`.
        """
        if self._evaluating_func is None:
            raise RuntimeError("there is no evaluating_func; pass one to DeepspeedTorchEvaluator")
        return self._evaluating_func(self.bound_model)

    def _new_engine(self) -> tuple[Any, ...]:
        model = self.bound_model
        optimizer, scheduler = self._optimizer_of(model)
        engine, optimizer, _, scheduler = self._initialize(
            model=model,
            optimizer=optimizer,
            model_parameters=[one for one in model.parameters() if one.requires_grad],
            lr_scheduler=scheduler,
            config=self._config,
        )
        if self._checkpoint is not None:
            engine.load_checkpoint(**self._checkpoint)
        engine.step = self._stepping(engine, engine.step)
        return engine, optimizer, scheduler

    def _optimizer_of(self, model: nn.Module) -> tuple[Optimizer | None, LRScheduler | None]:
        if self._recipe is None:
            return None, None
        optimizer = self._recipe.build(plain_parameters(model))
        given = self._given_scheduler
        scheduler = None if given is None else rebuilt_scheduler(given, optimizer)
        for group in self._groups:
            add_group(optimizer, [] if scheduler is None else [scheduler], group)
        return optimizer, scheduler

    def _stepping(self, engine: Any, step: Callable[..., Any]) -> Callable[..., None]:  # noqa: ANN401
        def stepped(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - those of the engine
            complete = engine.is_gradient_accumulation_boundary()
            if complete:
                self.run_tasks(self._before)
            step(*args, **kwargs)
            if complete:
                self.run_tasks(self._after)

        return stepped

    def _patched_step(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - of the user
        result = self._training_step(*args, **kwargs)
        return self.patched_result(result, args[0] if args else kwargs.get("batch"))


def _installed() -> Callable[..., tuple[Any, ...]]:
    try:
        found: Callable[..., tuple[Any, ...]] = importlib.import_module("deepspeed").initialize
    except ImportError as error:
        raise ImportError(
            "DeepspeedTorchEvaluator needs deepspeed: pip install 'nni[deepspeed]'"
        ) from error
    return found
