from __future__ import annotations

from typing import Any

import pytest

from nni_wire.values import from_value, to_value
from svc_dispatcher.converters.replay_messages import first_difference, update_to_proto
from svc_dispatcher.domain.replay import (
    ChangedVersion,
    ReplayFinished,
    ReplayProgress,
    ReplayResult,
    SuggestionDifference,
    TrialDifference,
)


@pytest.mark.parametrize(
    ("recorded", "drawn", "path"),
    [
        ({"x": 1, "y": 2}, {"x": 1, "y": 3}, "y"),
        ({"m": {"C": 1.0}}, {"m": {"C": 2.0}}, "m.C"),
        ({"layers": [1, 2, 3]}, {"layers": [1, 9, 3]}, "layers[1]"),
        ({"layers": [1, 2]}, {"layers": [1]}, "layers[1]"),
        ({"x": 1}, {"x": 1.0}, "x"),
        ({"x": 1}, {"z": 1}, "x"),
        ({"x": 1}, {"x": 1, "z": 1}, "z"),
        ({"x": {"_name": "a"}}, {"x": "a"}, "x"),
        ("ab", "ac", ""),
        ([1], "1", ""),
    ],
)
def test_first_difference_is_named_by_its_path(recorded: Any, drawn: Any, path: str) -> None:
    assert first_difference(recorded, drawn) == path


@pytest.mark.parametrize(
    "value", [{"x": [1, {"y": None}]}, float("nan"), "text", [], {}, 1, True, None]
)
def test_equal_values_have_no_difference(value: Any) -> None:
    assert first_difference(value, value) is None


def test_difference_has_both_values_and_the_path() -> None:
    word = TrialDifference(
        SuggestionDifference(2, 7, to_value({"x": 1}), to_value({"x": 2})), "abc"
    )

    message = update_to_proto(word).difference

    assert (message.generation, message.parameter_id, message.trial_id) == (2, 7, "abc")
    assert (from_value(message.recorded), from_value(message.drawn)) == ({"x": 1}, {"x": 2})
    assert message.parameter == "x"


def test_missing_suggestion_is_unset() -> None:
    message = update_to_proto(
        TrialDifference(SuggestionDifference(1, 7, to_value(1), None), "")
    ).difference

    assert message.HasField("recorded")
    assert not message.HasField("drawn")
    assert message.parameter == ""


def test_result_counts_all_stops_and_names_the_first() -> None:
    missing = tuple(f"t{number}" for number in range(150))
    versions = (ChangedVersion("numpy", "1", "2"),)
    result = ReplayResult(False, 10, 9, 2, 200, missing, "because", versions)

    message = update_to_proto(ReplayFinished(result, 1.5)).verdict

    assert (message.stops, message.equal_stops, len(message.missing_stops)) == (200, 50, 100)
    assert (message.suggestions, message.equal, message.generations) == (10, 9, 2)
    assert message.changed_versions[0].name == "numpy"
    assert message.duration.ToNanoseconds() == 1_500_000_000


def test_progress_becomes_a_message() -> None:
    assert update_to_proto(ReplayProgress(3, 4)).progress.handled == 3
