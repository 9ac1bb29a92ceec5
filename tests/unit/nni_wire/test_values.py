"""Conversions between Python values and messages."""

from __future__ import annotations

import math
from typing import Any

import pytest

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import event_pb2
from nni_wire.limits import VALUE_DEPTH_LIMIT
from nni_wire.values import blob_of, check_value, from_value, to_value


@pytest.mark.parametrize(
    "data",
    [
        None,
        True,
        False,
        0,
        -1,
        2**63 - 1,
        -(2**63),
        2**63,
        -(2**200),
        0.1,
        1.0,
        math.inf,
        -math.inf,
        "",
        "ü",
        [],
        {},
        [None, [], {}],
        {"b": 1, "a": {"_name": "x", "y": [1, 2.0, "3", True, None]}},
    ],
)
def test_value_survives_the_wire_with_its_type(data: Any) -> None:
    wire = to_value(data).SerializeToString()

    back = from_value(value_pb2.Value.FromString(wire))

    assert back == data
    assert repr(back) == repr(data)


def test_nan_stays_nan() -> None:
    assert math.isnan(from_value(to_value({"default": math.nan}))["default"])


def test_order_of_names_is_kept() -> None:
    assert list(from_value(to_value({"z": 1, "a": 2, "m": 3}))) == ["z", "a", "m"]


def test_tuple_becomes_a_list() -> None:
    assert from_value(to_value((1, 2))) == [1, 2]


@pytest.mark.parametrize("bad", [object(), {1: 2}, b"bytes", {"a": {1, 2}}])
def test_what_json_cannot_say_is_refused(bad: Any) -> None:
    with pytest.raises(TypeError, match=r"JSON-like|keys must be strings"):
        to_value(bad)


def test_deepest_legal_value_survives_in_an_event_and_one_more_level_is_refused() -> None:
    deep: Any = 1
    for _ in range(VALUE_DEPTH_LIMIT):
        deep = {"a": deep}
    event = event_pb2.Event(trial_scheduled=event_pb2.TrialScheduled(parameters=to_value(deep)))

    wire = event_pb2.EventBatch(events=[event]).SerializeToString()

    back = event_pb2.EventBatch.FromString(wire).events[0].trial_scheduled.parameters
    assert from_value(back) == deep
    with pytest.raises(ValueError, match="levels deep"):
        to_value([deep])


def test_value_in_the_byte_store_is_named_not_loaded() -> None:
    message = value_pb2.Value(blob_value=value_pb2.BlobRef(sha256="ab", size_bytes=3))

    assert blob_of(message) == value_pb2.BlobRef(sha256="ab", size_bytes=3)
    assert blob_of(to_value(1)) is None
    with pytest.raises(LookupError, match="ab"):
        from_value(message)


def nested(depth: int) -> value_pb2.Value:
    value = value_pb2.Value(int_value=1)
    for _ in range(depth):
        outer = value_pb2.Value()
        outer.list_value.items.append(value)
        value = outer
    return value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (value_pb2.Value(big_int_value="1x"), "must be digits"),
        (value_pb2.Value(big_int_value="9" * 4301), "must be digits"),
        (value_pb2.Value(blob_value=value_pb2.BlobRef()), "not its place in a store"),
        (
            value_pb2.Value(
                map_value=value_pb2.MapValue(
                    entries=[value_pb2.MapEntry(key="k"), value_pb2.MapEntry(key="k")]
                )
            ),
            "'k' comes twice",
        ),
        (nested(VALUE_DEPTH_LIMIT + 1), "levels deep"),
    ],
)
def test_what_could_not_be_read_back_is_refused(value: value_pb2.Value, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_value(value)


def test_the_deepest_value_that_can_be_made_is_taken() -> None:
    check_value(nested(VALUE_DEPTH_LIMIT))
    check_value(value_pb2.Value(big_int_value="-" + "9" * 4300))


@pytest.mark.parametrize(
    ("data", "place"),
    [("\ud800", "the text"), ({"x": ["\ud800"]}, r"x\[0\]"), ({"\ud800": 1}, r"\\ud8")],
)
def test_text_that_utf_8_cannot_encode_is_refused_by_its_place(data: Any, place: str) -> None:
    with pytest.raises(
        ValueError, match=rf"^{place}.* must be text in UTF-8.*got '\\ud800'; write"
    ):
        to_value(data)
