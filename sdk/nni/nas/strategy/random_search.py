"""Random search: every model is a draw from the space."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Mapping
from typing import Any, Final

from nni.hpo.json_value import random_state, restore_random
from nni.mutable import Sample
from nni.nas.execution import ExecutionEngine
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.strategy.base import Strategy, ignore_old_keywords
from nni.nas.strategy.open_models import OpenModels
from nni.nas.strategy.sampling import DeduplicationHelper, RetrySamplingHelper

_logger = logging.getLogger(__name__)

_OLD_KEYWORDS: Final = {
    "model_filter": "use the middleware Filter: Chain(Random(), Filter(model_filter))",
    "optimize_mode": "metrics are always maximised",
    "variational": "spaces of every size are sampled directly",
}


class Random(Strategy):
    """Random search; it ends when 500 draws in a row bring no new model.

    Args:
        dedup: whether each model is submitted once only.
        seed: of all draws; None for another one each time.
        **old_keywords: `variational`, `model_filter` and `optimize_mode` of NNI 2.x are ignored
            with a warning.

    Examples:
        >>> from nni.mutable import Categorical
        >>> from nni.nas.space import RawFormatModelSpace
        >>> from nni.testing.strategies import SimulatedEngine, TableSpace
        >>> space = TableSpace(Categorical([8, 16, 32], label="width"))
        >>> strategy = Random(seed=0)
        >>> strategy(
        ...     RawFormatModelSpace(space), SimulatedEngine(lambda sample: sample["width"], 10)
        ... )
        >>> strategy.list_models(limit=1)[0].sample
        {'width': 32}
    """

    def __init__(
        self, *, dedup: bool = True, seed: int | None = None, **old_keywords: object
    ) -> None:
        super().__init__()
        ignore_old_keywords("Random", old_keywords, _OLD_KEYWORDS)
        self._random = random.Random(seed)
        self._dedup = DeduplicationHelper(raise_on_dup=True) if dedup else None
        self._retry = RetrySamplingHelper()
        self._lock = threading.Lock()
        """Held while a model is drawn: a state has it as drawn and running, or not at all."""
        self._open: OpenModels[Sample] = OpenModels()

    def _initialize(
        self, model_space: ExecutableModelSpace, engine: ExecutionEngine
    ) -> ExecutableModelSpace:
        self._open.forget_ended(engine)
        return model_space

    def _run(self) -> None:
        while self.wait_for_resource():
            model = self._next_model()
            if model is None:
                _logger.info("random search ends: no new model was found")
                return
            self.engine.submit_models(model)

    def _next_model(self) -> ExecutableModelSpace | None:
        with self._lock:
            sample = self._retry.retry(self._draw)
            if sample is None:
                return None
            model: ExecutableModelSpace = self.model_space.freeze(sample)
            self._open.add(model, sample)
            return model

    def _draw(self) -> Sample:
        sample = self.model_space.random_sample(random_state=self._random)
        if self._dedup is not None:
            self._dedup.dedup(sample)
        return sample

    def state_dict(self) -> dict[str, Any]:
        """Return the models that were drawn, but for those that run, and the state of the draws.

        Returns:
            `dedup_history` and `random_state`.
        """
        with self._lock:
            unfinished = self._open.values()
            history = self._dedup.state_dict(without=unfinished) if self._dedup is not None else {}
            return {**history, "random_state": random_state(self._random)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the models that were drawn.

        Args:
            state_dict: what `state_dict` returned.
        """
        restore_random(self._random, state_dict["random_state"])
        if self._dedup is not None and "dedup_history" in state_dict:
            self._dedup.load_state_dict(state_dict)
