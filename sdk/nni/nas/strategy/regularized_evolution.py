"""Regularized evolution: tournaments among the newest models, and mutations of the winner.

Source: Real, Aggarwal, Huang and Le, Regularized Evolution for Image Classifier Architecture
Search, AAAI 2019, algorithm 1.

Departures: each dimension is drawn again with a probability of its own, instead of one mutation a
child; crossover is optional; models are evaluated concurrently, so that a tournament takes the
models that have ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from nni.mutable import MutableAnnotation, Sample
from nni.nas.execution import ExecutionEngine, ModelEventType, TrainingEndEvent
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.strategy.base import has_metric, ignore_old_keywords
from nni.nas.strategy.drawing import DrawingStrategy
from nni.nas.strategy.sample_codec import SampleCodec

_OLD_KEYWORDS: Final = {
    "cycles": "set max_trial_number of the experiment",
    "on_failure": "use the middleware FailureHandler",
    "optimize_mode": "metrics are always maximised",
}


@dataclass(frozen=True, slots=True)
class ScoredSample:
    """Member of a population: a sample and its metric."""

    sample: Sample
    """Label to value."""

    metric: float
    """Final metric of its model; larger is better."""


class RegularizedEvolution(DrawingStrategy):
    """Evolution in which the oldest members of the population leave, however good they are.

    The first models are random. Each later one is a child of the best of some random members.

    Args:
        population_size: number of random models at the start, and of members of the population.
        sample_size: members that take part in a tournament, from 1 to `population_size`.
        mutation_prob: probability with which each dimension is drawn again, in `[0, 1]`.
        crossover: whether a child has two parents, each the winner of a tournament, and takes every
            dimension from either.
        dedup: whether each model is submitted once only.
        seed: of all draws; None for another one each time.
        **old_keywords: `cycles`, `on_failure` and `optimize_mode` of NNI 2.x are ignored with a
            warning.

    Raises:
        ValueError: a size or a probability is out of its range.

    Examples:
        >>> from nni.mutable import Categorical
        >>> from nni.nas.space import RawFormatModelSpace
        >>> from nni.testing.strategies import SimulatedEngine, TableSpace
        >>> space = TableSpace(Categorical([8, 16, 32], label="width"))
        >>> strategy = RegularizedEvolution(population_size=2, sample_size=1, seed=0)
        >>> strategy(
        ...     RawFormatModelSpace(space), SimulatedEngine(lambda sample: sample["width"], 20)
        ... )
        >>> strategy.list_models(limit=1)[0].sample
        {'width': 32}
    """

    def __init__(
        self,
        *,
        population_size: int = 100,
        sample_size: int = 25,
        mutation_prob: float = 0.05,
        crossover: bool = False,
        dedup: bool = True,
        seed: int | None = None,
        **old_keywords: object,
    ) -> None:
        super().__init__(dedup=dedup, seed=seed)
        ignore_old_keywords("RegularizedEvolution", old_keywords, _OLD_KEYWORDS)
        if not 1 <= sample_size <= population_size:
            raise ValueError(
                "sample_size must be >= 1 and <= population_size, "
                f"got {sample_size} of {population_size}"
            )
        if not 0 <= mutation_prob <= 1:
            raise ValueError(f"mutation_prob must be in [0, 1], got {mutation_prob!r}")
        self._population_size = population_size
        self._sample_size = sample_size
        self._mutation_prob = mutation_prob
        self._crossover = crossover
        self._population: deque[ScoredSample] = deque(maxlen=population_size)
        self._ended = 0

    def _initialize(
        self, model_space: ExecutableModelSpace, engine: ExecutionEngine
    ) -> ExecutableModelSpace:
        self._leaves = model_space.simplify()
        engine.register_model_event_callback(ModelEventType.TrainingEnd, self._model_ended)
        return model_space

    def _draw(self) -> Sample:
        submitted = self._ended + len(self._open)
        if submitted < self._population_size or not self._population:
            return self.model_space.random_sample(random_state=self._random)
        child = self._child(list(self._population))
        self.model_space.validate(child)
        return child

    def _child(self, members: list[ScoredSample]) -> Sample:
        first = self._tournament(members)
        second = self._tournament(members) if self._crossover else first
        child: Sample = {}
        for label, leaf in self._leaves.items():
            if isinstance(leaf, MutableAnnotation):
                continue  # it has no value
            if self._random.random() < self._mutation_prob:
                leaf.add_random(child, self._random)
            else:
                parent = second if self._crossover and self._random.random() < 0.5 else first  # noqa: PLR2004 - either parent
                child[label] = parent.sample[label]
        return child

    def _tournament(self, members: list[ScoredSample]) -> ScoredSample:
        chosen = self._random.sample(members, min(self._sample_size, len(members)))
        return max(chosen, key=lambda member: member.metric)

    def _model_ended(self, event: TrainingEndEvent) -> None:
        with self._lock:
            sample = self._open.end(event)
            if sample is None:
                return
            self._ended += 1
            if has_metric(event.model):
                self._population.append(ScoredSample(sample, float(event.model.metric)))

    def _own_state(self) -> dict[str, Any]:
        codec = SampleCodec(self._leaves)
        return {
            "population": [
                (codec.encode(member.sample), member.metric) for member in self._population
            ],
            "ended": self._ended,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore population, number of ended models, drawn samples and random state.

        Args:
            state_dict: what `state_dict` returned.

        Raises:
            ValueError: a member is none of the space.
        """
        codec = SampleCodec(self._leaves)
        members = [
            ScoredSample(codec.decode(values), float(metric))
            for values, metric in state_dict["population"]
        ]
        super().load_state_dict(state_dict)
        with self._lock:
            self._population.clear()
            self._population.extend(members)
            self._ended = int(state_dict["ended"])
