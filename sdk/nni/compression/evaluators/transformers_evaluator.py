"""Evaluator of a Trainer of transformers."""

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from nni.common.serializer import is_traceable
from nni.compression.base.evaluator import Evaluator
from nni.compression.base.module_wrapper import plain_parameters
from nni.compression.evaluators.optimizer_recipe import OptimizerRecipe, rebuilt_scheduler

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise ImportError(
        "TransformersEvaluator needs transformers: pip install 'nni[transformers]'"
    ) from error

if TYPE_CHECKING:
    from transformers import Trainer


class TransformersEvaluator(Evaluator):
    """Training and evaluation of a model by a Trainer of transformers.

    Every binding builds a new Trainer from the recorded arguments, with the bound model in place of
    the recorded one, and new optimizers. `max_steps` and `max_epochs` replace those of its
    arguments; without them its own limits hold.

    Patches reach the loss that `compute_loss` returns in trainings, and the optimizer. The metric
    of an evaluation is the one that `compute_metrics` names `default`, or else
    `metric_for_best_model` of the arguments, negated if `greater_is_better` is False.

    Args:
        trainer: made by `nni.trace(transformers.Trainer)(...)`, with a model; optimizers and
            schedulers that it is given are best made by `nni.trace`.
        dummy_input: example input of the model, for algorithms that trace it.

    Raises:
        TypeError: `trainer` is no traced Trainer.
        ValueError: `trainer` was given `model_init`, or optimizers of another model.

    Examples:
        See `docs/compression-evaluators.md`, which makes one of a traced trainer of transformers.

        >>> from nni.compression import TransformersEvaluator
        >>> TransformersEvaluator("trainer")
        Traceback (most recent call last):
        TypeError: trainer must be made by nni.trace(transformers.Trainer)(...), because each ...
    """

    def __init__(self, trainer: "Trainer", dummy_input: object = None) -> None:
        super().__init__(dummy_input)
        if not is_traceable(trainer) or not hasattr(trainer, "compute_loss"):
            raise TypeError(
                "trainer must be made by nni.trace(transformers.Trainer)(...), because each "
                f"binding needs a new one; got {trainer!r}"
            )
        record = vars(trainer)
        self._make_trainer: Callable[..., Trainer] = record["trace_symbol"]
        signature = inspect.signature(self._make_trainer)
        bound = signature.bind(*record["trace_args"], **record["trace_kwargs"])
        self._arguments: Mapping[str, Any] = dict(bound.arguments)
        if self._arguments.get("model_init") is not None:
            raise ValueError(
                "trainer must be given a model, not model_init: a compressor changes one model"
            )
        self._training_arguments = copy.deepcopy(trainer.args)
        parameters = plain_parameters(self._arguments["model"])
        optimizer, scheduler = self._arguments.get("optimizers") or (None, None)
        self._scheduler: LRScheduler | None = scheduler
        self._recipe = None if optimizer is None else OptimizerRecipe.of(optimizer, parameters)
        self._callbacks = list(self._arguments.get("callbacks") or [])
        self._callback_states = [_state_of(one) for one in self._callbacks]
        self._trainer: Trainer | None = None

    def prepare(self, model: nn.Module) -> None:
        """Restore the callbacks' first states; build a Trainer of a model, with new optimizers.

        Args:
            model: the model of the given Trainer, or one with the same parameter names.
        """
        for callback, state in zip(self._callbacks, self._callback_states, strict=True):
            vars(callback).update(copy.deepcopy(state))
        optimizer, scheduler = self._optimizers(model)
        arguments = {
            **self._arguments,
            "model": model,
            "args": copy.deepcopy(self._training_arguments),
            "optimizers": (optimizer, scheduler),
        }
        trainer: Any = self._make_trainer(**arguments)
        self._epochs = _EpochLimit()
        trainer.add_callback(self._epochs)
        trainer.compute_loss = self._patched_loss(trainer.compute_loss)
        trainer.create_optimizer = self._attaching(trainer.create_optimizer)
        self._trainer = trainer

    def release(self) -> None:  # noqa: D102 - see the base
        self._trainer = None

    def run_training(self, max_steps: int | None, max_epochs: int | None) -> None:
        """Call `train` of the Trainer; given limits replace those of its arguments.

        Args:
            max_steps: number of optimizer steps; None for no limit.
            max_epochs: number of epochs; None for no limit.
        """
        trainer = self._made
        given = self._training_arguments
        unlimited = max_steps is None and max_epochs is None
        trainer.args.max_steps = given.max_steps if unlimited else max_steps or -1
        trainer.args.num_train_epochs = max_epochs or given.num_train_epochs
        self._epochs.limit = max_epochs
        trainer.train()

    def run_evaluation(self) -> object:
        """Evaluate; return metrics, the one for the best model also as `default` (larger better).

        Returns:
            The metrics without their prefix, and one of them as `default`.
        """
        metrics = {
            name.removeprefix("eval_"): value for name, value in self._made.evaluate().items()
        }
        best = (self._training_arguments.metric_for_best_model or "").removeprefix("eval_")
        if "default" not in metrics and best in metrics:
            better = self._training_arguments.greater_is_better
            metrics["default"] = metrics[best] if better in {True, None} else -metrics[best]
        return metrics

    @property
    def _made(self) -> "Trainer":
        assert self._trainer is not None  # a model is bound
        return self._trainer

    def _optimizers(self, model: nn.Module) -> tuple[Optimizer | None, LRScheduler | None]:
        if self._recipe is None:
            return None, None  # the Trainer makes its own
        optimizer = self._recipe.build(plain_parameters(model))
        scheduler = self._scheduler
        return optimizer, None if scheduler is None else rebuilt_scheduler(scheduler, optimizer)

    def _patched_loss(self, compute: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(compute)
        def patched(model: nn.Module, inputs: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            batch = dict(inputs)  # the computation may take the labels out
            result = compute(model, inputs, *args, **kwargs)
            return self.patched_result(result, batch) if model.training else result

        return patched

    def _attaching(self, create: Callable[..., Optimizer]) -> Callable[..., Optimizer]:
        @functools.wraps(create)
        def attach(*args: Any, **kwargs: Any) -> Optimizer:  # noqa: ANN401 - of the Trainer
            optimizer = create(*args, **kwargs)
            plain: Optimizer = getattr(optimizer, "optimizer", optimizer)  # accelerate wraps it
            scheduler = self._made.lr_scheduler
            self.attach(plain, [] if scheduler is None else [scheduler])
            return optimizer

        return attach


class _EpochLimit(TrainerCallback):
    """Callback that ends a training after some epochs, also where steps are given."""

    limit: int | None = None

    def on_epoch_end(self, args: object, state: Any, control: Any, **_: object) -> None:  # noqa: ANN401
        if self.limit is not None and state.epoch >= self.limit:
            control.should_training_stop = True


def _state_of(callback: object) -> dict[str, Any]:
    """Return the exported attributes of a stateful callback; {} for one without a state."""
    state = getattr(callback, "state", None)
    return copy.deepcopy(state()["attributes"]) if callable(state) else {}
