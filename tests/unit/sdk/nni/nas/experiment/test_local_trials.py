import pytest

from nni.experiment.errors import NotFoundError
from nni.nas.experiment.local_trials import LocalTrials
from nni.nas.space import ExecutableModelSpace, ModelStatus
from tests.support.architecture_search import frozen


def evaluated(value: int, metric: float | None, status: ModelStatus) -> ExecutableModelSpace:
    model = frozen(value)
    model.metrics.add_intermediate(0.5)
    if metric is not None:
        model.metrics.final = metric
    model.status = status
    return model


MODELS = [
    evaluated(3, 0.75, ModelStatus.Trained),
    evaluated(4, None, ModelStatus.Failed),
    evaluated(5, None, ModelStatus.Training),
]


@pytest.fixture
def trials() -> LocalTrials:
    return LocalTrials(lambda: MODELS, lambda: "RUNNING", "/root/id")


def test_each_model_is_a_trial_whose_id_is_its_number(trials: LocalTrials) -> None:
    jobs = trials.list_trial_jobs()

    assert [(job.trialJobId, job.status) for job in jobs] == [
        ("0", "SUCCEEDED"),
        ("1", "FAILED"),
        ("2", "RUNNING"),
    ]
    assert jobs[0].hyperParameters[0].parameters == {"a": 3}
    assert [one.data for one in jobs[0].finalMetricData] == [0.75]
    assert jobs[1].finalMetricData == []
    assert jobs[0].logPath == "/root/id"


def test_every_status_of_a_model_has_a_state() -> None:
    models = [evaluated(1, None, status) for status in ModelStatus]

    jobs = LocalTrials(lambda: models, lambda: "RUNNING", "").list_trial_jobs()

    assert len(jobs) == len(models)


def test_trials_are_counted_by_state(trials: LocalTrials) -> None:
    assert trials.get_job_statistics() == {"SUCCEEDED": 1, "FAILED": 1, "RUNNING": 1}
    assert trials.get_status() == "RUNNING"


def test_one_trial_is_found_by_its_id(trials: LocalTrials) -> None:
    assert trials.get_trial_job("1").status == "FAILED"
    with pytest.raises(NotFoundError, match="trial '7' does not exist"):
        trials.get_trial_job("7")


def test_metrics_are_in_the_order_of_their_reports(trials: LocalTrials) -> None:
    metrics = trials.get_job_metrics()

    assert [(one.type, one.data) for one in metrics["0"]] == [("PERIODICAL", 0.5), ("FINAL", 0.75)]
    assert list(trials.get_job_metrics("1")) == ["1"]


def test_results_are_those_of_models_with_a_metric(trials: LocalTrials) -> None:
    (result,) = trials.export_data()

    assert (result.parameter, result.value, result.trialJobId) == ({"a": 3}, 0.75, "0")


def test_limits_of_a_search_in_this_process_are_not_changed(trials: LocalTrials) -> None:
    trials.update_trial_concurrency(1)

    with pytest.raises(ValueError, match="must be 1 with the sequential engine"):
        trials.update_trial_concurrency(2)
    with pytest.raises(RuntimeError, match=r"set config\.max_trial_number, and call resume"):
        trials.update_max_trial_number(5)
    with pytest.raises(RuntimeError, match=r"set config\.max_experiment_duration"):
        trials.update_max_experiment_duration("1h")
    with pytest.raises(RuntimeError, match="interrupt the process instead"):
        trials.kill_trial_job("2")
