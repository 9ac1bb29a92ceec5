import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import nni
from nni.nas.execution import ModelEvent, SequentialExecutionEngine, TrainingEndEvent
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.space.status import ModelStatus
from nni.nas.strategy.middleware import Chain, FailureHandler, MedianStop
from tests.support.architecture_search import Submitting, digits


class Evaluating:
    """Evaluator that calls a function of the architecture."""

    def __init__(self, function: Callable[[Any], None]) -> None:
        self.function = function

    def evaluate(self, model: Any) -> None:
        self.function(model)


def model_of(function: Callable[[Any], None], value: int = 1) -> ExecutableModelSpace:
    space = digits(10)
    space.evaluator = Evaluating(function)
    return space.freeze({"a": value})


def report(model: dict[str, int]) -> None:
    nni.report_intermediate_result(model["a"] / 2)
    nni.report_final_result(model["a"])


def fail(_model: object) -> None:
    raise OSError("disk")


def interrupt(_model: object) -> None:
    raise KeyboardInterrupt


def test_reports_of_the_trial_api_become_metrics() -> None:
    engine, model = SequentialExecutionEngine(), model_of(report, 3)

    engine.submit_models(model)

    assert model.status is ModelStatus.Trained
    assert (model.metrics.intermediates, model.metric) == ([1.5], 3)
    assert engine.list_models() == [model]


def test_current_parameter_is_the_model() -> None:
    seen: list[object] = []
    model = model_of(lambda _network: seen.append(nni.get_next_parameter()))

    SequentialExecutionEngine().submit_models(model)

    assert seen == [model]


def test_unfrozen_and_completed_models_are_refused() -> None:
    engine, model = SequentialExecutionEngine(), model_of(report)

    with pytest.raises(RuntimeError, match="must be frozen, its status is initialized"):
        engine.submit_models(digits(3))
    engine.submit_models(model)
    with pytest.raises(RuntimeError, match="must not be evaluated already, its status is trained"):
        engine.submit_models(model)


def test_failure_is_raised_after_the_model_has_failed() -> None:
    engine, model = SequentialExecutionEngine(), model_of(fail)

    with pytest.raises(OSError, match="disk"):
        engine.submit_models(model)

    assert model.status is ModelStatus.Failed
    assert engine.idle_worker_available()


def test_failure_is_logged_and_the_next_model_evaluated_on_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine, models = (
        SequentialExecutionEngine(continue_on_failure=True),
        (
            model_of(fail),
            model_of(report),
        ),
    )

    with caplog.at_level(logging.ERROR):
        engine.submit_models(*models)

    assert [model.status for model in models] == [ModelStatus.Failed, ModelStatus.Trained]
    assert "evaluation of a model failed" in caplog.text


def test_interrupt_ends_this_model_and_those_that_wait() -> None:
    engine = SequentialExecutionEngine(continue_on_failure=True)
    models = model_of(interrupt), model_of(report)

    with pytest.raises(KeyboardInterrupt):
        engine.submit_models(*models)

    assert [model.status for model in models] == [ModelStatus.Interrupted] * 2
    engine.wait_models()


def test_budget_ends_with_the_number_of_models(caplog: pytest.LogCaptureFixture) -> None:
    engine = SequentialExecutionEngine(max_model_count=1)

    engine.submit_models(model_of(report))
    available = engine.budget_available()
    with caplog.at_level(logging.ERROR):
        engine.submit_models(late := model_of(report))

    assert not available
    assert late.status is ModelStatus.Trained
    assert "a model was submitted although the budget has ended" in caplog.text


def ticking(*seconds: float) -> Callable[[], float]:
    times: Iterator[float] = iter(seconds)
    return lambda: next(times)


def test_budget_ends_with_the_time_of_evaluations() -> None:
    engine = SequentialExecutionEngine(max_duration=5, clock=ticking(0, 3, 100, 103))

    engine.submit_models(model_of(report))
    assert engine.budget_available()
    engine.submit_models(model_of(report))

    assert not engine.budget_available()
    assert engine.state_dict() == {"model_count": 2, "total_duration": 6}


def test_spent_budget_survives_a_resume() -> None:
    engine = SequentialExecutionEngine(max_model_count=5)

    engine.load_state_dict({"model_count": 5, "total_duration": 9.5})

    assert not engine.budget_available()
    assert engine.state_dict() == {"model_count": 5, "total_duration": 9.5}


@pytest.mark.parametrize("limits", [{"max_model_count": -1}, {"max_duration": -1}])
def test_limits_are_not_negative(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(limits))} must be >= 0"):
        SequentialExecutionEngine(**limits)


def test_model_submitted_by_a_callback_waits_for_the_end_of_the_present_one() -> None:
    engine, second = SequentialExecutionEngine(), model_of(report, 2)
    ended: list[ModelEvent] = []

    def submit_once(event: TrainingEndEvent) -> None:
        ended.append(event)
        if event.model is not second:
            engine.submit_models(second)
            assert second.status is ModelStatus.Frozen

    engine.register_model_event_callback("training_end", submit_once)
    engine.submit_models(model_of(report))

    assert second.status is ModelStatus.Trained
    assert len(ended) == 2


@pytest.mark.claim("nas", 49)
def test_retry_patience_of_two_runs_a_failing_model_three_times() -> None:
    space, runs = digits(3), []

    def failing(model: object) -> None:
        runs.append(model)
        raise OSError("disk")

    space.evaluator = Evaluating(failing)
    chain = Chain(Submitting(1), FailureHandler(retry_patience=2))

    with pytest.raises(OSError, match="disk"):
        chain(space, SequentialExecutionEngine())

    assert len(runs) == 3


def test_stopped_model_ends_at_its_next_report() -> None:
    space, steps = digits(10), []

    def train(model: dict[str, int]) -> None:
        for _ in range(3):
            steps.append(model["a"])
            nni.report_intermediate_result(model["a"])
        nni.report_final_result(model["a"])

    space.evaluator = Evaluating(train)
    chain = Chain(Submitting(5, 6, 7, 1), MedianStop())

    chain(space, SequentialExecutionEngine())

    assert steps == [5, 5, 5, 6, 6, 6, 7, 7, 7, 1]
    stopped = chain.list_models(sort=False)[-1]
    assert (stopped.status, stopped.metric) == (ModelStatus.Interrupted, 1)


def test_engine_that_was_shut_down_takes_no_models() -> None:
    engine = SequentialExecutionEngine()

    engine.shutdown()

    assert not engine.budget_available()
    with pytest.raises(RuntimeError, match="the engine was shut down"):
        engine.submit_models(model_of(report))
