"""Conversion of scalars between protobuf and JSON."""

from __future__ import annotations

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from nni_proto.common.v1 import value_pb2
from nni_proto.trial.v1 import trial_pb2
from svc_common.errors import InvalidArgumentError
from svc_manager.web.records.scalars import (
    duration_text,
    parse_duration,
    source_name,
    to_ms,
    to_seconds,
    trial_state_name,
    value_from,
    value_of,
)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("90s", 90), ("0.5h", 1800), ("2d", 172_800), (" 3 m ", 180), (7, 7), (0.25, 0.25)],
)
def test_durations_are_text_or_seconds(given: object, seconds: float) -> None:
    assert to_seconds(parse_duration(given, "field")) == seconds


@pytest.mark.claim("platform", 5)
@pytest.mark.parametrize(
    "given",
    ["10", "5w", "-1m", "0s", "", "1e9d", 0, -1, True, None, [], float("nan"), float("inf")],
)
def test_other_durations_are_refused_by_name(given: object) -> None:
    with pytest.raises(InvalidArgumentError, match="maxTrialDuration"):
        parse_duration(given, "maxTrialDuration")


def test_durations_survive_a_round_trip() -> None:
    for duration in (Duration(seconds=90), Duration(seconds=1, nanos=500_000_000)):
        assert parse_duration(duration_text(duration), "field") == duration


def test_instants_are_whole_milliseconds() -> None:
    assert to_ms(Timestamp(seconds=1, nanos=999_999_999)) == 1_999


def test_value_in_the_blob_store_is_a_descriptive_text() -> None:
    stored = value_pb2.Value(blob_value=value_pb2.BlobRef(sha256="ab" * 32, size_bytes=9))

    assert "byte store" in value_of(stored)


@pytest.mark.parametrize("data", ["\ud800", {"\udfff": 1}, b"bytes"])
def test_values_that_cannot_be_stored_are_refused(data: object) -> None:
    with pytest.raises(InvalidArgumentError, match="parameters"):
        value_from(data, "parameters")


def test_states_have_their_documented_names_and_newer_ones_are_unknown() -> None:
    assert trial_state_name(trial_pb2.TRIAL_STATE_USER_CANCELED) == "USER_CANCELED"
    assert source_name(trial_pb2.PARAMETER_SOURCE_CUSTOMIZED) == "customized"
    newer = trial_pb2.Trial.FromString(bytes([0x10, 99])).state  # field 2, number 99
    assert trial_state_name(newer) == "UNKNOWN"
