"""Evaluator of a LightningModule and its Trainer."""

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from torch import nn

from nni.common.serializer import is_traceable
from nni.compression.base.evaluator import Evaluator, LossPatch

if TYPE_CHECKING:
    from pytorch_lightning import LightningDataModule, LightningModule, Trainer

_INSTALL = "pip install 'nni[lightning]'"


class LightningEvaluator(Evaluator):
    """Training and evaluation of a LightningModule by its own hooks.

    The model that a compressor gets is the LightningModule. Every training builds a new Trainer
    from the recorded arguments, and the LightningModule configures new optimizers. `max_steps` and
    `max_epochs` replace those of the Trainer; without them its own limits hold. Callbacks start
    from the state that they have when the evaluator is made.

    Patches reach the loss that `training_step` returns and the first optimizer. An evaluation is
    `Trainer.validate`; `validation_step` logs the metric as `default`, larger is better.

    Args:
        trainer: made by `nni.trace(pytorch_lightning.Trainer)(...)`, or by the one of
            `lightning.pytorch`.
        data_module: data of the training; None if the LightningModule has its own loaders.
        dummy_input: example input of the model, for algorithms that trace it.

    Raises:
        TypeError: `trainer` is no traced Trainer of Lightning.

    Examples:
        See `docs/compression-evaluators.md`, which makes one of a traced trainer of Lightning.

        >>> from nni.compression import LightningEvaluator
        >>> LightningEvaluator("trainer")
        Traceback (most recent call last):
        TypeError: trainer must be a Trainer of pytorch_lightning ...
    """

    def __init__(
        self,
        trainer: "Trainer",
        data_module: "LightningDataModule | None" = None,
        dummy_input: object = None,
    ) -> None:
        super().__init__(dummy_input)
        if not is_lightning_trainer(trainer):
            raise TypeError(
                f"trainer must be a Trainer of pytorch_lightning ({_INSTALL}), got {trainer!r}"
            )
        if not is_traceable(trainer):
            raise TypeError(
                "trainer must be made by nni.trace(pytorch_lightning.Trainer)(...), because each "
                "training needs a new one; got one that was not traced"
            )
        record = vars(trainer)
        self._make_trainer: Callable[..., Trainer] = record["trace_symbol"]
        self._arguments: Mapping[str, Any] = dict(record["trace_kwargs"])
        self._data_module = data_module
        given = self._arguments.get("callbacks") or []
        self._callbacks = given if isinstance(given, list) else [given]
        self._callback_states = [dict(one.state_dict()) for one in self._callbacks]

    def prepare(self, model: nn.Module) -> None:
        """Raise TypeError unless a model has `configure_optimizers`, as a LightningModule.

        Args:
            model: the LightningModule.

        Raises:
            TypeError: it is another module.
        """
        if not hasattr(model, "configure_optimizers"):
            raise TypeError(
                f"the model must be a LightningModule, which LightningEvaluator trains, got a "
                f"{type(model).__name__}; for another module use TorchEvaluator"
            )

    def patch_loss(self, patch: LossPatch) -> None:
        """Pass losses of `training_step` through a function; raise if optimization is manual.

        Args:
            patch: takes the loss and the batch, and returns the loss to minimise.

        Raises:
            RuntimeError: no model is bound, or it optimises manually.
        """
        if not self._module.automatic_optimization:
            raise RuntimeError(
                "the loss of a LightningModule with manual optimization cannot be patched: let "
                "training_step return the loss and set automatic_optimization = True"
            )
        super().patch_loss(patch)

    def run_training(self, max_steps: int | None, max_epochs: int | None) -> None:
        """Call `fit` of a new Trainer with the limits, patched loss and tasks; restore the module.

        Args:
            max_steps: number of optimizer steps; None for no limit.
            max_epochs: number of epochs; None for no limit.
        """
        module = self._module
        trainer = self._new_trainer(max_steps, max_epochs)
        own = {name: vars(module).get(name) for name in ("training_step", "on_train_start")}
        _override(module, "training_step", self._patched_step(module.training_step))
        _override(module, "on_train_start", self._attaching(module.on_train_start))
        try:
            trainer.fit(module, datamodule=self._data_module)
        finally:
            for name, value in own.items():
                _restore(module, name, value)
            module.trainer = None

    def run_evaluation(self) -> object:
        """Call `validate` of a new Trainer; return its metrics as a dict.

        Returns:
            The metrics that `validation_step` logs.
        """
        module = self._module
        trainer = self._new_trainer(None, None)
        try:
            trainer.validate(module, datamodule=self._data_module, verbose=False)
            return dict(trainer.callback_metrics)
        finally:
            module.trainer = None

    @property
    def _module(self) -> "LightningModule":
        module: Any = self.bound_model  # checked by `prepare`
        return module  # type: ignore[no-any-return]

    def _new_trainer(self, max_steps: int | None, max_epochs: int | None) -> "Trainer":
        for callback, state in zip(self._callbacks, self._callback_states, strict=True):
            callback.load_state_dict(dict(state))
        arguments = dict(self._arguments)
        if max_steps is not None or max_epochs is not None:
            arguments["max_steps"] = -1 if max_steps is None else max_steps
            arguments["max_epochs"] = -1 if max_epochs is None else max_epochs
            arguments["min_steps"] = arguments["min_epochs"] = arguments["max_time"] = None
        return self._make_trainer(**arguments)

    def _patched_step(self, step: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(step)
        def patched(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - of the user
            result = step(*args, **kwargs)
            if result is None:
                return None  # Lightning skips the batch
            return self.patched_result(result, args[0] if args else kwargs.get("batch"))

        return patched

    def _attaching(self, hook: Callable[[], None]) -> Callable[[], None]:
        @functools.wraps(hook)
        def attach() -> None:
            trainer = self._module.trainer
            first = trainer.optimizers[0]
            schedulers = [one.scheduler for one in trainer.lr_scheduler_configs]
            self.attach(first, [one for one in schedulers if one.optimizer is first])
            hook()

        return attach


def is_lightning_trainer(value: object) -> bool:
    """Return whether an object is a Trainer of Lightning, under either of its package names.

    Args:
        value: any object.

    Examples:
        >>> is_lightning_trainer(3)
        False
    """
    homes = ("pytorch_lightning.", "lightning.pytorch.")
    return any(
        one.__name__ == "Trainer" and one.__module__.startswith(homes)
        for one in type(value).__mro__
    )


def _override(module: nn.Module, name: str, value: object) -> None:
    vars(module)[name] = value


def _restore(module: nn.Module, name: str, value: object) -> None:
    if value is None:
        del vars(module)[name]
    else:
        vars(module)[name] = value
