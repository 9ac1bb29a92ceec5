"""Strategies that draw one model after another, each from what is known at that moment."""

from __future__ import annotations

import logging
import random
import threading
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from nni.hpo.json_value import random_state, restore_random
from nni.mutable import Sample
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.strategy.base import Strategy
from nni.nas.strategy.open_models import OpenModels
from nni.nas.strategy.sampling import DeduplicationHelper, RetrySamplingHelper

_logger = logging.getLogger(__name__)


class DrawingStrategy(Strategy):
    """Base of strategies that submit a drawn model whenever a worker is idle.

    A subclass implements `_initialize` and `_draw`. The search ends with the budget, or when 500
    draws in a row bring no new model.

    Args:
        dedup: whether each model is submitted once only.
        seed: of all draws; None for another one each time.

    Examples:
        >>> from nni.mutable import Categorical
        >>> from nni.nas.space import RawFormatModelSpace
        >>> from nni.testing.strategies import SimulatedEngine, TableSpace
        >>> class Widest(DrawingStrategy):
        ...     def _initialize(self, model_space, engine):
        ...         return model_space
        ...     def _draw(self):
        ...         return {"width": 32}
        >>> strategy = Widest(dedup=True, seed=0)
        >>> space = TableSpace(Categorical([8, 16, 32], label="width"))
        >>> strategy(
        ...     RawFormatModelSpace(space), SimulatedEngine(lambda sample: sample["width"], 10)
        ... )
        >>> len(strategy.list_models())
        1
    """

    def __init__(self, *, dedup: bool, seed: int | None) -> None:
        super().__init__()
        self._random = random.Random(seed)
        self._dedup = DeduplicationHelper(raise_on_dup=True) if dedup else None
        self._retry = RetrySamplingHelper()
        self._lock = threading.Lock()
        """Held while a model is drawn or has ended, so that a state has both halves or neither."""
        self._open: OpenModels[Sample] = OpenModels()

    @abstractmethod
    def _draw(self) -> Sample:
        """Return a sample; called with the lock held.

        Raises:
            SampleValidationError: it does not fit the space; another one is drawn.
        """

    def _run(self) -> None:
        while self.wait_for_resource():
            model = self._next_model()
            if model is None:
                _logger.info("%s ends: no new model was found", type(self).__name__)
                return
            self.engine.submit_models(model)

    def _next_model(self) -> ExecutableModelSpace | None:
        with self._lock:
            sample = self._retry.retry(self._new_sample)
            if sample is None:
                return None
            model: ExecutableModelSpace = self.model_space.freeze(sample)
            self._open.add(model, sample)
            return model

    def _new_sample(self) -> Sample:
        """Return a draw; raise SampleValidationError for a duplicate or an invalid one."""
        sample = self._draw()
        if self._dedup is not None:
            self._dedup.dedup(sample)
        return sample

    def state_dict(self) -> dict[str, Any]:
        """Return keys of the drawn samples, without running ones, and the random state.

        Returns:
            `dedup_history`, `random_state`, and what a subclass adds.
        """
        with self._lock:
            unfinished = self._open.values()
            history = self._dedup.state_dict(without=unfinished) if self._dedup is not None else {}
            return {**history, "random_state": random_state(self._random), **self._own_state()}

    def _own_state(self) -> dict[str, Any]:
        """Return the entries that a subclass adds to the state, with the lock held; here none."""
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the keys of the drawn samples, and the random state.

        Args:
            state_dict: what `state_dict` returned.
        """
        restore_random(self._random, state_dict["random_state"])
        if self._dedup is not None and "dedup_history" in state_dict:
            self._dedup.load_state_dict(state_dict)
