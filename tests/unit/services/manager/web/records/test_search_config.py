"""Conversion of the section `search` between protobuf and JSON."""

import pytest

from nni_wire.values import from_value
from svc_common.errors import InvalidArgumentError
from svc_manager.web.records.search_config import search_from_json, search_to_json

FULL = {
    "duplicates": "reuse",
    "enqueue": [{"x": 1}],
    "warmStartFrom": ["abcd1234"],
    "warmStartBy": "rank",
    "stop": {"noImprovement": 5, "target": 0.0, "regretBound": 0.5},
}


def test_section_survives_a_round_trip() -> None:
    section = search_from_json(FULL)

    assert search_to_json(section) == FULL
    assert from_value(section.enqueue[0]) == {"x": 1}
    assert search_to_json(search_from_json({})) == {}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"again": 1}, "search.again"),
        ({"enqueue": {}}, "search.enqueue"),
        ({"warmStartFrom": "abcd1234"}, "search.warmStartFrom"),
        ({"stop": 3}, "search.stop"),
        ({"stop": {"never": 1}}, "search.stop.never"),
        ({"stop": {"noImprovement": "many"}}, "search.stop.noImprovement"),
    ],
)
def test_invalid_sections_are_refused_by_field(given: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        search_from_json(given)

    assert caught.value.field == field
