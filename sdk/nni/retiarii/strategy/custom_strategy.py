"""Strategies of one's own in NNI 2.x: `BaseStrategy`, and its form as a strategy of `nni.nas`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from nni.nas.execution import ExecutionEngine
from nni.nas.space import ExecutableModelSpace, GraphModelSpace, Mutator
from nni.nas.strategy import Strategy
from nni.retiarii.execution.api import SearchEnded, set_execution_engine


class BaseStrategy(ABC):
    """Base class of strategies in NNI 2.x, which apply mutators to a model and submit the result.

    A subclass calls the functions of `nni.retiarii.execution`.
    """

    @abstractmethod
    def run(self, base_model: GraphModelSpace, applied_mutators: Sequence[Mutator]) -> None:
        """Search; a strategy may ask for resources without end.

        Args:
            base_model: model to mutate.
            applied_mutators: mutators, in the order of their application.
        """


class CustomStrategy(Strategy):
    """Strategy of `nni.nas` that runs one of NNI 2.x on a graph space (else TypeError).

    Its state is not saved: a search that was killed starts anew.

    Args:
        custom: strategy of NNI 2.x.
    """

    def __init__(self, custom: BaseStrategy) -> None:
        super().__init__()
        self.custom = custom

    def _initialize(
        self, model_space: ExecutableModelSpace, engine: ExecutionEngine
    ) -> ExecutableModelSpace:
        del engine
        if not isinstance(model_space, GraphModelSpace):
            raise TypeError(
                f"{type(self.custom).__name__} works on graphs, got "
                f"{type(model_space).__name__}; set config.execution_engine = 'base'"
            )
        return model_space

    def _run(self) -> None:
        space = self.model_space
        assert isinstance(space, GraphModelSpace)
        set_execution_engine(self.engine)
        try:
            self.custom.run(space, list(space.mutators))
        except SearchEnded:
            pass  # the strategy would ask forever
        finally:
            set_execution_engine(None)

    def state_dict(self) -> dict[str, Any]:
        """Return nothing: a strategy of NNI 2.x has no state that is known."""
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Do nothing."""
