import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nni.common.serializer.pickles import as_text, pickled
from nni.mutable import Categorical
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.execution import TrainingServiceExecutionEngine
from nni.nas.execution.candidate import parameters_of
from nni.nas.execution.trial_platform import (
    CandidateAdded,
    CandidateLost,
    CandidateMetric,
    CandidateScheduled,
    PlatformClosed,
    PlatformLimits,
    PlatformOpened,
)
from nni.nas.execution.trial_signatures import TrialSigner
from nni.nas.space import ModelStatus, SimplifiedModelSpace
from nni.nas.strategy.middleware import FailureHandler
from tests.support.in_memory_trials import InMemoryLog, InMemoryTrials

TIMEOUT_S = 20.0


def network() -> object:
    return object()


def score(_model: object) -> None:
    """Do nothing: no trial runs here."""


def frozen(value: int) -> SimplifiedModelSpace:
    leaf = Categorical(list(range(10)), label="a")
    space = SimplifiedModelSpace(network, [], {}, {"a": leaf}, FunctionalEvaluator(score))
    return space.freeze({"a": value})


@contextmanager
def engine_on(
    trials: InMemoryTrials,
    concurrency: int = 2,
    max_model_count: int | None = None,
    signer: TrialSigner | None = None,
) -> Iterator[TrainingServiceExecutionEngine]:
    engine = TrainingServiceExecutionEngine(trials, concurrency, max_model_count, signer=signer)
    try:
        yield engine
    finally:
        engine.shutdown()


def values_of(engine: TrainingServiceExecutionEngine) -> list[int]:
    return [model.sample["a"] for model in engine.list_models() if model.sample]


def test_reports_of_a_trial_become_metrics_of_its_model() -> None:
    trials, model = InMemoryTrials(), frozen(3)

    with engine_on(trials) as engine:
        engine.submit_models(model)
        (key,) = trials.log.parameters
        trials.log.append(CandidateMetric(key, 0.5, is_final=False))
        trials.log.finish(key, 0.75)
        engine.wait_models(model)

    assert model.status is ModelStatus.Trained
    assert (model.metrics.intermediates, model.metric) == ([0.5], 0.75)


def test_metrics_of_a_lost_attempt_are_removed() -> None:
    trials, model = InMemoryTrials(), frozen(3)

    with engine_on(trials) as engine:
        engine.submit_models(model)
        (key,) = trials.log.parameters
        trials.log.append(CandidateMetric(key, 0.1, is_final=False), CandidateLost(key))
        trials.log.append(CandidateMetric(key, 0.5, is_final=False))
        trials.log.finish(key, 0.75)
        engine.wait_models(model)

    assert (model.metrics.intermediates, model.metric) == ([0.5], 0.75)


def test_trial_that_an_earlier_process_added_is_taken_over_before_it_is_scheduled() -> None:
    log, model = InMemoryLog(), frozen(3)
    log.append(CandidateAdded("old-0", parameters_of(frozen(3))))

    with engine_on(InMemoryTrials(log)) as engine:
        engine.load_state_dict({"experiment_id": "experiment"})
        engine.submit_models(model)
        log.append(CandidateScheduled("old-0", "old-0"))
        log.finish("old-0", 1.0)
        engine.wait_models(model)

        assert values_of(engine) == [3]

    assert (log.parameters, model.metric) == ({}, 1.0)


def test_failed_trial_is_a_failed_model() -> None:
    trials, model = InMemoryTrials(), frozen(3)

    with engine_on(trials) as engine:
        engine.submit_models(model)
        trials.log.finish(next(iter(trials.log.parameters)), succeeded=False)
        engine.wait_models()

    assert model.status is ModelStatus.Failed


def test_stopped_model_is_interrupted() -> None:
    trials, model = InMemoryTrials(), frozen(3)

    with engine_on(trials) as engine:
        engine.submit_models(model)
        assert engine.wait_until(lambda: bool(trials.log.parameters), TIMEOUT_S)
        engine.stop_models(model)
        engine.wait_models(model)

    assert engine.can_stop_models()
    assert trials.log.killed == list(trials.log.parameters)
    assert model.status is ModelStatus.Interrupted


def test_worker_is_idle_while_fewer_models_run_than_the_concurrency() -> None:
    trials = InMemoryTrials()

    with engine_on(trials, concurrency=2) as engine:
        engine.submit_models(frozen(1))
        one = engine.idle_worker_available()
        engine.submit_models(frozen(2))
        two = engine.idle_worker_available()
        trials.log.finish(next(iter(trials.log.parameters)), 1.0)

        assert engine.wait_until(engine.idle_worker_available, TIMEOUT_S)

    assert (one, two) == (True, False)


def test_budget_ends_with_the_number_of_models() -> None:
    trials = InMemoryTrials()

    with engine_on(trials, max_model_count=1) as engine:
        before = engine.budget_available()
        engine.submit_models(frozen(1))
        after = engine.budget_available()

    assert (before, after) == (True, False)


def test_end_of_the_experiment_ends_budget_and_running_models() -> None:
    trials, model = InMemoryTrials(), frozen(1)

    with engine_on(trials) as engine:
        engine.submit_models(model)
        trials.log.append(PlatformClosed("STOPPED", is_final=True))
        engine.wait_models()

        assert not engine.budget_available()
        with pytest.raises(RuntimeError, match="takes no more models: STOPPED"):
            engine.submit_models(frozen(2))

    assert model.status is ModelStatus.Interrupted


def test_experiment_without_budget_lets_its_models_end() -> None:
    trials, model = InMemoryTrials(), frozen(1)

    with engine_on(trials) as engine:
        engine.submit_models(model)
        trials.log.append(PlatformClosed("NO_MORE_TRIAL", is_final=False))
        assert engine.wait_until(lambda: not engine.budget_available(), TIMEOUT_S)
        trials.log.finish(next(iter(trials.log.parameters)), 1.0)
        engine.wait_models()

    assert model.status is ModelStatus.Trained


def test_model_that_cannot_be_added_has_failed() -> None:
    trials, model = InMemoryTrials(), frozen(1)
    trials.broken = OSError("no room")

    with engine_on(trials) as engine:
        with pytest.raises(OSError, match="no room"):
            engine.submit_models(model)
        engine.wait_models()

    assert model.status is ModelStatus.Failed


def test_error_of_a_callback_ends_the_search() -> None:
    trials = InMemoryTrials()

    def fail(_event: object) -> None:
        raise LookupError("callback")

    with engine_on(trials) as engine:
        engine.register_model_event_callback("final_metric", fail)
        engine.submit_models(frozen(1))
        trials.log.finish(next(iter(trials.log.parameters)), 1.0)

        with pytest.raises(RuntimeError, match="the search has failed"):
            engine.wait_models()


def test_model_that_is_not_frozen_is_refused() -> None:
    model = frozen(1)
    model.status = ModelStatus.Trained

    with engine_on(InMemoryTrials()) as engine, pytest.raises(RuntimeError, match="must be frozen"):
        engine.submit_models(model)


@pytest.mark.parametrize(("concurrency", "limit"), [(0, None), (1, -1)])
def test_numbers_that_are_too_small_are_refused(concurrency: int, limit: int | None) -> None:
    with pytest.raises(ValueError, match="must be >= "):
        TrainingServiceExecutionEngine(InMemoryTrials(), concurrency, limit)


def stopped_search(log: InMemoryLog, *values: int) -> dict[str, object]:
    """Submit models from an engine that ends before they do; return its state."""
    with engine_on(InMemoryTrials(log), concurrency=len(values)) as engine:
        engine.submit_models(*map(frozen, values))
        return engine.state_dict()


def test_resubmitted_model_gets_the_trial_that_an_earlier_process_has_started() -> None:
    log = InMemoryLog()
    state = stopped_search(log, 1, 2)
    first, second = log.parameters
    log.finish(first, 1.0)

    with engine_on(InMemoryTrials(log), max_model_count=2) as engine:
        engine.load_state_dict(state)
        engine.start()
        models = [frozen(1), frozen(2)]
        engine.submit_models(*models)
        log.finish(second, 2.0)
        engine.wait_models()

        assert not engine.budget_available()
    assert [model.metric for model in models] == [1.0, 2.0]
    assert list(log.parameters) == [first, second]


def test_model_that_finds_the_budget_spent_by_an_earlier_process_is_interrupted() -> None:
    log, other = InMemoryLog(), frozen(9)
    state = stopped_search(log, 1)

    with engine_on(InMemoryTrials(log), max_model_count=1) as engine:
        engine.load_state_dict(state)
        engine.start()
        engine.submit_models(other)
        log.finish(next(iter(log.parameters)), 1.0)
        engine.wait_models()

        assert not engine.budget_available()
        assert values_of(engine) == [1]
    assert other.status is ModelStatus.Interrupted


def test_later_engine_counts_every_model_once() -> None:
    log = InMemoryLog()
    counted, missed, running = frozen(1), frozen(2), frozen(3)
    with engine_on(InMemoryTrials(log), concurrency=3) as first:
        first.submit_models(counted, missed, running)
        keys = list(log.parameters)
        log.finish(keys[0], 1.0)
        first.wait_models(counted)
        state = first.state_dict()
    log.finish(keys[1], 2.0)

    trials = InMemoryTrials(log)
    with engine_on(trials, concurrency=3, max_model_count=4) as engine:
        ended: list[int] = []
        engine.register_model_event_callback(
            "training_end", lambda event: ended.append(event.model.sample["a"])
        )
        engine.load_state_dict(state)
        engine.restore_models([counted])
        engine.start()
        engine.submit_models(frozen(4))
        log.finish(keys[2], 3.0)
        log.finish(list(log.parameters)[3], 4.0)
        engine.wait_models()

        assert sorted(ended) == [2, 3, 4]
        assert values_of(engine) == [2, 3, 4]
        assert not engine.budget_available()
    assert trials.opened == ["experiment"]


def test_held_trials_are_counted_although_the_experiment_ended_before_their_models_came() -> None:
    log = InMemoryLog()
    state = stopped_search(log, 1, 2)
    first, second = log.parameters

    with engine_on(InMemoryTrials(log), max_model_count=2) as engine:
        engine.load_state_dict(state)
        engine.start()
        log.finish(first, 1.0)
        log.finish(second, 2.0)
        log.append(PlatformClosed("DONE", is_final=True))
        assert engine.wait_until(lambda: not engine.budget_available(), TIMEOUT_S)
        engine.wait_models()

        found = {model.metric: model.status for model in engine.list_models()}
    assert found == {1.0: ModelStatus.Trained, 2.0: ModelStatus.Trained}


def test_events_that_a_waiting_thread_still_handles_are_counted_at_the_end() -> None:
    log = InMemoryLog()
    state = stopped_search(log, 1, 2)
    first, second = log.parameters

    def end_meanwhile(_event: object) -> None:
        """Have the thread of the events read all the rest while this thread handles one."""
        if log.events[-1] == PlatformClosed("DONE", is_final=True):
            return
        log.finish(second, 2.0)
        log.append(PlatformClosed("DONE", is_final=True))
        next(one for one in threading.enumerate() if one.name == "nas trials").join(TIMEOUT_S)

    with engine_on(InMemoryTrials(log), max_model_count=2) as engine:
        engine.register_model_event_callback("final_metric", end_meanwhile)
        engine.load_state_dict(state)
        log.finish(first, 1.0)  # before the engine is opened: read at once, and held
        engine.start()
        engine.wait_models()

        found = {model.metric: model.status for model in engine.list_models()}
    assert found == {1.0: ModelStatus.Trained, 2.0: ModelStatus.Trained}


def test_platform_is_opened_once() -> None:
    trials = InMemoryTrials()

    with engine_on(trials) as engine:
        engine.start()
        engine.budget_available()

    assert trials.opened == [None]
    assert engine.state_dict() == {"experiment_id": "experiment"}


def test_engine_that_was_shut_down_opens_nothing() -> None:
    trials = InMemoryTrials()
    engine = TrainingServiceExecutionEngine(trials)

    engine.shutdown()

    assert not engine.budget_available()
    assert trials.opened == []


def test_resumed_experiment_that_takes_trials_again_has_budget() -> None:
    log = InMemoryLog()
    log.append(PlatformClosed("DONE", is_final=True), PlatformOpened())

    with engine_on(InMemoryTrials(log)) as engine:
        engine.load_state_dict({"experiment_id": "old"})
        engine.start()

        assert engine.budget_available()


def test_resumed_experiment_that_is_over_takes_no_model() -> None:
    log = InMemoryLog()
    log.append(PlatformOpened(), PlatformClosed("DONE", is_final=True))

    with engine_on(InMemoryTrials(log)) as engine:
        engine.load_state_dict({"experiment_id": "old"})
        engine.start()

        assert not engine.budget_available()
        with pytest.raises(RuntimeError, match="takes no more models: DONE"):
            engine.submit_models(frozen(1))


def test_limit_that_is_raised_during_the_search_reopens_the_budget() -> None:
    trials, model = InMemoryTrials(), frozen(3)

    with engine_on(trials) as engine:
        engine.submit_models(model)
        trials.log.append(PlatformClosed("NO_MORE_TRIAL", is_final=False))
        engine.wait_until(lambda: not engine.budget_available())
        trials.log.append(PlatformOpened())
        engine.wait_until(engine.budget_available)
        (key,) = trials.log.parameters
        trials.log.finish(key, 1.0)
        engine.wait_models(model)

    assert model.metric == 1.0
    assert not engine.budget_available()  # after the shutdown


def test_limits_that_a_user_changes_apply_to_the_search() -> None:
    trials = InMemoryTrials()

    with engine_on(trials, concurrency=1, max_model_count=1) as engine:
        engine.submit_models(frozen(1))
        assert not engine.budget_available()
        trials.log.append(PlatformLimits(max_trial_number=2, concurrency=2))
        engine.wait_until(engine.budget_available)

        assert engine.idle_worker_available()
        engine.submit_models(frozen(2))
        assert not engine.budget_available()


def test_limits_of_an_earlier_process_are_those_of_its_log() -> None:
    log = InMemoryLog()
    log.append(PlatformLimits(max_trial_number=0, concurrency=None))

    with engine_on(InMemoryTrials(log)) as engine:
        engine.load_state_dict({"experiment_id": "old"})
        engine.start()

        assert not engine.budget_available()


def test_failed_model_is_retried_by_a_middleware_and_listed_once() -> None:
    trials, model = InMemoryTrials(), frozen(3)

    with engine_on(trials) as engine:
        handler = FailureHandler(retry_patience=1)
        handler.set_engine(engine)
        handler.submit_models(model)
        (first,) = trials.log.parameters
        trials.log.finish(first, succeeded=False)
        engine.wait_until(lambda: len(trials.log.parameters) == 2)
        second = list(trials.log.parameters)[-1]
        trials.log.finish(second, 0.75)
        engine.wait_models()

        assert list(engine.list_models()) == [model]
        assert trials.log.parameters[second]["model"]["status"] == "frozen"
    assert (model.status, model.metric) == (ModelStatus.Trained, 0.75)


def test_retries_of_a_model_that_was_counted_are_not_reported_again() -> None:
    log, model = InMemoryLog(), frozen(3)
    with engine_on(InMemoryTrials(log)) as engine:
        handler = FailureHandler(retry_patience=1)
        handler.set_engine(engine)
        handler.submit_models(model)
        (first,) = log.parameters
        log.finish(first, succeeded=False)
        engine.wait_until(lambda: len(log.parameters) == 2)
        log.finish(list(log.parameters)[-1], 0.75)
        engine.wait_models()
        state = engine.state_dict()

    with engine_on(InMemoryTrials(log)) as resumed:
        resumed.load_state_dict(state)
        resumed.restore_models([model])
        resumed.start()
        resumed.wait_models()

        assert list(resumed.list_models()) == []


class Attack:
    """Object whose pickle creates a file where it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.path,)


def hostile(path: Path) -> dict[str, Any]:
    """Return parameters of a trial whose model creates a file when it is read."""
    pickle = as_text(pickled(Attack(path)))
    return {**parameters_of(frozen(7)), "model": {"__nni_type__": f"bytes:{pickle}"}}


def foreign_trials(log: InMemoryLog, path: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return trials that other callers may add: new ones, copies of signatures, other content."""
    (own,) = log.parameters.values()
    signature = {"signature": own["signature"]}
    return {
        "foreign-unsigned": hostile(path),
        "foreign-copied": {**hostile(path), **signature},
        "foreign-same": own,
        "foreign-number": {**hostile(path), "signature": 5},
    }


def add_foreign(log: InMemoryLog, path: Path) -> None:
    for key, parameters in foreign_trials(log, path).items():
        InMemoryTrials(log).add(key, parameters)
        log.finish(key, 9.0)


def test_model_of_a_trial_that_another_caller_has_added_is_not_read(tmp_path: Path) -> None:
    trials, model = InMemoryTrials(), frozen(3)

    with engine_on(trials, concurrency=1, signer=TrialSigner()) as engine:
        engine.submit_models(model)
        (key,) = trials.log.parameters
        add_foreign(trials.log, tmp_path / "attacked")
        busy = not engine.idle_worker_available()
        trials.log.finish(key, 1.0)
        engine.wait_models()
        listed = values_of(engine)

    assert not (tmp_path / "attacked").exists()
    assert (listed, model.metric, busy) == ([3], 1.0, True)


def test_resumed_search_reads_no_model_that_another_caller_has_added(tmp_path: Path) -> None:
    log, model = InMemoryLog(), frozen(3)
    with engine_on(InMemoryTrials(log), signer=TrialSigner()) as engine:
        engine.submit_models(model)
        state = engine.state_dict()
    (key,) = log.parameters
    add_foreign(log, tmp_path / "attacked")

    with engine_on(InMemoryTrials(log), signer=TrialSigner()) as engine:
        engine.load_state_dict(state)
        engine.start()
        log.finish(key, 1.0)
        engine.wait_models()
        listed = values_of(engine)

    assert not (tmp_path / "attacked").exists()
    assert listed == [3]


def test_search_without_the_secret_of_an_earlier_one_ignores_its_trials() -> None:
    log, model = InMemoryLog(), frozen(3)
    with engine_on(InMemoryTrials(log), signer=TrialSigner()) as engine:
        engine.submit_models(model)

    with engine_on(InMemoryTrials(log), signer=TrialSigner()) as engine:
        engine.load_state_dict({"experiment_id": "experiment"})
        engine.start()

        assert values_of(engine) == []
