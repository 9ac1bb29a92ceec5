import logging
from statistics import fmean

import pytest

from nni.errors import NoMoreTrialError
from nni.hpo import Tuner
from nni.hpo.base import DEFERRED
from nni.hpo.json_value import JsonValue
from nni.mutable import Categorical, CategoricalMultiple, ExpressionConstraint, Numerical, Sample
from nni.nas.space.raw import RawFormatModelSpace
from nni.nas.strategy import TPE, HPOTunerStrategy, TPEStrategy
from nni.nas.strategy.base import StrategyStatus
from nni.testing.strategies import SimulatedEngine, TableSpace
from tests.support.architecture_search import digits


class Recording(Tuner):
    """Tuner that proposes given configurations and records its calls."""

    def __init__(self, *proposals: JsonValue) -> None:
        self.proposals = list(proposals)
        self.calls: list[tuple[object, ...]] = []

    def update_search_space(self, search_space: JsonValue) -> None:
        self.calls.append(("space", search_space))

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> JsonValue:
        if not self.proposals:
            raise NoMoreTrialError
        return self.proposals.pop(0)

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        self.calls.append(("result", parameter_id, parameters, value))

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:
        self.calls.append(("end", parameter_id, success))


def test_tuner_receives_space_results_and_ends() -> None:
    tuner = Recording({"a": 1}, {"a": 2})
    engine = SimulatedEngine(lambda sample: 5.0 if sample["a"] == 1 else None)

    HPOTunerStrategy(tuner)(digits(3), engine)

    assert tuner.calls == [
        ("space", {"a": {"_type": "choice", "_value": [0, 1, 2]}}),
        ("result", 0, {"a": 1}, 5.0),
        ("end", 0, True),
        ("end", 1, False),
    ]


def test_search_ends_when_the_tuner_has_no_more() -> None:
    strategy, engine = HPOTunerStrategy(Recording({"a": 1})), SimulatedEngine(lambda _s: 1.0)

    strategy(digits(3), engine)

    assert strategy.status is StrategyStatus.Succeeded
    assert engine.samples == [{"a": 1}]


def test_invalid_proposals_end_as_failures_without_a_model() -> None:
    a = Categorical([1, 2], label="a")
    space = RawFormatModelSpace(TableSpace(a, ExpressionConstraint(a != 1, label="rule")))
    tuner, engine = Recording({"a": 1}, {"a": 2}), SimulatedEngine(lambda _sample: 1.0)

    HPOTunerStrategy(tuner)(space, engine)

    assert ("end", 0, False) in tuner.calls
    assert engine.samples == [{"a": 2}]


def test_search_ends_after_too_many_invalid_proposals() -> None:
    a = Categorical([1, 2], label="a")
    space = RawFormatModelSpace(TableSpace(a, ExpressionConstraint(a != 1, label="rule")))
    tuner = Recording(*({"a": 1} for _ in range(600)))

    HPOTunerStrategy(tuner)(space, SimulatedEngine(lambda _sample: 1.0))

    assert len(tuner.proposals) == 100


class Deferring(Recording):
    """Tuner that proposes its second configuration with the result of the first."""

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> JsonValue:
        if parameter_id == 0:
            return {"a": 0}
        self.start_later = kwargs["st_callback"]
        self.waiting = parameter_id
        if parameter_id > 1:
            raise NoMoreTrialError
        return DEFERRED

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        if parameter_id == 0:
            assert callable(self.start_later)
            self.start_later(1, {"a": 2})


def test_deferred_configurations_are_submitted_when_they_are_ready() -> None:
    engine = SimulatedEngine(lambda _sample: 1.0, concurrency=2)

    HPOTunerStrategy(Deferring())(digits(3), engine)

    assert engine.samples == [{"a": 0}, {"a": 2}]


def test_search_ends_when_a_tuner_waits_for_nothing() -> None:
    engine = SimulatedEngine(lambda _sample: None, concurrency=2)

    HPOTunerStrategy(Deferring())(digits(3), engine)

    assert engine.samples == [{"a": 0}]


def test_tuner_is_named_and_maximises() -> None:
    strategy = HPOTunerStrategy("Evolution")

    strategy(digits(40), SimulatedEngine(lambda sample: float(sample["a"]), 300))

    assert strategy.list_models()[0].metric == 39


def test_resumed_search_continues_the_ids_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tuner = Recording({"a": 1})
    strategy, engine = HPOTunerStrategy(tuner), SimulatedEngine(lambda _sample: 1.0)
    strategy.initialize(digits(3), engine)

    with caplog.at_level(logging.WARNING):
        strategy.load_state_dict({"next_id": 7})
    strategy.run()

    assert ("end", 7, True) in tuner.calls
    assert "resumes after 7 configurations, which Recording does not know" in caplog.text


def metric_of(sample: Sample) -> float:
    return (
        sample["depth"]
        + len(sample["inputs"])
        - 10 * abs(sample["rate"] - 0.3)
        + 2 * (sample["op"] is int)
    )


@pytest.mark.claim("nas", 47)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_tpe_improves_the_metric_when_higher_is_better(seed: int) -> None:
    space = RawFormatModelSpace(
        TableSpace(
            Categorical(list(range(8)), label="depth"),
            Categorical([int, float, str], label="op"),
            CategoricalMultiple(list(range(4)), n_chosen=None, label="inputs"),
            Numerical(0, 1, label="rate"),
        )
    )
    strategy, engine = TPE(seed=seed), SimulatedEngine(metric_of, 60)

    strategy(space, engine)

    metrics = [metric_of(sample) for sample in engine.samples]
    # A random model has 3.5 + 2 - 2.9 + 0.7 = 3.3 on average; the best has 13.
    assert fmean(metrics[-20:]) > fmean(metrics[:10]) + 3


def test_tpe_minimises_on_request() -> None:
    strategy = TPE(optimize_mode="minimize", seed=0)

    strategy(digits(40), SimulatedEngine(lambda sample: float(sample["a"]), 60))

    assert fmean(m.metric for m in strategy.list_models(sort=False)[-20:]) < 10


def test_old_name_of_tpe_is_the_same_class() -> None:
    assert TPEStrategy is TPE
