"""Handles of explorations, on a manager in this process; `nnictl nas` tests the rest."""

from __future__ import annotations

import math

import pytest

from nni.experiment.client import ManagerClient
from nni.experiment.errors import NotFoundError
from nni.experiment.local_shape import running_endpoint
from nni.nas.execution.searched_architecture import architecture_result
from nni.nas.experiment.remote_exploration import (
    ExploredModel,
    RemoteExploration,
    explored_model,
    list_explorations,
    status_of,
)
from nni_proto.experiment.v1 import config_pb2, experiment_pb2
from tests.support.in_memory_manager import InMemoryManager


def test_concurrency_of_zero_is_a_pause_while_the_experiment_runs() -> None:
    config = config_pb2.ExperimentConfig(nas=config_pb2.NasConfig(strategy="Random"))
    states = [experiment_pb2.EXPERIMENT_STATE_RUNNING, experiment_pb2.EXPERIMENT_STATE_STOPPED]

    found = [status_of(experiment_pb2.Experiment(config=config, state=one)) for one in states]

    assert [one.state for one in found] == ["PAUSED", "STOPPED"]
    assert found[0].limit is None
    assert found[0].best is None


@pytest.mark.parametrize(
    ("metric", "value"),
    [(0.5, 0.5), ({"default": 2, "size": 1}, 2.0), (None, math.nan), (10**400, math.nan)],
)
def test_models_are_compared_by_their_default_metric(metric: object, value: float) -> None:
    assert ExploredModel("t", metric, {}).value == pytest.approx(value, nan_ok=True)


def test_model_of_a_one_shot_search_is_the_architecture_of_its_result() -> None:
    result = architecture_result({"default": 0.5, "size": 3}, {"width": 4})

    found = explored_model("t", result, {})

    assert found == ExploredModel("t", {"default": 0.5, "size": 3}, {"width": 4})


@pytest.mark.parametrize(
    ("metric", "sample"), [(0.5, {}), ({"default": 1, "architecture": 3}, {"width": 4})]
)
def test_results_of_other_models_stay_as_they_are(
    metric: object, sample: dict[str, object]
) -> None:
    assert explored_model("t", metric, sample) == ExploredModel("t", metric, sample)


def test_experiment_that_is_no_exploration_is_not_found(manager: InMemoryManager) -> None:
    manager.add_experiment("other123")

    with ManagerClient(running_endpoint()) as client:
        assert list_explorations(client) == []
        with pytest.raises(NotFoundError, match="is no exploration"):
            RemoteExploration("other123", client).status()
