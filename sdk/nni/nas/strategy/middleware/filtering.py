"""Middleware that evaluates only the models that a function accepts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.space.status import ModelStatus
from nni.nas.strategy.middleware.base import StrategyMiddleware

_logger = logging.getLogger(__name__)

PATIENCE = 1000
"""Models in a row that are not evaluated after which the budget ends."""


class Filter(StrategyMiddleware):
    """Middleware that ends models as invalid unless a function accepts them.

    Args:
        filter_fn: function of an executable model that returns whether it is evaluated.
        metric_for_invalid: final metric of rejected models; None for none.
        patience: rejections in a row after which the budget ends.
        retain_history: whether `list_models` lists rejected models.

    Raises:
        ValueError: `patience` is not positive.

    Examples:
        >>> from nni.nas.strategy import Random
        >>> from nni.nas.strategy.middleware import Chain, Filter
        >>> strategy = Chain(Random(), Filter(lambda model: model.sample["width"] < 64))
        >>> type(strategy[1]).__name__
        'Filter'
    """

    def __init__(
        self,
        filter_fn: Callable[[ExecutableModelSpace], bool],
        metric_for_invalid: float | None = None,
        patience: int = PATIENCE,
        retain_history: bool = True,  # noqa: FBT001, FBT002 - documented signature
    ) -> None:
        super().__init__(retain_history)
        self.filter_fn = filter_fn
        self.metric_for_invalid = metric_for_invalid
        self._patience = Patience(patience, "models were rejected by the filter")

    def submit_models(self, *models: ExecutableModelSpace) -> None:
        """Submit the models that the function accepts; end the others as invalid.

        Args:
            *models: frozen models.
        """
        for model in models:
            self.remember(model)
            if self.filter_fn(model):
                self._patience.reset()
                self.engine.submit_models(model)
            else:
                self._patience.count()
                self.end_model(model, ModelStatus.Invalid, self.metric_for_invalid)

    def budget_available(self) -> bool:
        """Return False after `patience` rejections in a row, or without budget of the engine below.

        Returns:
            False after `patience` rejections in a row.
        """
        return not self._patience.ended and super().budget_available()

    def state_dict(self) -> dict[str, Any]:
        """Return the number of rejections in a row.

        Returns:
            `rejected_in_a_row`.
        """
        return {"rejected_in_a_row": self._patience.in_a_row}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the number of rejections in a row.

        Args:
            state_dict: what `state_dict` returned.
        """
        self._patience.in_a_row = int(state_dict["rejected_in_a_row"])


class Patience:
    """Counter of models in a row that were not evaluated, with a limit.

    Args:
        limit: number at which the budget ends.
        description: of what has happened so often, for the log.

    Raises:
        ValueError: `limit` is not positive.
    """

    def __init__(self, limit: int, description: str) -> None:
        if limit < 1:
            raise ValueError(f"patience must be >= 1, got {limit}")
        self._limit = limit
        self._description = description
        self.in_a_row = 0

    @property
    def ended(self) -> bool:
        """Whether the limit is reached."""
        return self.in_a_row >= self._limit

    def reset(self) -> None:
        """Set the count to 0, after a model that is evaluated."""
        self.in_a_row = 0

    def count(self) -> None:
        """Count one model that is not evaluated; log when the limit is reached."""
        self.in_a_row += 1
        if self.in_a_row == self._limit:
            _logger.warning("the budget ends: %d %s in a row", self._limit, self._description)
