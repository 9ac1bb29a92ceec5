"""Contract of one-shot strategies, which train one network that holds all architectures."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning import LightningModule
from pytorch_lightning.utilities.model_helpers import is_overridden
from torch.utils.data import DataLoader

from nni.mutable import Sample
from nni.nas.evaluator.pytorch import Lightning
from nni.nas.execution import ExecutionEngine, SequentialExecutionEngine
from nni.nas.oneshot.pytorch.supernet import (
    MutationHook,
    is_supernet,
    labels_without_effect,
    mutate,
    refuse_remaining,
)
from nni.nas.oneshot.pytorch.training import BATCH_HOOKS, BaseOneShotLightningModule
from nni.nas.space import ExecutableModelSpace, ModelStatus, RawFormatModelSpace
from nni.nas.strategy.base import Strategy

CHECKPOINT = "ckpt_path"
"""Key of the path in the state, and in the arguments of `Trainer.fit`."""


class OneShotStrategy(Strategy):
    """Base of strategies that train one supernet, and export an architecture of it.

    The space is converted in place by hooks: `mutation_hooks`, those of its method
    `extra_oneshot_hooks`, and those of the strategy; what remains mutable then is an error. The
    evaluator is a Lightning one with loaders for training and validation. Space and evaluator run
    in this process, in the raw format and on the sequential engine.

    A new algorithm is one module: a subclass that implements `default_mutation_hooks`,
    `hook_arguments` and `configure_oneshot_module`, and the Lightning module that the latter
    returns.

    Args:
        mutation_hooks: hooks that precede all others; functions of a module, its name, a memo and
            the arguments of `hook_arguments`.

    Examples:
        See `docs/nas-oneshot.md`.

        >>> from nni.nas.strategy.oneshot import RandomOneShot
        >>> isinstance(RandomOneShot(), OneShotStrategy)
        True
    """

    def __init__(self, mutation_hooks: Iterable[MutationHook] | None = None) -> None:
        super().__init__()
        self._mutation_hooks = list(mutation_hooks or ())
        self._supernet: Any = None
        self._oneshot_module: BaseOneShotLightningModule | None = None
        self._submitted: RawFormatModelSpace | None = None
        self._evaluator: Lightning | None = None
        self._ckpt_path: str | None = None
        self._saved_path: str | None = None
        self.wrap_loaders: Callable[[Any], Any] | None = None
        """Function that is called with the loaders of the training, and returns those to use; None:
        they are used as they are."""

    @property
    def is_one_shot(self) -> bool:
        """Whether it trains one supernet in this process; true."""
        return True

    # What an algorithm provides

    @abstractmethod
    def default_mutation_hooks(self) -> list[MutationHook]:
        """Return the hooks that convert primitives to super-modules.

        Returns:
            Hooks in the order of their calls.
        """

    @abstractmethod
    def hook_arguments(self, model_space: Any) -> dict[str, Any]:  # noqa: ANN401 - any mutable module
        """Return the arguments of the hooks for one space, called before the conversion.

        Args:
            model_space: the space, not converted yet.

        Returns:
            Values by name; `strategy` is added.
        """

    def after_mutation(self, model_space: Any) -> None:  # noqa: ANN401 - any mutable module; optional
        """Complete the conversion to a supernet, in place; by default do nothing.

        Args:
            model_space: the supernet.
        """

    @abstractmethod
    def configure_oneshot_module(
        self, training_module: LightningModule
    ) -> BaseOneShotLightningModule:
        """Return the module that trains the supernet.

        Args:
            training_module: module of the evaluator.

        Returns:
            A Lightning module around it.
        """

    def train_dataloader(self, train: Any, val: Any) -> Any:  # noqa: ANN401 - any form of loaders
        """Return the loader of the training: by default the one of the evaluator.

        Args:
            train: training loader of the evaluator.
            val: validation loader of the evaluator.

        Returns:
            What `Trainer.fit` takes.
        """
        del val
        return train

    def val_dataloader(self, train: Any, val: Any) -> Any:  # noqa: ANN401 - any form of loaders
        """Return the loader of the validation: by default the one of the evaluator.

        Args:
            train: training loader of the evaluator.
            val: validation loader of the evaluator.

        Returns:
            What `Trainer.fit` takes; None for no validation.
        """
        del train
        return val

    def training_loaders(self, train: Any, val: Any) -> Any:  # noqa: ANN401 - any form of loaders
        """Return the loader of the training, wrapped by `wrap_loaders`.

        Args:
            train: training loader of the evaluator.
            val: validation loader of the evaluator.

        Returns:
            What `Trainer.fit` takes.
        """
        loaders = self.train_dataloader(train, val)
        return loaders if self.wrap_loaders is None else self.wrap_loaders(loaders)

    # Conversion

    @property
    def supernet(self) -> Any:  # noqa: ANN401 - any mutable module
        """Network that holds all architectures; raises RuntimeError before there is one.

        Raises:
            RuntimeError: no space was converted.
        """
        if self._supernet is None:
            raise RuntimeError(
                f"{type(self).__name__} has no supernet; call initialize or mutate_model first"
            )
        return self._supernet

    @property
    def oneshot_module(self) -> BaseOneShotLightningModule:
        """Lightning module that trains the supernet, or a restored one; raises if there is none.

        Before `run`, that of the checkpoint of a loaded state.

        Raises:
            RuntimeError: no evaluator was converted, and no state was loaded.
        """
        if self._oneshot_module is None and self._ckpt_path is not None:
            self._restore_module(self._ckpt_path)
        if self._oneshot_module is None:
            raise RuntimeError(
                f"{type(self).__name__} has no Lightning module; call run or mutate_evaluator first"
            )
        return self._oneshot_module

    def mutate_model(self, model_space: Any) -> Any:  # noqa: ANN401 - any mutable module
        """Convert a space to a supernet, in place, and return it; raise if it is one already.

        Args:
            model_space: space whose primitives are supported by this strategy.

        Returns:
            The same object.

        Raises:
            TypeError: a primitive is not supported.
            RuntimeError: the space is a supernet already.
        """
        if is_supernet(model_space):
            raise RuntimeError(
                "the model space is a supernet already; construct a new space, and load the state "
                "of the supernet after its conversion to keep the weights"
            )
        arguments = {"strategy": type(self).__name__, **self.hook_arguments(model_space)}
        extra: list[MutationHook] = getattr(model_space, "extra_oneshot_hooks", lambda _: [])(self)
        hooks = [
            *self._mutation_hooks,
            *extra,
            *self.default_mutation_hooks(),
            refuse_remaining,
        ]
        mutate(model_space, hooks, {}, arguments)
        unused = labels_without_effect(model_space)
        if unused:
            warnings.warn(
                f"{', '.join(map(repr, unused))} of {type(model_space).__name__} have no effect in "
                f"{type(self).__name__}: its constructor used their default values; make modules "
                "of all values the candidates of a LayerChoice, or use a multi-trial strategy",
                RuntimeWarning,
                stacklevel=2,
            )
        model_space.is_supernet = True
        self._supernet = model_space
        self.after_mutation(model_space)
        return model_space

    def mutate_evaluator(self, evaluator: Lightning) -> Lightning:
        """Return a copy of an evaluator that trains the supernet, with the strategy's loaders.

        Args:
            evaluator: evaluator of single networks; it stays as it is, but the new one uses its
                module and trainer.

        Returns:
            New evaluator.
        """
        module = self.configure_oneshot_module(evaluator.module)
        if not module.automatic_optimization and evaluator.module.automatic_optimization:
            check_trainer(evaluator.trainer, type(self).__name__)
        made = object.__new__(type(evaluator))  # a copy would be a new traced call
        vars(made).update(vars(evaluator))
        made.module = module
        made.fit_kwargs = dict(evaluator.fit_kwargs)
        if self._ckpt_path is not None:
            made.fit_kwargs.setdefault(CHECKPOINT, self._ckpt_path)
        if evaluator.datamodule is not None:
            made.datamodule = fused_datamodule(evaluator.datamodule, self, module)
        else:
            train, val = evaluator.train_dataloaders, evaluator.val_dataloaders
            made.train_dataloaders = self.training_loaders(train, val)
            made.val_dataloaders = self.val_dataloader(train, val)
        module.on_batch = self._note_checkpoint
        self._oneshot_module = module
        self._evaluator = made
        return made

    def _note_checkpoint(self) -> None:
        """Announce a new state if the trainer has written a checkpoint since the last call."""
        path = self.state_dict()[CHECKPOINT]
        if path != self._saved_path:
            self._saved_path = path
            self._state_changed()

    def _restore_module(self, path: str) -> None:
        """Make the Lightning module with the weights of a checkpoint, for results without a run."""
        evaluator = self.model_space.evaluator
        assert isinstance(evaluator, Lightning)
        self.mutate_evaluator(evaluator)
        module = self._oneshot_module
        assert module is not None
        module.set_model(self.supernet)
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        module.load_state_dict(checkpoint["state_dict"])
        module.on_load_checkpoint(checkpoint)

    # The search

    def _initialize(
        self, model_space: ExecutableModelSpace, engine: ExecutionEngine
    ) -> ExecutableModelSpace:
        name = type(self).__name__
        if not isinstance(model_space, RawFormatModelSpace):
            raise TypeError(
                f"{name} needs the raw format, got {type(model_space).__name__}; set "
                "config.model_format = 'raw'"
            )
        if not isinstance(engine, SequentialExecutionEngine):
            raise TypeError(
                f"{name} needs the sequential engine, got {type(engine).__name__}; set "
                "config.execution_engine = 'sequential'"
            )
        check_evaluator(model_space.evaluator, name)
        self.mutate_model(model_space.model_space)
        return model_space

    def _run(self) -> None:
        space = self.model_space
        assert isinstance(space, RawFormatModelSpace)
        assert isinstance(space.evaluator, Lightning)
        evaluator = self.mutate_evaluator(space.evaluator)
        self._submitted = RawFormatModelSpace(self.supernet, evaluator)
        self._submitted.status = ModelStatus.Frozen
        self.engine.submit_models(self._submitted)

    def export(self) -> Sample:
        """Return the architecture that the search prefers.

        Returns:
            Values by label.

        Raises:
            RuntimeError: the search did not run.
        """
        return self.oneshot_module.export()

    def list_models(
        self,
        sort: bool = True,  # noqa: FBT001, FBT002 - documented signature
        limit: int | None = 1,
    ) -> list[ExecutableModelSpace]:
        """Return the one architecture that the search prefers, with the weights of the supernet.

        Args:
            sort: must be true; another value warns.
            limit: must be 1; another value warns.

        Returns:
            One frozen model.

        Raises:
            RuntimeError: the search did not run.
        """
        if not sort or limit not in {1, None}:
            warnings.warn(
                f"{type(self).__name__} has one model, the best; sort={sort} and limit={limit} "
                "have no effect",
                stacklevel=2,
            )
        model = self.model_space.freeze(self.export())
        if self._submitted is not None:
            model.metrics = self._submitted.metrics
            model.status = self._submitted.status
        return [model]

    def state_dict(self) -> dict[str, Any]:
        """Return the path of the last checkpoint of the trainer, None without one."""
        trainer = None if self._evaluator is None else self._evaluator.trainer
        callback = getattr(trainer, "checkpoint_callback", None)
        paths = (getattr(callback, name, "") for name in ("last_model_path", "best_model_path"))
        return {CHECKPOINT: next((path for path in paths if path), self._ckpt_path)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Let a run continue from a state's checkpoint, unless the evaluator names one.

        If the search was killed after the trainer had replaced the checkpoint and before the state
        was saved, the newest checkpoint in its folder is taken.

        Args:
            state_dict: what `state_dict` returned.
        """
        path = state_dict[CHECKPOINT]
        self._ckpt_path = None if path is None else str(existing_checkpoint(Path(path)))
        self._saved_path = self._ckpt_path


def existing_checkpoint(path: Path) -> Path:
    """Return a checkpoint if it exists, else the newest in its folder, else the path itself.

    Args:
        path: file of a checkpoint.

    Returns:
        Path of a file; the given one if there is no checkpoint, so that opening it names it.
    """
    if path.is_file():
        return path
    others = sorted(path.parent.glob("*.ckpt"), key=lambda one: one.stat().st_mtime_ns)
    return others[-1] if others else path


def check_evaluator(evaluator: Any, strategy: str) -> None:  # noqa: ANN401 - it is to be checked
    """Raise TypeError or ValueError unless an evaluator can train a supernet.

    Args:
        evaluator: evaluator of single networks.
        strategy: name of the strategy, for the error.

    Raises:
        TypeError: it is no Lightning evaluator.
        ValueError: a loader is missing, or an argument is mutable.
    """
    if not isinstance(evaluator, Lightning):
        raise TypeError(
            f"{strategy} needs a Lightning evaluator, such as Classification, got {evaluator!r}"
        )
    loaders = (evaluator.train_dataloaders, evaluator.val_dataloaders)
    if evaluator.datamodule is None and None in loaders:
        missing = "train_dataloaders" if loaders[0] is None else "val_dataloaders"
        raise ValueError(
            f"{strategy} needs train_dataloaders and val_dataloaders, or a datamodule; "
            f"{missing} of the evaluator is missing"
        )
    mutable = evaluator.simplify()
    if mutable:
        raise ValueError(
            f"{strategy} needs an evaluator without mutable arguments, got {sorted(mutable)}; "
            "search them by a multi-trial strategy"
        )


def check_trainer(trainer: Any, strategy: str) -> None:  # noqa: ANN401 - trainer of Lightning
    """Raise ValueError for arguments of a trainer that a search which steps optimizers cannot have.

    Args:
        trainer: trainer of the evaluator.
        strategy: name of the strategy, for the error.

    Raises:
        ValueError: it clips or accumulates gradients.
    """
    if trainer.gradient_clip_val is not None:
        raise ValueError(
            f"gradient_clip_val of the trainer must be None in {strategy}, got "
            f"{trainer.gradient_clip_val}; pass it to the strategy: "
            f"{strategy}(gradient_clip_val={trainer.gradient_clip_val})"
        )
    if trainer.accumulate_grad_batches != 1:
        raise ValueError(
            f"accumulate_grad_batches of the trainer must be 1 in {strategy}, got "
            f"{trainer.accumulate_grad_batches}; use larger batches, or RandomOneShot"
        )


def only_loader(loaders: Any, name: str, strategy: str) -> Any:  # noqa: ANN401 - any form of loaders
    """Return the one loader of a list or dict, or the loader itself; raise ValueError for several.

    Args:
        loaders: loaders as Lightning takes them. A list of other objects than loaders of torch is a
            loader itself: a list of batches.
        name: argument of the evaluator, for the error.
        strategy: name of the strategy, for the error.

    Raises:
        ValueError: there are several loaders.
    """
    found = list(loaders.values()) if isinstance(loaders, Mapping) else loaders
    if not isinstance(found, list | tuple) or not any(isinstance(one, DataLoader) for one in found):
        return loaders
    if len(found) != 1:
        raise ValueError(
            f"{strategy} needs one loader in {name}, got {len(found)}; join the data sets by "
            "torch.utils.data.ConcatDataset"
        )
    return found[0]


def fused_datamodule(
    datamodule: Any,  # noqa: ANN401 - of Lightning
    strategy: OneShotStrategy,
    module: BaseOneShotLightningModule,
) -> Any:  # noqa: ANN401 - as above
    """Return a copy of a datamodule whose loaders are those of a strategy.

    Args:
        datamodule: datamodule of the evaluator.
        strategy: combines the loaders.
        module: knows the batches of the evaluator in those of the combined loaders.

    Returns:
        A shallow copy.
    """
    made = copy.copy(datamodule)

    def original(name: str) -> Callable[..., Any]:
        # A method of the copy, or a function that `from_datasets` has set in the object.
        found: Callable[..., Any] = vars(datamodule).get(
            name, getattr(type(datamodule), name).__get__(made)
        )
        return found

    def by_batch(name: str) -> Callable[..., Any]:
        hook = original(name)
        return lambda batch, *args: module.each_batch(batch, lambda one: hook(one, *args))

    train, val = original("train_dataloader"), original("val_dataloader")
    made.train_dataloader = lambda: strategy.training_loaders(train(), val())
    made.val_dataloader = lambda: strategy.val_dataloader(train(), val()) or []
    for name in BATCH_HOOKS:
        if is_overridden(name, datamodule):
            setattr(made, name, by_batch(name))
    return made
