"""Contract of strategies, which decide on the models that an engine evaluates."""

from __future__ import annotations

import logging
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from nni.nas.execution import ExecutionEngine
from nni.nas.execution.construction import Reconstructible
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.space.status import ModelStatus

_logger = logging.getLogger(__name__)


class StrategyStatus(StrEnum):
    """State of a strategy: empty, initialized, running, succeeded, interrupted or failed.

    Examples:
        >>> from nni.nas.strategy import Random
        >>> Random().status
        <StrategyStatus.Empty: 'empty'>
    """

    Empty = "empty"
    """It has neither space nor engine."""
    Initialized = "initialized"
    """It can run, or load a state first."""
    Running = "running"
    """It submits models."""
    Succeeded = "succeeded"
    """It has ended: the budget or the space is exhausted."""
    Interrupted = "interrupted"
    """The user interrupted it."""
    Failed = "failed"
    """It raised an error."""


class Strategy(Reconstructible, ABC):
    """Base of strategies, which choose models of a space and submit them to an engine.

    A strategy runs once: `initialize`, then `load_state_dict` when a search is resumed, then `run`,
    which returns when the budget or the space is exhausted. Models that were submitted may still be
    running then. Every metric is maximised.

    A subclass implements `_initialize`, `_run`, `state_dict` and `load_state_dict`. It submits
    frozen models by `self.engine.submit_models` while `wait_for_resource` is true, and learns by
    callbacks of the engine. Callbacks may come from another thread: lock what they share, and call
    the engine without the lock.

    Args:
        model_space: space of executable models; with it the strategy is initialized.
        engine: engine that evaluates the models; with `model_space` or not at all.

    Raises:
        ValueError: only one of both is given.

    Examples:
        A strategy that evaluates the default model and no other.

        >>> from nni.nas.strategy import Strategy
        >>> class OnlyDefault(Strategy):
        ...     def _initialize(self, model_space, engine):
        ...         return model_space
        ...     def _run(self):
        ...         if self.wait_for_resource():
        ...             self.engine.submit_models(self.model_space.default())
        ...     def state_dict(self):
        ...         return {}
        ...     def load_state_dict(self, state_dict):
        ...         pass
        >>> OnlyDefault().status.value
        'empty'
    """

    def __init__(
        self,
        model_space: ExecutableModelSpace | None = None,
        engine: ExecutionEngine | None = None,
    ) -> None:
        self._status = StrategyStatus.Empty
        self._model_space: ExecutableModelSpace | None = None
        self._engine: ExecutionEngine | None = None
        self._restored: list[ExecutableModelSpace] = []
        self._state_callbacks: list[Callable[[], None]] = []
        if (model_space is None) != (engine is None):
            raise ValueError(
                "model_space and engine must be given together, or neither; got only "
                + ("engine" if model_space is None else "model_space")
            )
        if model_space is not None and engine is not None:
            self.initialize(model_space, engine)

    # State

    @property
    def status(self) -> StrategyStatus:
        """State of the strategy."""
        return self._status

    @property
    def is_one_shot(self) -> bool:
        """Whether it trains one supernet in this process, instead of submitting many models."""
        return False

    @property
    def model_space(self) -> ExecutableModelSpace:
        """Space that is searched; raises RuntimeError before `initialize`.

        Raises:
            RuntimeError: the strategy is not initialized.
        """
        if self._model_space is None:
            raise self._uninitialized()
        return self._model_space

    @property
    def engine(self) -> ExecutionEngine:
        """Engine that models are submitted to; raises RuntimeError before `initialize`.

        Raises:
            RuntimeError: the strategy is not initialized.
        """
        if self._engine is None:
            raise self._uninitialized()
        return self._engine

    def _uninitialized(self) -> RuntimeError:
        return RuntimeError(f"{type(self).__name__} is not initialized; call initialize first")

    def initialize(self, model_space: ExecutableModelSpace, engine: ExecutionEngine) -> None:
        """Bind space and engine, once; raise RuntimeError the second time.

        Args:
            model_space: space of executable models; a strategy may replace it by another form.
            engine: engine that evaluates the models.

        Raises:
            RuntimeError: the strategy was initialized before.
        """
        if self._status is not StrategyStatus.Empty:
            raise RuntimeError(
                f"{type(self).__name__} was initialized before; build a new strategy"
            )
        self._engine = engine
        self._model_space = self._initialize(model_space, engine)
        self._status = StrategyStatus.Initialized

    @abstractmethod
    def _initialize(
        self, model_space: ExecutableModelSpace, engine: ExecutionEngine
    ) -> ExecutableModelSpace:
        """Prepare the search, register callbacks; return the space that is searched."""

    def run(self) -> None:
        """Search until budget or space are exhausted; raise RuntimeError the second time.

        Raises:
            RuntimeError: the strategy is not initialized, or it ran before.
        """
        if self._status is StrategyStatus.Empty:
            raise self._uninitialized()
        if self._status is not StrategyStatus.Initialized:
            raise RuntimeError(
                f"{type(self).__name__} ran before, it is {self._status}; build a new strategy, "
                "and call its load_state_dict to continue"
            )
        self._status = StrategyStatus.Running
        try:
            self._run()
        except KeyboardInterrupt:
            self._status = StrategyStatus.Interrupted
            raise
        except BaseException:
            self._status = StrategyStatus.Failed
            raise
        self._status = StrategyStatus.Succeeded

    @abstractmethod
    def _run(self) -> None:
        """Submit models while `wait_for_resource` is true."""

    def __call__(self, model_space: ExecutableModelSpace, engine: ExecutionEngine) -> None:
        """Initialize and run."""
        self.initialize(model_space, engine)
        self.run()

    # Services for subclasses and callers

    def wait_for_resource(self) -> bool:
        """Wait until a worker is idle or the budget ends; return whether budget is left.

        Returns:
            Whether another model may be submitted.
        """
        engine = self.engine
        engine.wait_until(lambda: engine.idle_worker_available() or not engine.budget_available())
        return engine.budget_available()

    def list_models(
        self,
        sort: bool = True,  # noqa: FBT001, FBT002 - documented signature
        limit: int | None = None,
    ) -> list[ExecutableModelSpace]:
        """Return trained models with a metric, best first; unsorted, all in submission order.

        Args:
            sort: true: trained models with a metric only, the best first; false: all, in the order
                of their submission.
            limit: number of models at most; fewer are a warning. None for all.

        Returns:
            The models.

        Raises:
            RuntimeError: the strategy did not run.
        """
        if self._status in {StrategyStatus.Empty, StrategyStatus.Initialized} and not (
            self._restored
        ):
            raise RuntimeError(f"{type(self).__name__} has no models before it runs; call run")
        models = [*self._restored, *self.engine.list_models()]
        if sort:
            models = ranked(models)
        if limit is None:
            return models
        if len(models) < limit:
            _logger.warning("only %d models exist, %d were requested", len(models), limit)
        return models[:limit]

    def restore_models(self, models: Sequence[ExecutableModelSpace]) -> None:
        """Add the models of the search that this one resumes to `list_models`.

        Args:
            models: completed models, in the order of their submission.
        """
        self._restored = list(models)

    def register_state_callback(self, callback: Callable[[], None]) -> None:
        """Call a function whenever the state changes while no model ends.

        A one-shot search is one long training, whose progress would be lost otherwise.

        Args:
            callback: function without arguments; it is called in the thread of the search.
        """
        self._state_callbacks.append(callback)

    def _state_changed(self) -> None:
        """Call the functions of `register_state_callback`."""
        for callback in self._state_callbacks:
            callback()

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return the state that a later strategy needs to continue the search.

        Models that are running count as not submitted.

        Returns:
            Plain values and tensors; only `load_state_dict` reads them.
        """

    @abstractmethod
    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore a state, after `initialize` and before `run`.

        Args:
            state_dict: what `state_dict` of a strategy with the same arguments returned.
        """


def ranked(models: Sequence[ExecutableModelSpace]) -> list[ExecutableModelSpace]:
    """Return the trained models with a metric, the best first; equal ones in their order."""
    scored = [
        (float(model.metric), model)
        for model in models
        if model.status is ModelStatus.Trained and has_metric(model)
    ]
    return [model for _, model in sorted(scored, key=lambda pair: -pair[0])]


def has_metric(model: ExecutableModelSpace) -> bool:
    """Return whether a model has a final metric that can be compared; NaN cannot."""
    return model.metric is not None and not math.isnan(float(model.metric))


def ignore_old_keywords(
    strategy: str, given: Mapping[str, object], remedies: dict[str, str]
) -> None:
    """Warn of keywords of NNI 2.x without effect; raise TypeError for unknown ones.

    Args:
        strategy: name of the class.
        given: keywords that the constructor does not know.
        remedies: what to use instead, by keyword of NNI 2.x.

    Raises:
        TypeError: a keyword is none of NNI 2.x either.
    """
    for name in given:
        if name not in remedies:
            raise TypeError(f"{strategy} got an unexpected keyword argument {name!r}")
        warnings.warn(
            f"{name} of {strategy} has no effect any more; {remedies[name]}",
            DeprecationWarning,
            stacklevel=3,
        )
