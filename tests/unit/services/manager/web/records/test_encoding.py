"""JSON encoding for browsers."""

from __future__ import annotations

import json
import math

import pytest

from svc_common.errors import InvalidArgumentError
from svc_manager.web.records.encoding import VALUES_LIMIT, from_json, to_json


@pytest.mark.claim("platform", 26)
def test_numbers_that_json_lacks_become_strings_wherever_they_stand() -> None:
    text = to_json({"a": [math.nan, (math.inf,)], "b": {"c": -math.inf}, "d": 1.5})

    assert json.loads(text) == {"a": ["NaN", ["Infinity"]], "b": {"c": "-Infinity"}, "d": 1.5}


def test_lone_surrogates_survive_as_escapes() -> None:
    assert to_json("\ud800") == '"\\ud800"'


def test_bare_nan_of_python_clients_is_accepted() -> None:
    assert math.isnan(from_json(b"NaN"))


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"[" * 100_000])
def test_malformed_bodies_are_refused_by_name(text: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match="body"):
        from_json(text)


@pytest.mark.parametrize("item", [b"0,", b"[],", b"{},"])
def test_body_of_too_many_values_is_refused_before_it_is_parsed(item: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match="must have at most 2,000,000 values"):
        from_json(b"[" + item * VALUES_LIMIT)
