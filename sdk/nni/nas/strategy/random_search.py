"""Random search: every model is a draw from the space."""

from __future__ import annotations

from typing import Final

from nni.mutable import Sample
from nni.nas.execution import ExecutionEngine
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.strategy.base import ignore_old_keywords
from nni.nas.strategy.drawing import DrawingStrategy

_OLD_KEYWORDS: Final = {
    "model_filter": "use the middleware Filter: Chain(Random(), Filter(model_filter))",
    "optimize_mode": "metrics are always maximised",
    "variational": "spaces of every size are sampled directly",
}


class Random(DrawingStrategy):
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
        super().__init__(dedup=dedup, seed=seed)
        ignore_old_keywords("Random", old_keywords, _OLD_KEYWORDS)

    def _initialize(
        self, model_space: ExecutableModelSpace, engine: ExecutionEngine
    ) -> ExecutableModelSpace:
        self._open.forget_ended(engine)
        return model_space

    def _draw(self) -> Sample:
        return self.model_space.random_sample(random_state=self._random)
