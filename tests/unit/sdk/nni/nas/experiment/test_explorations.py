"""Explorations on the side of the client."""

from __future__ import annotations

import pytest

from nni.experiment.errors import WrongStateError
from nni.nas.evaluator.pytorch import Lightning
from nni.nas.execution.candidate import parameters_of
from nni.nas.execution.searched_architecture import architecture_result
from nni.nas.execution.trial_platform import (
    CandidateAdded,
    CandidateEnded,
    CandidateMetric,
    CandidateScheduled,
    PlatformClosed,
)
from nni.nas.experiment.config import NasExperimentConfig
from nni.nas.experiment.explorations import (
    ExplorationEngine,
    ExplorationTrials,
    HostedStrategy,
    create_exploration,
    exploration_config,
)
from nni.nas.strategy import DARTS, Random
from nni.nas.strategy.oneshot.trial_search import SupernetSearch
from nni_wire.values import from_value
from tests.support.explored_space import widths
from tests.support.in_memory_trials import InMemoryTrials
from tests.support.supernet_trials import branches


def canonical(**fields: object) -> NasExperimentConfig:
    config = NasExperimentConfig("ts", "simplified", "local", **fields)
    return config.canonical(widths(), None, Random(seed=0))


def test_configuration_names_no_tuner_and_the_format() -> None:
    message = exploration_config(canonical(trial_concurrency=3, max_trial_number=7))

    assert not message.HasField("tuner")
    assert (message.trial_concurrency, message.max_trial_number) == (3, 7)
    assert message.nas.model_format == "simplified"
    assert message.trial_command.endswith("nni.nas.execution.training_service trial")


def test_configuration_has_the_network_for_the_page_if_it_is_known() -> None:
    graph = {"graphs": [{"name": "Net", "traced": True, "nodes": [], "edges": []}], "cut": False}

    message = exploration_config(canonical(), model_graph=graph)

    assert from_value(message.model_graph) == graph
    assert not exploration_config(canonical()).HasField("model_graph")


def test_strategy_that_cannot_travel_is_refused_before_anything_is_started() -> None:
    used = Random(seed=0)
    used._status = type(used.status)("failed")

    with pytest.raises(ValueError, match="must not have been used"):
        create_exploration(canonical(), widths(), used)


def test_models_are_added_by_the_strategy_of_the_service_only() -> None:
    trials = ExplorationTrials(canonical(), widths(), Random(seed=0))

    with pytest.raises(WrongStateError, match="execution_engine='ts'"):
        trials.add("k", {})


def test_models_of_the_service_are_those_of_the_strategy_as_the_client_sees_it() -> None:
    trials = InMemoryTrials()
    engine = ExplorationEngine(trials)
    strategy = HostedStrategy(Random(seed=0))
    strategy.initialize(widths(), engine)
    for width in (2, 5):
        key = f"k{width}"
        parameters = parameters_of(widths().freeze({"width": width}))
        trials.log.parameters[key] = parameters
        trials.log.append(
            CandidateAdded(key, parameters),
            CandidateScheduled(key, key),
            CandidateMetric(key, float(width), is_final=True),
            CandidateEnded(key, succeeded=True),
        )
    trials.log.append(PlatformClosed("DONE", is_final=True))

    strategy.run()

    assert [model.sample for model in strategy.list_models()] == [{"width": 5}, {"width": 2}]
    assert strategy.delegate.status == "empty"
    engine.shutdown()


def test_one_shot_search_of_the_service_becomes_the_model_of_its_architecture() -> None:
    trials = InMemoryTrials()
    engine = ExplorationEngine(trials)
    strategy = HostedStrategy(DARTS())
    strategy.initialize(branches(), engine)
    parameters = parameters_of(SupernetSearch.of(branches(), DARTS()))
    trials.log.parameters["k"] = parameters
    trials.log.append(
        CandidateAdded("k", parameters),
        CandidateScheduled("k", "k"),
        CandidateMetric("k", {"default": 0.25}, is_final=False),
        CandidateMetric("k", architecture_result(0.5, {"branch": "plain"}), is_final=True),
        CandidateEnded("k", succeeded=True),
        PlatformClosed("DONE", is_final=True),
    )

    strategy.run()

    (model,) = strategy.list_models()
    assert (model.sample, model.metric) == ({"branch": "plain"}, 0.5)
    assert model.metrics.intermediates == [0.25]
    assert isinstance(model.evaluator, Lightning)
    engine.shutdown()
