"""REST records of experiments."""

from __future__ import annotations

from pathlib import Path

from nni_proto.experiment.v1 import experiment_pb2, experiment_service_pb2
from nni_wire.values import to_value
from svc_manager.web.records import experiments as records
from svc_manager.web.records.schemas import COMPONENTS
from tests.unit.services.manager.web.conftest import EXPERIMENT, experiment


def conforms(record: dict[str, object], name: str) -> bool:
    """Return whether a record has all required fields of a component and no undescribed field."""
    schema = COMPONENTS[name]
    required, described = set(schema["required"]), set(schema["properties"])
    return required <= record.keys() <= described


def ended(directory: Path) -> experiment_pb2.Experiment:
    made = experiment(directory)
    made.ended_at.FromMilliseconds(1_700_000_060_000)
    made.best_value = 0.75
    made.best_trial_id = "tria1"
    return made


def test_profile_of_a_new_experiment_has_neither_times_nor_a_best_result() -> None:
    profile = records.profile(experiment_pb2.Experiment(id=EXPERIMENT))

    assert conforms(profile, "Profile")
    assert profile.keys().isdisjoint({"startTime", "endTime", "bestValue", "bestTrialId"})
    assert profile["optimizeMode"] == "maximize"


def test_profile_of_an_ended_experiment_has_times_and_the_best_result(tmp_path: Path) -> None:
    profile = records.profile(ended(tmp_path))

    assert conforms(profile, "Profile")
    assert (profile["startTime"], profile["endTime"]) == (1_700_000_000_123, 1_700_000_060_000)
    assert (profile["bestValue"], profile["bestTrialId"]) == (0.75, "tria1")


def test_status_has_state_errors_and_the_reason_for_waiting() -> None:
    message = experiment_pb2.Experiment(
        state=experiment_pb2.EXPERIMENT_STATE_ERROR, errors=["first", "second"], waiting_for="GPUs"
    )

    assert records.status(message) == {
        "status": "ERROR",
        "errors": ["first", "second"],
        "waitingFor": "GPUs",
    }


def test_metadata_of_a_new_experiment_has_placeholders() -> None:
    metadata = records.metadata(experiment_pb2.Experiment(id=EXPERIMENT), [], 7)

    assert conforms(metadata, "Metadata")
    assert (metadata["startTime"], metadata["endTime"]) == (None, records.NOT_ENDED)
    assert (metadata["port"], metadata["prefixUrl"], metadata["bestValue"]) == (None, None, None)


def test_metadata_of_an_ended_experiment_has_its_facts(tmp_path: Path) -> None:
    message = ended(tmp_path)
    message.config.training_services.add(platform="remote")
    message.config.tags["team"] = "a"
    message.config.tags["old"] = ""
    message.trial_counts["FAILED"] = 2

    metadata = records.metadata(message, ["http://127.0.0.1:8080"], 7)

    assert conforms(metadata, "Metadata")
    assert metadata["platform"] == "local,remote"
    assert sorted(metadata["tag"]) == ["old", "team=a"]
    assert metadata["trialCounts"] == {"FAILED": 2}
    assert (metadata["endTime"], metadata["bestValue"]) == (1_700_000_060_000, 0.75)
    assert (metadata["webuiUrl"], metadata["pid"]) == (["http://127.0.0.1:8080"], 7)


def test_exported_trial_has_intermediate_results_on_request() -> None:
    message = experiment_service_pb2.ExportedTrial(
        trial_id="tria1",
        parameters=to_value({"x": 1}),
        value=to_value(0.5),
        intermediates=[to_value(0.25)],
    )

    plain = records.exported(message, intermediate=False)
    complete = records.exported(message, intermediate=True)

    assert plain == {"parameter": {"x": 1}, "value": 0.5, "id": "tria1"}
    assert complete == plain | {"intermediate": [0.25]}
    assert conforms(complete, "ExportedTrial")
