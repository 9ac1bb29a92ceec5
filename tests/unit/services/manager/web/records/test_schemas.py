"""Schemas of REST records: helpers, references and enums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nni_proto.experiment.v1 import experiment_pb2
from nni_proto.trial.v1 import trial_pb2, trial_service_pb2
from svc_manager.web.records.schemas import (
    COMPONENTS,
    INTEGER,
    TEXT,
    TRIAL_STATES,
    array,
    component,
    record,
)


def objects(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, Mapping):
        yield schema
        for item in schema.values():
            yield from objects(item)


def names_of(enum: Any, prefix: str) -> set[str]:
    return {name.removeprefix(prefix) for name in enum.keys()} - {"UNSPECIFIED"}  # noqa: SIM118 - a wrapper, no dict


def test_record_requires_its_first_fields_only() -> None:
    schema = record({"id": TEXT}, {"port": INTEGER})

    assert schema["required"] == ["id"]
    assert schema["properties"] == {"id": TEXT, "port": INTEGER}
    assert record({"id": TEXT})["properties"] == {"id": TEXT}


def test_array_and_component_are_references_of_openapi() -> None:
    assert array(component("Trial")) == {
        "type": "array",
        "items": {"$ref": "#/components/schemas/Trial"},
    }


def test_every_reference_names_a_component() -> None:
    named = {
        one["$ref"].removeprefix("#/components/schemas/")
        for one in objects(COMPONENTS)
        if "$ref" in one
    }

    assert named <= COMPONENTS.keys()


def test_required_fields_are_described() -> None:
    for one in objects(COMPONENTS):
        if isinstance(one.get("required"), list):
            assert set(one["required"]) <= one["properties"].keys()


def test_enums_are_the_states_of_the_protos() -> None:
    experiment_states = set(COMPONENTS["Status"]["properties"]["status"]["enum"])
    verdicts = set(COMPONENTS["Explanation"]["properties"]["verdict"]["enum"])

    assert experiment_states == names_of(experiment_pb2.ExperimentState, "EXPERIMENT_STATE_")
    assert set(TRIAL_STATES) == names_of(trial_pb2.TrialState, "TRIAL_STATE_")
    assert verdicts == names_of(trial_service_pb2.Verdict, "VERDICT_")
