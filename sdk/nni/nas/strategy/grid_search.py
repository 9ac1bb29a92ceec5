"""Grid search: every model of a finite space, and ever finer grids of an infinite one."""

from __future__ import annotations

import itertools
import logging
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from nni.hpo.json_value import random_state, restore_random
from nni.mutable import Categorical, CategoricalMultiple, LabeledMutable, Sample
from nni.nas.execution import ExecutionEngine
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.strategy.base import Strategy, ignore_old_keywords
from nni.nas.strategy.open_models import OpenModels
from nni.nas.strategy.sample_codec import SampleCodec
from nni.nas.strategy.sampling import DeduplicationHelper

_logger = logging.getLogger(__name__)

_BUFFER: Final = 100
"""Models that are shuffled together; a space may be too large to shuffle as a whole."""
_COARSE, _FINE = 1, 4
"""Granularities at which the grid of a numerical dimension differs in length."""
_PASSES_WITHOUT_NEW: Final = 3
"""Passes without a new sample after which finer grids bring none, as with quantized numbers."""


class GridSearch(Strategy):
    """Search of all combinations, in the order of `space.grid()` or shuffled.

    A finite space is enumerated once. With numerical dimensions, each pass takes a grid that is
    finer than the last one, until the budget ends or three passes in a row bring no new model.

    Args:
        shuffle: whether models are shuffled, a hundred at a time.
        seed: of the shuffling; None for another one each time.
        dedup: whether each model is submitted once only; a finer grid holds the coarser ones.
        **old_keywords: `optimize_mode` is ignored with a warning.

    Examples:
        >>> from nni.mutable import Categorical
        >>> from nni.nas.space import RawFormatModelSpace
        >>> from nni.testing.strategies import SimulatedEngine, TableSpace
        >>> space = TableSpace(Categorical([8, 16, 32], label="width"))
        >>> strategy = GridSearch(shuffle=False)
        >>> strategy(
        ...     RawFormatModelSpace(space), SimulatedEngine(lambda sample: sample["width"], 10)
        ... )
        >>> strategy.list_models(limit=1)[0].sample
        {'width': 32}
    """

    def __init__(
        self,
        *,
        shuffle: bool = True,
        seed: int | None = None,
        dedup: bool = True,
        **old_keywords: object,
    ) -> None:
        super().__init__()
        ignore_old_keywords(
            "GridSearch", old_keywords, {"optimize_mode": "metrics are always maximised"}
        )
        self._shuffle = shuffle
        self._random = random.Random(seed)
        self._dedup = DeduplicationHelper() if dedup else None
        self._granularity = 1
        self._taken = 0
        """Samples of the present pass that were submitted or skipped."""
        self._idle_passes = 0
        self._has_new = False
        self._state_of_pass = random_state(self._random)
        self._repeated: list[Sample] = []
        self._lock = threading.Lock()
        """Held while a model is taken: a state has it as taken and running, or not at all."""
        self._open: OpenModels[Sample] = OpenModels()

    def _initialize(
        self, model_space: ExecutableModelSpace, engine: ExecutionEngine
    ) -> ExecutableModelSpace:
        self._open.forget_ended(engine)
        return model_space

    def _run(self) -> None:
        if not self._submit_all(self._next_repeated):
            return
        infinite = is_infinite(self.model_space)
        while self._idle_passes < _PASSES_WITHOUT_NEW:
            samples = itertools.islice(self._samples(), self._taken, None)
            if not self._submit_all(lambda: self._next_of_pass(samples)):  # noqa: B023 - called within this turn only
                return
            with self._lock:
                self._idle_passes = 0 if self._has_new else self._idle_passes + 1
                if not infinite:
                    return
                self._granularity += 1
                self._taken, self._has_new = 0, False
                self._state_of_pass = random_state(self._random)
        _logger.info("grid search ends: finer grids hold no new model")

    def _submit_all(self, next_sample: Callable[[], Sample | None]) -> bool:
        """Submit a model for each sample; return whether the budget lasted."""
        while self.wait_for_resource():
            with self._lock:
                sample = next_sample()
                if sample is None:
                    return True
                model = self.model_space.freeze(sample)
                self._open.add(model, sample)
            self.engine.submit_models(model)
        return False

    def _next_repeated(self) -> Sample | None:
        return self._repeated.pop(0) if self._repeated else None

    def _next_of_pass(self, samples: Iterator[Sample]) -> Sample | None:
        for sample in samples:
            self._taken += 1
            if self._dedup is None or self._dedup.dedup(sample):
                self._has_new = True
                return sample
        return None

    def _samples(self) -> Iterator[Sample]:
        grid = self.model_space.grid_samples(granularity=self._granularity)
        if not self._shuffle:
            yield from grid
            return
        while buffer := list(itertools.islice(grid, _BUFFER)):
            self._random.shuffle(buffer)
            yield from buffer

    def state_dict(self) -> dict[str, Any]:
        """Return the place in the grid; models that run are submitted again.

        Returns:
            `granularity`, `taken`, `idle_passes`, `has_new`, `random_state`, `unfinished`, and
            `dedup_history`.
        """
        codec = SampleCodec(self.model_space.simplify())
        with self._lock:
            unfinished = [codec.encode(one) for one in [*self._open.values(), *self._repeated]]
            history = self._dedup.state_dict() if self._dedup is not None else {}
            return {
                **history,
                "granularity": self._granularity,
                "taken": self._taken,
                "idle_passes": self._idle_passes,
                "has_new": self._has_new,
                "random_state": self._state_of_pass,
                "unfinished": unfinished,
            }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the place in the grid; submit unfinished samples again later.

        Args:
            state_dict: what `state_dict` returned.
        """
        codec = SampleCodec(self.model_space.simplify())
        self._granularity = state_dict["granularity"]
        self._taken = state_dict["taken"]
        self._idle_passes = state_dict["idle_passes"]
        self._has_new = state_dict["has_new"]
        self._state_of_pass = state_dict["random_state"]
        restore_random(self._random, self._state_of_pass)
        self._repeated = [codec.decode(values) for values in state_dict["unfinished"]]
        if self._dedup is not None and "dedup_history" in state_dict:
            self._dedup.load_state_dict(state_dict)


def is_infinite(space: ExecutableModelSpace) -> bool:
    """Return whether finer grids of a space are longer: a leaf's grid grows from 1 to 4.

    Grids of choices never grow, and those of subsets may be too long to be counted.
    """
    return any(
        _grid_length(leaf, _COARSE) != _grid_length(leaf, _FINE)
        for leaf in space.simplify().values()
        if not isinstance(leaf, Categorical | CategoricalMultiple)
    )


def _grid_length(leaf: LabeledMutable, granularity: int) -> int:
    return sum(1 for _ in leaf.grid_samples(granularity=granularity))
