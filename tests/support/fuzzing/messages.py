"""Protobuf messages of any kind, drawn from their descriptors: valid, half-valid and broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

from nni_wire.values import to_value
from tests.support.fuzzing.json_values import json_values

Fields = Mapping[str, st.SearchStrategy[Any]]
"""Strategies for fields by name, at any depth; other fields follow their types."""

_DEEPEST: Final = 4
_MOST_ITEMS: Final = 3
_LARGE: Final = 2**63 - 1


def _edges(low: int, high: int) -> st.SearchStrategy[int]:
    known = [n for n in (low, -1, 0, 1, 2, 100, 2**31 - 1, high) if low <= n <= high]
    return st.one_of(st.sampled_from(known), st.integers(low, high))


_TEXT: Final = st.one_of(
    st.sampled_from(["", " ", "0", "-1", "x", "..", "a/b", "\x00", "🦆", "12-0", "a" * 300]),
    st.text(max_size=12),
)
_SCALARS: Final[Mapping[int, st.SearchStrategy[Any]]] = {
    FieldDescriptor.CPPTYPE_INT32: _edges(-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: _edges(-_LARGE - 1, _LARGE),
    FieldDescriptor.CPPTYPE_UINT32: _edges(0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: _edges(0, 2**64 - 1),
    FieldDescriptor.CPPTYPE_DOUBLE: st.floats(),
    FieldDescriptor.CPPTYPE_FLOAT: st.floats(width=32),
    FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
}


def messages(descriptor: Descriptor, fields: Fields, depth: int = 0) -> st.SearchStrategy[Message]:
    """Draw messages of a type; each field is set or not."""
    if descriptor.full_name == "nni_proto.common.v1.Value":
        plain = json_values().map(to_value)
        return plain if depth >= _DEEPEST else plain | _composed(descriptor, fields, depth)
    return _composed(descriptor, fields, depth)


@st.composite
def _composed(draw: st.DrawFn, descriptor: Descriptor, fields: Fields, depth: int) -> Message:
    message = GetMessageClass(descriptor)()
    for field in descriptor.fields:
        if draw(st.booleans()):
            _set(draw, message, field, fields, depth)
    return message


def _set(
    draw: st.DrawFn, message: Message, field: FieldDescriptor, fields: Fields, depth: int
) -> None:
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE and depth >= _DEEPEST:
        return
    message.ClearField(field.name)
    target = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        for _ in range(draw(st.integers(0, _MOST_ITEMS))):
            _put(draw, target, field.message_type, fields)
    elif field.is_repeated:
        count = draw(st.integers(0, _MOST_ITEMS))
        target.extend([draw(_one(field, fields, depth)) for _ in range(count)])
    elif field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        target.CopyFrom(draw(_one(field, fields, depth)))
    else:
        setattr(message, field.name, draw(_one(field, fields, depth)))


def _put(draw: st.DrawFn, target: Any, entry: Descriptor, fields: Fields) -> None:
    key, value = (entry.fields_by_name[name] for name in ("key", "value"))
    target[draw(_one(key, {}, 0))] = draw(_one(value, fields, 0))


def _one(field: FieldDescriptor, fields: Fields, depth: int) -> st.SearchStrategy[Any]:
    chosen = fields.get(field.name)
    if chosen is not None:
        return chosen
    if field.message_type is not None:
        return messages(field.message_type, fields, depth + 1)
    if field.enum_type is not None:
        known = [value.number for value in field.enum_type.values]
        return st.sampled_from([*known, max(known) + 1, -1])
    if field.type == FieldDescriptor.TYPE_BYTES:
        return st.binary(max_size=12)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return _TEXT
    return _SCALARS[field.cpp_type]


@st.composite
def nearly(draw: st.DrawFn, valid: Sequence[Message], fields: Fields) -> Message:
    """Draw a copy of a valid message with some fields replaced, at any depth."""
    chosen = draw(st.sampled_from(valid))
    message = type(chosen)()
    message.CopyFrom(chosen)
    for _ in range(draw(st.integers(0, 3))):
        place: Any = message
        depth = 0
        while place.DESCRIPTOR.fields:
            field = draw(st.sampled_from(list(place.DESCRIPTOR.fields)))
            single = field.message_type is not None and not field.is_repeated
            if not (single and place.HasField(field.name) and draw(st.booleans())):
                _set(draw, place, field, fields, depth)
                break
            place, depth = getattr(place, field.name), depth + 1
    return message


@st.composite
def broken(draw: st.DrawFn, whole: bytes) -> bytes:
    """Draw bytes that are rarely a valid message: random ones, or a damaged message."""
    if not whole or draw(st.booleans()):
        return draw(st.binary(max_size=64))
    start = draw(st.integers(0, len(whole)))
    end = draw(st.integers(start, min(len(whole), start + 8)))
    return whole[:start] + draw(st.binary(max_size=8)) + whole[end:]
