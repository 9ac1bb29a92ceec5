"""JSON encoding for browsers."""

from __future__ import annotations

import json
import math

import pytest

from nni_proto.common.v1 import value_pb2
from nni_wire.values import to_value
from svc_common.errors import InvalidArgumentError
from svc_common.rpc.message_parts import PARTS_LIMIT, count_parts
from svc_manager.web.records.encoding import MARKS_LIMIT, VALUES_LIMIT, from_json, to_json


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


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'"\\ud800"', "body"),
        (b'{"experimentName": "\\uD800x"}', "experimentName"),
        (b'{"searchSpace": {"x": [1, "\xed\xa0\x80"]}}', r"searchSpace.x\[1\]"),
        ('"\ud800"'.encode("utf-16", "surrogatepass"), "body"),
    ],
)
def test_half_of_a_surrogate_pair_is_refused_by_its_field(body: bytes, field: str) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"^{field} must be text in UTF-8") as caught:
        from_json(body)

    assert caught.value.facts["value"] == r"'\ud800'"


def test_whole_surrogate_pairs_are_read() -> None:
    assert from_json(b'["\\ud83d\\ude00"]') == ["\U0001f600"]


@pytest.mark.parametrize("item", [b"0,", b"[],", b"{},"])
def test_body_of_too_many_values_is_refused_before_it_is_parsed(item: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match="must have at most 500,000 commas and brackets"):
        from_json(b"[" + item * MARKS_LIMIT)


@pytest.mark.parametrize("item", [b"0", b"[]", b'{"a":0}'], ids=["number", "list", "object"])
def test_body_of_more_values_than_a_message_may_have_is_refused(item: bytes) -> None:
    body = b"[" + b",".join([item] * VALUES_LIMIT) + b"]"

    with pytest.raises(InvalidArgumentError, match=r"must have at most 200,000 values.*requests"):
        from_json(body)


def test_commas_in_texts_are_no_values() -> None:
    text = "," * (VALUES_LIMIT + 1)

    assert from_json(json.dumps([text]).encode()) == [text]


def test_body_of_as_many_values_as_allowed_fits_into_a_message() -> None:
    body = b"{" + b",".join(b'"%d":0' % number for number in range(VALUES_LIMIT - 1)) + b"}"

    payload = to_value(from_json(body)).SerializeToString()

    assert count_parts(payload, value_pb2.Value.DESCRIPTOR, PARTS_LIMIT) < PARTS_LIMIT
