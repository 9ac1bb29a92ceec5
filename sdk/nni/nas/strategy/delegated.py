"""Strategies whose search runs in another process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nni.nas.execution import ExecutionEngine
from nni.nas.space import ExecutableModelSpace
from nni.nas.strategy.base import Strategy


class DelegatedStrategy(Strategy):
    """Strategy whose search runs in another process: a trial, or the NAS service.

    It has no state of its own, since the log of the platform is the record of the search.

    Args:
        delegate: strategy that searches there; it is not used here.

    Attributes:
        delegate: the same.
    """

    def __init__(self, delegate: Strategy) -> None:
        super().__init__()
        self.delegate = delegate

    def _initialize(
        self, model_space: ExecutableModelSpace, engine: ExecutionEngine
    ) -> ExecutableModelSpace:
        del engine
        return model_space

    def state_dict(self) -> dict[str, Any]:
        """Return an empty dict: the log of the platform is the record.

        Returns:
            An empty dict.
        """
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Ignore a state.

        Args:
            state_dict: what `state_dict` returned.
        """
