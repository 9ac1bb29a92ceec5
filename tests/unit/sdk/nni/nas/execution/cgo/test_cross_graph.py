"""Merged trials: which models, when, and what each of them gets."""

from collections.abc import Callable
from typing import Any

import pytest
import torchmetrics
from torch import nn

from nni.nas.evaluator.pytorch import Classification, Lightning
from nni.nas.execution import (
    ExecutionEngine,
    FinalMetricEvent,
    IntermediateMetricEvent,
    SequentialExecutionEngine,
    TrainingEndEvent,
    TrainingServiceExecutionEngine,
)
from nni.nas.execution.cgo import (
    CrossGraphOptimization,
    MultiModelLightningModule,
    MultiModelTrainer,
)
from nni.nas.execution.trial_platform import CandidateLost, CandidateMetric, PlatformClosed
from nni.nas.space import GraphModelSpace, ModelStatus, RawFormatModelSpace
from nni.nas.space.graph_op import Operation
from nni.nas.strategy import GridSearch
from tests.support.in_memory_trials import InMemoryTrials
from tests.support.lightning_tasks import QUIET, loader
from tests.unit.sdk.nni.nas.graph_models import AnchorNet, OperationMutator, linear

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    # Lightning 2.6 calls functions of torch 2.13 that are deprecated.
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]

BAD = Operation.new(linear(4).type, {"in_features": 5, "out_features": 4})
"""Layer that does not fit its input."""
GOOD = [
    linear(4),
    Operation.new(linear(4).type, {"in_features": 4, "out_features": 4, "bias": False}),
    Operation.new("__torch__.torch.nn.LeakyReLU"),
]
"""Layers of four classes."""


class Waiting(ExecutionEngine):
    """Engine whose trials run until the test ends them."""

    def __init__(self) -> None:
        super().__init__()
        self.trials: list[Any] = []

    def submit_models(self, *models: Any) -> None:
        self.trials.extend(models)

    def list_models(self, status: ModelStatus | None = None) -> list[Any]:
        return self.trials

    def idle_worker_available(self) -> bool:
        return True

    def budget_available(self) -> bool:
        return True

    def end(self, trial: Any, status: ModelStatus = ModelStatus.Trained) -> None:
        self.dispatch_model_event(TrainingEndEvent(trial, status))


class ManualTimer:
    """Timers that go off when the test says so."""

    def __init__(self) -> None:
        self.started: list[tuple[float, Callable[[], None]]] = []
        self.cancelled = 0

    def __call__(self, seconds: float, action: Callable[[], None]) -> "ManualTimer":
        self.started.append((seconds, action))
        return self

    def cancel(self) -> None:
        self.cancelled += 1


def evaluator() -> Any:
    accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=4)
    module = MultiModelLightningModule(nn.CrossEntropyLoss(), accuracy)
    return Lightning(module, MultiModelTrainer(max_epochs=1, **QUIET), loader(16), loader(8))


def space(*candidates: Operation, trained_by: Any = None) -> GraphModelSpace:
    chosen = list(candidates) or GOOD
    return GraphModelSpace.from_model(
        AnchorNet(),
        evaluator() if trained_by is None else trained_by,
        mutators=[OperationMutator("second", chosen, label="m")],
    )


def models(*candidates: Operation) -> list[GraphModelSpace]:
    return list(space(*candidates).grid())


@pytest.fixture
def below() -> Waiting:
    return Waiting()


def merging(below: ExecutionEngine, limit: int = 3, **kwargs: Any) -> CrossGraphOptimization:
    kwargs.setdefault("timer", ManualTimer())
    return CrossGraphOptimization(below, max_concurrency_cgo=limit, **kwargs)


@pytest.mark.claim("nas", 74)
@pytest.mark.parametrize(("devices", "trials"), [(4, 1), (2, 2), (1, 3)])
def test_three_models_are_as_many_trials_as_devices_demand(
    below: Waiting, devices: int, trials: int
) -> None:
    engine = merging(below, 4, devices=devices)

    engine.submit_models(*models())
    engine._stop_waiting()
    for trial in below.trials:  # it grows meanwhile
        below.end(trial)

    assert len(below.trials) == trials
    assert all(one.status is ModelStatus.Trained for one in engine.list_models())


@pytest.mark.claim("nas", 75)
def test_metrics_of_a_merged_trial_reach_their_models_in_order(below: Waiting) -> None:
    engine = merging(below)
    engine.submit_models(*models())
    (trial,) = below.trials

    below.dispatch_model_event(IntermediateMetricEvent(trial, [0.1, 0.2, 0.3]))
    below.dispatch_model_event(FinalMetricEvent(trial, [0.4, 0.5, 0.6]))
    below.end(trial)

    submitted = engine.list_models(ModelStatus.Trained)
    assert [one.metrics.intermediates for one in submitted] == [[0.1], [0.2], [0.3]]
    assert [one.metric for one in submitted] == [0.4, 0.5, 0.6]


@pytest.mark.claim("nas", 75)
def test_metrics_of_another_number_are_refused(below: Waiting) -> None:
    merging(below).submit_models(*models())

    with pytest.raises(ValueError, match="must report a list of 3 metrics"):
        below.dispatch_model_event(FinalMetricEvent(below.trials[0], [0.4]))


@pytest.mark.claim("nas", 76)
def test_models_of_a_failed_trial_are_trained_alone() -> None:
    engine = merging(SequentialExecutionEngine(continue_on_failure=True))
    submitted = models(GOOD[0], BAD, GOOD[1])

    engine.submit_models(*submitted)
    engine.wait_models()

    assert [one.status for one in submitted] == [
        *(ModelStatus.Trained, ModelStatus.Failed, ModelStatus.Trained)
    ]
    assert [one.metric is None for one in submitted] == [False, True, False]


def test_strategy_searches_in_merged_trials() -> None:
    below = SequentialExecutionEngine()
    engine, strategy = merging(below, 2), GridSearch()

    strategy(space(*GOOD[:2]), engine)
    engine.wait_models()

    assert len(below.list_models()) == 1
    assert len(list(strategy.list_models())) == 2


def test_models_wait_until_a_trial_is_full(below: Waiting) -> None:
    engine = merging(below)
    first, second, third = models()

    engine.submit_models(first, second)
    waiting = len(below.trials)
    engine.submit_models(third)

    assert (waiting, len(below.trials)) == (0, 1)


def test_oldest_model_waits_for_the_time_of_the_configuration(below: Waiting) -> None:
    timer = ManualTimer()
    engine = merging(below, batch_waiting_time=7, timer=timer)
    engine.submit_models(models()[0])

    ((seconds, action),) = timer.started
    action()

    assert seconds == 7
    assert len(below.trials) == 1
    assert timer.cancelled == 1


def test_a_wait_without_models_does_not_hurry_later_ones(below: Waiting) -> None:
    engine = merging(below, 2)

    engine.wait_models()
    engine.submit_models(models()[0])

    assert below.trials == []


def test_models_of_different_evaluators_are_not_merged(below: Waiting) -> None:
    accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=4)
    longer = Lightning(
        MultiModelLightningModule(nn.CrossEntropyLoss(), accuracy),
        MultiModelTrainer(max_epochs=3, **QUIET),
        loader(16),
    )
    engine = merging(below, 2, devices=4)

    engine.submit_models(models()[0], space(trained_by=longer).default())
    engine._stop_waiting()

    assert len(below.trials) == 2


def test_devices_are_free_again_at_the_end_of_a_trial(below: Waiting) -> None:
    engine = merging(below)
    engine.submit_models(*models())
    busy = engine.idle_worker_available()

    below.end(below.trials[0])

    assert (busy, engine.idle_worker_available()) == (False, True)


def test_interrupted_trial_interrupts_its_models(below: Waiting) -> None:
    engine = merging(below)
    engine.submit_models(*models())

    below.end(below.trials[0], ModelStatus.Interrupted)

    assert len(engine.list_models(ModelStatus.Interrupted)) == 3


def test_models_of_other_formats_are_refused(below: Waiting) -> None:
    raw = RawFormatModelSpace(OperationMutator("first", [], label="m"))

    with pytest.raises(TypeError, match="needs models in the graph format, got RawFormat"):
        merging(below).submit_models(raw)


def test_models_that_are_not_frozen_are_refused(below: Waiting) -> None:
    engine = merging(below)
    (evaluated, *_) = models()
    evaluated.status = ModelStatus.Trained

    for model in (space(), evaluated):
        with pytest.raises(RuntimeError, match="must be frozen, its status is"):
            engine.submit_models(models()[0], model)

    assert engine.list_models() == []


def test_evaluators_of_one_model_are_refused(below: Waiting) -> None:
    single = Classification(train_dataloaders=loader(), num_classes=4, max_epochs=1, **QUIET)

    with pytest.raises(TypeError, match="needs a Lightning evaluator of a MultiModelLightning"):
        merging(below).submit_models(space(trained_by=single).default())


def test_merged_models_cannot_be_stopped(below: Waiting) -> None:
    engine = merging(below)

    assert engine.can_stop_models() is False
    with pytest.raises(RuntimeError, match="cannot be stopped, got 0"):
        engine.stop_models()


def test_shutdown_cancels_the_timer(below: Waiting) -> None:
    timer = ManualTimer()
    engine = merging(below, timer=timer)
    engine.submit_models(models()[0])

    engine.shutdown()

    assert timer.cancelled == 1


def test_metrics_of_an_attempt_that_was_lost_are_removed_from_each_model() -> None:
    trials = InMemoryTrials()
    engine = merging(TrainingServiceExecutionEngine(trials), 2)
    submitted = models(*GOOD[:2])

    engine.submit_models(*submitted)
    (key,) = trials.log.parameters
    trials.log.append(CandidateMetric(key, [0.1, 0.2], is_final=False), CandidateLost(key))
    trials.log.append(CandidateMetric(key, [0.3, 0.4], is_final=False))
    trials.log.finish(key, [0.5, 0.6])
    engine.wait_models()
    engine.shutdown()

    assert [one.metrics.intermediates for one in submitted] == [[0.3], [0.4]]
    assert [one.metric for one in submitted] == [0.5, 0.6]


def test_models_that_wait_when_the_experiment_is_stopped_are_interrupted() -> None:
    trials = InMemoryTrials()
    engine = merging(TrainingServiceExecutionEngine(trials), 2)
    submitted = models()

    engine.submit_models(*submitted)
    trials.log.append(PlatformClosed("it was stopped", is_final=True))
    engine.wait_models()
    engine.shutdown()

    assert len(trials.log.parameters) == 1
    assert {one.status for one in submitted} == {ModelStatus.Interrupted}


def test_report_that_is_refused_ends_the_wait_with_its_error() -> None:
    trials = InMemoryTrials()
    engine = merging(TrainingServiceExecutionEngine(trials), 2)

    engine.submit_models(*models(*GOOD[:2]))
    (key,) = trials.log.parameters
    trials.log.finish(key, 0.5)

    with pytest.raises(RuntimeError, match=r"must report a list of 2 metrics, got 0\.5"):
        engine.wait_models()
    engine.shutdown()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"max_concurrency_cgo": 0}, "max_concurrency_cgo must be >= 1, got 0"),
        ({"max_concurrency_cgo": 1, "devices": 0}, "devices must be >= 1, got 0"),
        ({"max_concurrency_cgo": 1, "batch_waiting_time": -1}, "batch_waiting_time must be >= 0"),
    ],
)
def test_numbers_out_of_range_are_refused(arguments: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        CrossGraphOptimization(**arguments)
