import pytest
from google.protobuf import timestamp_pb2

from nni.experiment.records import (
    experiment_metadata,
    metric_record,
    milliseconds,
    state_name,
    trial_counts,
    trial_job,
    trial_state_name,
)
from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import config_pb2, experiment_pb2
from nni_proto.trial.v1 import trial_pb2, trial_service_pb2
from nni_wire.values import to_value


def test_instants_are_milliseconds() -> None:
    assert milliseconds(timestamp_pb2.Timestamp(seconds=2, nanos=3_999_999)) == 2003


def test_states_have_their_documented_names() -> None:
    assert state_name(experiment_pb2.EXPERIMENT_STATE_NO_MORE_TRIAL) == "NO_MORE_TRIAL"
    assert trial_state_name(trial_pb2.TRIAL_STATE_USER_CANCELED) == "USER_CANCELED"


def test_metric_keeps_type_sequence_and_value() -> None:
    metric = metric_pb2.Metric(
        type=metric_pb2.METRIC_TYPE_PERIODICAL, sequence=4, value=to_value({"default": 0.5})
    )

    record = metric_record(
        trial_service_pb2.TrialMetric(trial_id="aBcDe", parameter_id=7, metric=metric)
    )

    assert (record.trialJobId, record.parameterId) == ("aBcDe", "7")
    assert (record.type, record.sequence, record.data) == ("PERIODICAL", 4, {"default": 0.5})


def test_trial_that_waits_has_no_times_and_no_result() -> None:
    job = trial_job(trial_pb2.Trial(id="aBcDe", state=trial_pb2.TRIAL_STATE_WAITING))

    assert (job.status, job.startTime, job.endTime) == ("WAITING", None, None)
    assert (job.finalMetricData, job.stderrPath) == ([], "")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (trial_pb2.PARAMETER_SOURCE_ALGORITHM, "algorithm"),
        (trial_pb2.PARAMETER_SOURCE_CUSTOMIZED, "customized"),
    ],
)
def test_source_of_parameters_is_named(
    source: trial_pb2.ParameterSource.ValueType, expected: str
) -> None:
    trial = trial_pb2.Trial(
        id="aBcDe", source=source, parameters=to_value({"x": 1}), directory="/trials/aBcDe"
    )
    trial.started_at.FromSeconds(5)

    job = trial_job(trial)

    assert job.hyperParameters[0].parameter_source == expected
    assert job.hyperParameters[0].parameters == {"x": 1}
    assert (job.startTime, job.stderrPath) == (5000, "/trials/aBcDe/stderr")


@pytest.mark.parametrize(
    ("provenance", "tuner"),
    [
        ({"algorithm": "Portfolio", "tuner": "TPE"}, "TPE"),
        ({"algorithm": "Random", "seed": 1}, "Random"),
        ("text", ""),
        (None, ""),
    ],
)
def test_tuner_of_a_trial_is_the_one_that_proposed_it(provenance: object, tuner: str) -> None:
    trial = trial_pb2.Trial(id="aBcDe")
    if provenance is not None:
        trial.provenance.CopyFrom(to_value(provenance))

    assert trial_job(trial).tuner == tuner


def test_counts_of_zero_are_left_out() -> None:
    counts = {"TRIAL_STATE_RUNNING": 2, "TRIAL_STATE_FAILED": 0}

    assert trial_counts(experiment_pb2.Experiment(trial_counts=counts)) == {"RUNNING": 2}


def test_metadata_without_a_value_is_not_available() -> None:
    services = [config_pb2.TrainingServiceConfig(platform="local")]
    experiment = experiment_pb2.Experiment(
        id="abcd1234",
        state=experiment_pb2.EXPERIMENT_STATE_STOPPED,
        config=config_pb2.ExperimentConfig(training_services=services, tags={"team": "a"}),
    )

    assert experiment_metadata(experiment) == {
        "id": "abcd1234",
        "name": "N/A",
        "status": "STOPPED",
        "port": "N/A",
        "platform": "local",
        "startTime": "N/A",
        "endTime": "N/A",
        "logDir": "",
        "prefixUrl": None,
        "tag": {"team": "a"},
    }
