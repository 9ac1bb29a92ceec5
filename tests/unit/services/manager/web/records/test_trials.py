"""REST records of trials, metrics and explanations."""

from __future__ import annotations

import json
from pathlib import Path

from nni_proto.common.v1 import metric_pb2
from nni_proto.trial.v1 import cause_pb2, trial_pb2, trial_service_pb2
from nni_wire.values import to_value
from svc_manager.web.records import trials as records
from svc_manager.web.records.schemas import COMPONENTS
from tests.unit.services.manager.web.conftest import metric, trial


def conforms(record: dict[str, object], name: str) -> bool:
    """Return whether a record has all required fields of a component and no undescribed field."""
    schema = COMPONENTS[name]
    required, described = set(schema["required"]), set(schema["properties"])
    return required <= record.keys() <= described


def test_waiting_trial_has_the_required_fields_only() -> None:
    message = trial_pb2.Trial(
        id="tria0", state=trial_pb2.TRIAL_STATE_WAITING, parameters=to_value({"x": 1})
    )

    record = records.trial(message)

    assert record.keys() == set(COMPONENTS["Trial"]["required"])
    assert record["status"] == "WAITING"


def test_ended_trial_has_its_result_and_details(tmp_path: Path) -> None:
    message = trial(3, 0.5, tmp_path)
    message.reason = "exit code 2"
    message.end.cause = cause_pb2.END_CAUSE_EXIT_CODE
    message.stop.cause = cause_pb2.STOP_CAUSE_ASSESSOR
    message.wait.cause = cause_pb2.WAIT_CAUSE_BLOB
    message.exit_code = 2
    message.runner_id = "box"
    message.platform = "local"
    message.gpu_indices.extend([0, 3])
    message.provenance.CopyFrom(to_value({"nni": "4"}))
    message.remarks.starred = True

    record = records.trial(message)

    assert conforms(record, "Trial")
    assert set(record) == set(COMPONENTS["Trial"]["properties"])
    assert record["finalMetricData"][0]["data"] == 0.5
    assert (record["message"], record["exitCode"]) == ("exit code 2", 2)
    assert (record["endCause"], record["stopCause"]) == ("EXIT_CODE", "ASSESSOR")
    assert record["waitCause"] == "BLOB"
    assert (record["runnerId"], record["gpuIndices"]) == ("box", [0, 3])


def test_parameters_are_one_json_text_with_their_id_and_source(tmp_path: Path) -> None:
    message = trial(3, 0.5, tmp_path)
    message.source = trial_pb2.PARAMETER_SOURCE_CUSTOMIZED

    [text] = records.trial(message)["hyperParameters"]

    assert json.loads(text) == {
        "parameter_id": 3,
        "parameter_source": "customized",
        "parameters": {"x": 0.3, "nested": {"_name": "a", "units": 3}},
        "parameter_index": 0,
    }


def test_exit_code_0_is_present() -> None:
    message = trial_pb2.Trial(id="tria0", parameters=to_value({}))
    message.exit_code = 0

    assert records.trial(message)["exitCode"] == 0


def test_metric_has_the_six_documented_fields() -> None:
    message = metric({"loss": 2}, metric_pb2.METRIC_TYPE_PERIODICAL)
    message.sequence = 4

    record = records.trial_metric(
        trial_service_pb2.TrialMetric(trial_id="tria1", parameter_id=1, metric=message)
    )

    assert record == {
        "timestamp": 1_700_000_001_500,
        "trialJobId": "tria1",
        "parameterId": "1",
        "type": "PERIODICAL",
        "sequence": 4,
        "data": {"loss": 2},
    }
    assert conforms(record, "Metric")


def test_explanation_of_a_failed_trial_has_reasons_attempts_and_the_exit() -> None:
    message = trial_service_pb2.ExplainTrialResponse(
        trial_id="tria1",
        state=trial_pb2.TRIAL_STATE_FAILED,
        verdict=trial_service_pb2.VERDICT_FAILED,
        summary="it failed",
        stderr_tail="Killed",
        exit_code=137,
        signal=9,
    )
    message.reasons.add(kind=trial_service_pb2.REASON_KIND_EXIT_CODE, text="137", remedy="more RAM")
    lost = message.lost_attempts.add(attempt=1, runner_id="box", reason="lost", command_failed=True)
    lost.loss.cause = cause_pb2.LOSS_CAUSE_COMMAND_FAILED

    record = records.explanation(message)

    assert conforms(record, "Explanation")
    assert (record["trialJobId"], record["status"]) == ("tria1", "FAILED")
    assert record["reasons"] == [{"kind": "EXIT_CODE", "text": "137", "remedy": "more RAM"}]
    assert record["lostAttempts"] == [
        {
            "attempt": 1,
            "runnerId": "box",
            "reason": "lost",
            "cause": "COMMAND_FAILED",
            "commandFailed": True,
        }
    ]
    assert (record["exitCode"], record["signal"]) == (137, 9)


def test_explanation_without_a_trial_has_null_for_its_facts() -> None:
    message = trial_service_pb2.ExplainTrialResponse(
        verdict=trial_service_pb2.VERDICT_NOT_CREATED, summary="no slot"
    )

    record = records.explanation(message)

    assert conforms(record, "Explanation")
    assert record["verdict"] == "NOT_CREATED"
    assert [record[key] for key in ("trialJobId", "status", "exitCode", "signal")] == [None] * 4
