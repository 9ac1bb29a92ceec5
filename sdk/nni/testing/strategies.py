"""Conformance suite of strategies of architecture search, and an engine that trains nothing.

Needs no torch; pytest collects the methods because of their names.
"""

from __future__ import annotations

import json
import queue
import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from nni.mutable import (
    Categorical,
    CategoricalMultiple,
    ExpressionConstraint,
    LabeledMutable,
    MutableDict,
    Numerical,
    Sample,
)
from nni.nas.execution import (
    ExecutionEngine,
    FinalMetricEvent,
    IntermediateMetricEvent,
    TrainingEndEvent,
)
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.space.raw import RawFormatModelSpace
from nni.nas.space.status import ModelStatus
from nni.nas.strategy.base import Strategy, StrategyStatus

Score = Callable[[Sample], float | None]
"""Function of a sample that returns its metric; None: the model fails."""


class Architecture(dict[str, Any]):
    """Network of a `TableSpace`: the values of its mutables.

    Examples:
        >>> from nni.testing.strategies import Architecture
        >>> Architecture(width=3)["width"]
        3
    """


class TableSpace(MutableDict):
    """Model space without a network, frozen to its values by label, for tests and simulations.

    Args:
        *leaves: mutables with labels.

    Examples:
        >>> from nni.mutable import Categorical
        >>> from nni.testing.strategies import TableSpace
        >>> TableSpace(Categorical([1, 2], label="a")).freeze({"a": 2})
        {'a': 2}
    """

    def __init__(self, *leaves: LabeledMutable) -> None:
        super().__init__({str(leaf.label): leaf for leaf in leaves})

    def freeze(self, sample: Sample) -> Architecture:
        """Return the architecture of a sample.

        Args:
            sample: value of each label.

        Returns:
            The values by label.
        """
        return Architecture(super().freeze(sample))


class SimulatedEngine(ExecutionEngine):
    """Engine whose models end, one after another, while a strategy waits.

    The metric is a function of the sample. There are no threads: `wait_until` ends the next model,
    so that a search with several running models is repeatable.

    Args:
        score: metric of a sample; None: the model fails.
        max_model_count: models that the budget allows; None for no limit.
        concurrency: models that run at once.
        order: whether the `first` or the `last` submitted model ends next.
        curve: number of intermediate metrics before the final one; they grow to it.

    Attributes:
        submitted: models in the order of their submission.

    Examples:
        >>> from nni.mutable import Categorical
        >>> from nni.nas.space import RawFormatModelSpace
        >>> from nni.nas.strategy import GridSearch
        >>> from nni.testing.strategies import SimulatedEngine, TableSpace
        >>> space = RawFormatModelSpace(TableSpace(Categorical([1, 3, 2], label="a")))
        >>> strategy = GridSearch()
        >>> strategy(space, SimulatedEngine(lambda sample: sample["a"]))
        >>> [model.sample["a"] for model in strategy.list_models()]
        [3, 2, 1]
    """

    def __init__(
        self,
        score: Score,
        max_model_count: int | None = None,
        *,
        concurrency: int = 1,
        order: Literal["first", "last"] = "first",
        curve: int = 0,
    ) -> None:
        super().__init__()
        self.score = score
        self.max_model_count = max_model_count
        self.concurrency = concurrency
        self.order = order
        self.curve = curve
        self.submitted: list[ExecutableModelSpace] = []
        self._running: list[ExecutableModelSpace] = []
        self._stopping: set[int] = set()

    @property
    def samples(self) -> list[Sample]:
        """Samples in the order of their submission."""
        return [model.sample for model in self.submitted if model.sample is not None]

    def submit_models(self, *models: ExecutableModelSpace) -> None:
        """Add models to those that run; with a concurrency of 1, end each at once.

        Args:
            *models: frozen models.

        Raises:
            RuntimeError: a model is not frozen, or has ended before.
        """
        for model in models:
            if not model.status.frozen() or model.status.completed():
                raise RuntimeError(f"a submitted model must be frozen, it is {model.status}")
            model.status = ModelStatus.Training
            self.submitted.append(model)
            self._running.append(model)
            if self.concurrency == 1:
                self.finish_next()

    def finish_next(self) -> None:
        """End the next running model with its metrics, or as failed; do nothing if none runs."""
        if not self._running:
            return
        model = self._running.pop(0 if self.order == "first" else -1)
        score = self.score(dict(model.sample or {}))
        if score is None:
            self.dispatch_model_event(TrainingEndEvent(model, ModelStatus.Failed))
            return
        for step in range(1, self.curve + 1):
            self.dispatch_model_event(IntermediateMetricEvent(model, score * step / self.curve))
            if id(model) in self._stopping:
                self.dispatch_model_event(TrainingEndEvent(model, ModelStatus.Interrupted))
                return
        self.dispatch_model_event(FinalMetricEvent(model, score))
        self.dispatch_model_event(TrainingEndEvent(model, ModelStatus.Trained))

    def wait_until(self, condition: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """End running models until a condition holds or none runs; return whether it holds.

        Args:
            condition: function of the state of engine or models.
            timeout_s: ignored; nothing takes time.

        Returns:
            Whether the condition holds; false if no model runs any more.
        """
        del timeout_s
        while not condition():
            if not self._running:
                return condition()
            self.finish_next()
        return True

    def can_stop_models(self) -> bool:
        """Return true.

        Returns:
            True.
        """
        return True

    def stop_models(self, *models: ExecutableModelSpace) -> None:
        """End models after the intermediate metric that is being reported.

        Args:
            *models: running models.
        """
        self._stopping.update(map(id, models))

    def list_models(self, status: ModelStatus | None = None) -> list[ExecutableModelSpace]:
        """Return the models that were submitted.

        Args:
            status: only those of this status; None for all.

        Returns:
            The models, each once.
        """
        unique = {id(model): model for model in self.submitted}.values()
        return [one for one in unique if status is None or one.status == status]

    def idle_worker_available(self) -> bool:
        """Return whether fewer models run than may.

        Returns:
            True if a worker is idle.
        """
        return len(self._running) < self.concurrency

    def budget_available(self) -> bool:
        """Return whether another model may be submitted.

        Returns:
            True while fewer models were submitted than the budget allows.
        """
        return self.max_model_count is None or len(self.submitted) < self.max_model_count


class ThreadedEngine(ExecutionEngine):
    """Engine whose events come from its own threads, one for each worker.

    Args:
        score: metric of a sample; None: the model fails.
        max_model_count: models that the budget allows.
        concurrency: number of threads.

    Examples:
        >>> from nni.mutable import Categorical
        >>> from nni.nas.space import RawFormatModelSpace
        >>> from nni.nas.strategy import GridSearch
        >>> from nni.testing.strategies import TableSpace, ThreadedEngine
        >>> space = RawFormatModelSpace(TableSpace(Categorical([1, 3, 2], label="a")))
        >>> engine = ThreadedEngine(lambda sample: sample["a"], max_model_count=9)
        >>> strategy = GridSearch()
        >>> strategy(space, engine)
        >>> engine.wait_models()
        >>> engine.shutdown()
        >>> strategy.list_models()[0].sample
        {'a': 3}
    """

    def __init__(self, score: Score, max_model_count: int, *, concurrency: int = 2) -> None:
        super().__init__()
        self.score = score
        self.max_model_count = max_model_count
        self._models: list[ExecutableModelSpace] = []
        self._waiting: queue.SimpleQueue[ExecutableModelSpace | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"worker {number}", daemon=True)
            for number in range(concurrency)
        ]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        while (model := self._waiting.get()) is not None:
            score = self.score(dict(model.sample or {}))
            if score is not None:
                self.dispatch_model_event(FinalMetricEvent(model, score))
            status = ModelStatus.Failed if score is None else ModelStatus.Trained
            self.dispatch_model_event(TrainingEndEvent(model, status))

    def submit_models(self, *models: ExecutableModelSpace) -> None:
        """Queue models for the threads, without waiting; set their status to Training.

        Args:
            *models: frozen models.
        """
        for model in models:
            model.status = ModelStatus.Training
            self._models.append(model)
            self._waiting.put(model)

    def list_models(self, status: ModelStatus | None = None) -> list[ExecutableModelSpace]:
        """Return the models that were submitted.

        Args:
            status: only those of this status; None for all.

        Returns:
            The models.
        """
        return [one for one in list(self._models) if status is None or one.status == status]

    def idle_worker_available(self) -> bool:
        """Return whether fewer models run than there are threads.

        Returns:
            True if a thread is idle.
        """
        return len(self.list_models(ModelStatus.Training)) < len(self._threads)

    def budget_available(self) -> bool:
        """Return whether another model may be submitted.

        Returns:
            True while fewer models were submitted than the budget allows.
        """
        return len(self._models) < self.max_model_count

    def shutdown(self) -> None:
        """Wait until the threads have ended, after the queued models."""
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()


class StrategyConformance(ABC):
    """Tests that every `nni.nas.strategy.Strategy` must pass; subclass it in a module of tests.

    Examples:
        >>> from nni.nas.strategy import Random
        >>> from nni.testing.strategies import StrategyConformance
        >>> class TestMyStrategy(StrategyConformance):
        ...     def make(self, seed):
        ...         return Random(seed=seed)
        >>> TestMyStrategy().test_models_are_in_the_space()
    """

    numbers: ClassVar[bool] = True
    """Whether the strategy searches numerical dimensions."""

    subsets: ClassVar[bool] = True
    """Whether it searches choices of several values."""

    never_repeats: ClassVar[bool] = True
    """Whether it submits each sample once, so that it ends when a finite space is exhausted."""

    continues_exactly: ClassVar[bool] = True
    """Whether a resumed search submits what the first one would have."""

    budget: ClassVar[int] = 30
    """Models of a long search: more than the strategy submits before it learns."""

    @abstractmethod
    def make(self, seed: int) -> Strategy:
        """Return a new strategy that draws all its randomness from a seed.

        Args:
            seed: of the randomness.
        """

    def make_space(self) -> RawFormatModelSpace:
        """Return a space with a dimension of each kind that the strategy searches.

        Returns:
            A space whose labels are `depth`, `width`, `op`, and by the class variables `inputs` and
            `rate`; the sum of depth and width is not 5.
        """
        depth = Categorical([1, 2, 3, 4], label="depth")
        width = Categorical([1, 2, 3, 4], label="width")
        leaves: list[LabeledMutable] = [
            depth,
            width,
            Categorical([int, "max", (1, 2)], label="op"),
            ExpressionConstraint(depth + width != 5, label="rule"),  # noqa: PLR2004 - part of the test
        ]
        if self.subsets:
            leaves.append(CategoricalMultiple([0, 1, 2], n_chosen=None, label="inputs"))
        if self.numbers:
            leaves.append(Numerical(0, 1, label="rate"))
        return RawFormatModelSpace(TableSpace(*leaves))

    def small_space(self) -> RawFormatModelSpace:
        """Return a space of six models.

        Returns:
            The space.
        """
        return RawFormatModelSpace(
            TableSpace(Categorical([1, 2, 3], label="a"), Categorical([1, 2], label="b"))
        )

    def saved_and_loaded(self, state: dict[str, Any]) -> Any:  # noqa: ANN401 - a state
        """Return a state after a round trip through a checkpoint; override it for tensors.

        Args:
            state: the state.

        Returns:
            The state after a trip through JSON.
        """
        return json.loads(json.dumps(state))

    def search(
        self,
        engine: SimulatedEngine,
        space: RawFormatModelSpace,
        seed: int = 0,
        state: Mapping[str, Any] | None = None,
    ) -> Strategy:
        """Run a new strategy to its end, from a given state if any; return it.

        Args:
            engine: the engine.
            space: the space.
            seed: of the strategy.
            state: state to load first; None for none.

        Returns:
            The strategy.
        """
        strategy = self.make(seed)
        strategy.initialize(space, engine)
        if state is not None:
            strategy.load_state_dict(state)
        strategy.run()
        return strategy

    def test_models_are_in_the_space(self) -> None:
        """Every submitted sample is a point of the space and keeps its constraints."""
        space = self.make_space()
        engine = SimulatedEngine(score_of, self.budget)

        self.search(engine, space)

        assert engine.samples
        for sample in engine.samples:
            assert space.contains(sample), sample
            assert set(sample) <= set(space.simplify())

    def test_same_seed_gives_the_same_models(self) -> None:
        """A strategy with the same seed and results repeats itself."""
        first, second = (SimulatedEngine(score_of, self.budget, concurrency=3) for _ in range(2))

        self.search(first, self.make_space(), seed=7)
        self.search(second, self.make_space(), seed=7)

        assert first.samples == second.samples

    def test_ends_with_the_budget(self) -> None:
        """Exactly as many models are submitted as the engine allows."""
        engine = SimulatedEngine(score_of, self.budget)

        strategy = self.search(engine, self.make_space())

        assert len(engine.submitted) == self.budget
        assert strategy.status is StrategyStatus.Succeeded

    def test_ends_when_the_space_is_exhausted(self) -> None:
        """A finite space ends the search of a strategy that never repeats a sample."""
        engine = SimulatedEngine(score_of, 200)

        self.search(engine, self.small_space())

        different = {json.dumps(sample, sort_keys=True) for sample in engine.samples}
        if self.never_repeats:
            assert len(engine.submitted) == len(different) == 6  # noqa: PLR2004 - its size
        assert len(different) <= 6  # noqa: PLR2004 - its size

    def test_copes_with_failed_models(self) -> None:
        """A model without a metric does not stop the search."""
        engine = SimulatedEngine(
            lambda sample: None if sample["depth"] % 2 else score_of(sample), self.budget
        )

        self.search(engine, self.make_space())

        assert len(engine.submitted) == self.budget

    def test_copes_when_every_model_fails(self) -> None:
        """Models that all fail use the budget up and no more."""
        engine = SimulatedEngine(lambda _sample: None, self.budget)

        self.search(engine, self.make_space())

        assert len(engine.submitted) == self.budget

    def test_copes_with_concurrent_models_that_end_in_any_order(self) -> None:
        """Models run at the same time, and the newest end first."""
        engine = SimulatedEngine(score_of, self.budget, concurrency=4, order="last")

        self.search(engine, self.make_space())
        engine.wait_models()

        assert all(model.status is ModelStatus.Trained for model in engine.submitted)

    def test_copes_with_events_of_other_threads(self) -> None:
        """Models end in threads of the engine while the strategy submits others."""
        space = self.make_space()
        engine = ThreadedEngine(score_of, self.budget, concurrency=3)
        strategy = self.make(0)

        try:
            strategy(space, engine)
            engine.wait_models()
        finally:
            engine.shutdown()

        assert len(strategy.list_models()) == self.budget
        assert all(space.contains(dict(one.sample or {})) for one in engine.list_models())

    def test_state_is_plain_and_survives(self) -> None:
        """A state holds plain values, and a strategy that loads it has the same one."""
        space = self.make_space()
        first = self.search(SimulatedEngine(score_of, self.budget), space)
        state = first.state_dict()

        second = self.make(1)
        second.initialize(space, SimulatedEngine(score_of, self.budget))
        second.load_state_dict(self.saved_and_loaded(state))

        assert _as_json(second.state_dict()) == _as_json(state)

    def test_resumed_search_continues(self) -> None:
        """A search in two runs uses the budget, with the models of one run if it is exact."""
        half = self.budget // 2
        whole = SimulatedEngine(score_of, self.budget)
        self.search(whole, self.make_space())
        engines = [SimulatedEngine(score_of, count) for count in (half, self.budget - half)]

        state = self.search(engines[0], self.make_space()).state_dict()
        self.search(engines[1], self.make_space(), state=state)

        samples = [*engines[0].samples, *engines[1].samples]
        assert len(samples) == self.budget
        if self.continues_exactly:
            assert samples == whole.samples

    def test_interrupted_models_are_not_lost(self) -> None:
        """Models that ran when the state was saved are submitted again after a resume."""
        if not self.never_repeats:
            return
        first = SimulatedEngine(score_of, 4, concurrency=2)
        strategy = self.search(first, self.small_space())
        state = strategy.state_dict()
        ended = [dict(one.sample or {}) for one in first.list_models(ModelStatus.Trained)]

        second = SimulatedEngine(score_of, 200)
        self.search(second, self.small_space(), state=state)

        everything = [*ended, *second.samples]
        assert len(everything) == len({str(sorted(one.items())) for one in everything}) == 6  # noqa: PLR2004 - the size of the space

    def test_best_models_come_first(self) -> None:
        """`list_models` sorts by metric; unsorted it has the order of submission."""
        engine = SimulatedEngine(score_of, self.budget)

        strategy = self.search(engine, self.make_space())

        metrics = [model.metric for model in strategy.list_models()]
        assert metrics == sorted(metrics, reverse=True)
        assert strategy.list_models(sort=False) == engine.submitted
        assert strategy.list_models(limit=2) == strategy.list_models()[:2]

    def test_runs_once(self) -> None:
        """A second run, or a second initialisation, is a `RuntimeError`."""
        engine = SimulatedEngine(score_of, 3)
        strategy = self.search(engine, self.make_space())

        for call in (strategy.run, lambda: strategy.initialize(self.make_space(), engine)):
            try:
                call()
            except RuntimeError:
                continue
            raise AssertionError("a strategy ran or was initialized a second time")


def _as_json(state: object) -> str:
    """Return a state as JSON, tensors as lists."""
    return json.dumps(state, default=lambda value: value.tolist())


def score_of(sample: Sample) -> float:
    """Return the metric of a sample in the tests: a repeatable number that rises with `depth`."""
    noise = random.Random(repr(sorted(sample.items(), key=lambda pair: pair[0]))).random()
    return float(sample.get("depth", 0)) + noise
