"""Queries and changes of an experiment, against a manager in this process."""

import io
from collections.abc import Iterator
from datetime import timedelta

import pytest

from nni.experiment import Experiment
from nni.experiment.errors import NotFoundError, WrongStateError
from nni.experiment.progress import PlainDisplay
from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import config_pb2, experiment_pb2
from nni_proto.trial.v1 import trial_pb2, trial_service_pb2
from nni_wire.values import from_value, to_value
from tests.support.in_memory_manager import InMemoryManager


@pytest.fixture
def experiment(manager: InMemoryManager) -> Iterator[Experiment]:
    manager.add_experiment("abcd1234", trial_counts={"TRIAL_STATE_SUCCEEDED": 1})
    manager.add_trial("abcd1234", "done0", result=0.75)
    manager.add_trial("abcd1234", "live0", state=trial_pb2.TRIAL_STATE_RUNNING)
    manager.documents["/api/v1/nni/version"] = {"experimentId": "abcd1234", "grpc": manager.grpc}
    connected = Experiment.connect(int(manager.http.rpartition(":")[2]))
    yield connected
    connected.stop()


def test_trials_are_listed_in_order_of_creation(experiment: Experiment) -> None:
    assert [job.trialJobId for job in experiment.list_trial_jobs()] == ["done0", "live0"]
    assert experiment.get_trial_job("live0").status == "RUNNING"
    assert experiment.get_job_statistics() == {"SUCCEEDED": 1}


def test_unknown_trial_is_not_found(experiment: Experiment) -> None:
    with pytest.raises(NotFoundError, match="nope0"):
        experiment.get_trial_job("nope0")


def test_export_has_the_trials_with_a_result(experiment: Experiment) -> None:
    (result,) = experiment.export_data()

    assert (result.trialJobId, result.parameter, result.value) == ("done0", {"x": 0}, 0.75)


def test_metrics_are_grouped_by_trial(experiment: Experiment, manager: InMemoryManager) -> None:
    manager.metrics["abcd1234"] = [
        trial_service_pb2.TrialMetric(
            trial_id=trial, metric=metric_pb2.Metric(sequence=number, value=to_value(number))
        )
        for number, trial in enumerate(["done0", "live0", "done0"])
    ]

    found = experiment.get_job_metrics()

    assert {trial: [one.data for one in data] for trial, data in found.items()} == {
        "done0": [0, 2],
        "live0": [1],
    }
    assert experiment.get_job_metrics("live0").keys() == {"live0"}


def test_profile_is_the_document_of_rest(experiment: Experiment, manager: InMemoryManager) -> None:
    manager.documents["/api/v1/nni/experiments/abcd1234/experiment"] = {"revision": 3}

    assert experiment.get_experiment_profile() == {"revision": 3}


@pytest.mark.parametrize(("value", "seconds"), [(90, 90), ("2h", 7200), (timedelta(minutes=1), 60)])
def test_duration_has_three_forms(
    value: float | str | timedelta, seconds: int, experiment: Experiment, manager: InMemoryManager
) -> None:
    experiment.update_max_experiment_duration(value)

    assert manager.known["abcd1234"].config.max_experiment_duration.seconds == seconds


def test_changes_reach_the_configuration(experiment: Experiment, manager: InMemoryManager) -> None:
    experiment.update_trial_concurrency(5)
    experiment.update_max_trial_number(50)
    experiment.update_search_space({"x": {"_type": "choice", "_value": [1]}})

    config = manager.known["abcd1234"].config
    assert (config.trial_concurrency, config.max_trial_number) == (5, 50)
    assert from_value(config.search_space) == {"x": {"_type": "choice", "_value": [1]}}


def test_limits_of_agents_are_changed(experiment: Experiment, manager: InMemoryManager) -> None:
    experiment.update_agent_limits(
        min_agents=0, idle_time=timedelta(minutes=2), remove=["max_agents"]
    )

    expected = config_pb2.AgentLimits(min_agents=0, removed=["maxAgents"])
    expected.idle_time.seconds = 120
    assert manager.agent_limits == {"abcd1234": expected}


def test_another_tuner_takes_over(experiment: Experiment, manager: InMemoryManager) -> None:
    experiment.update_tuner({"name": "TPE", "classArgs": {"optimize_mode": "minimize"}})

    tuner = manager.known["abcd1234"].config.tuner
    assert (tuner.name, from_value(tuner.class_args)) == ("TPE", {"optimize_mode": "minimize"})


def test_trial_is_added_and_killed(experiment: Experiment, manager: InMemoryManager) -> None:
    assert experiment.add_trial({"x": 9}) == 2
    experiment.kill_trial_job("live0")

    states = [trial.state for trial in manager.trials["abcd1234"]]
    assert states[1:] == [trial_pb2.TRIAL_STATE_USER_CANCELED, trial_pb2.TRIAL_STATE_WAITING]
    with pytest.raises(WrongStateError, match="over"):
        experiment.kill_trial_job("done0")


@pytest.mark.parametrize(
    ("state", "succeeded"),
    [
        (experiment_pb2.EXPERIMENT_STATE_DONE, True),
        (experiment_pb2.EXPERIMENT_STATE_ERROR, False),
    ],
)
def test_wait_ends_with_the_experiment(
    state: experiment_pb2.ExperimentState.ValueType,
    succeeded: bool,
    experiment: Experiment,
    manager: InMemoryManager,
) -> None:
    manager.on_wait = lambda: manager.change_state("abcd1234", state)

    assert experiment.wait_completion(PlainDisplay(io.StringIO())) is succeeded


def test_nothing_is_asked_before_the_start() -> None:
    experiment = Experiment("local")

    with pytest.raises(WrongStateError, match="has not been started"):
        _ = experiment.id
    with pytest.raises(WrongStateError, match="has not been started"):
        experiment.list_trial_jobs()
    with pytest.raises(WrongStateError, match="is not running"):
        experiment.get_experiment_profile()
    assert experiment.port is None
