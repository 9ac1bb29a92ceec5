"""Python values to `nni_proto.common.v1.Value` and back, without loss.

Integers stay integers, booleans stay booleans, NaN and the infinities survive. Tuples become
lists. A value in the byte store is the caller's business: see `blob_of`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nni_proto.common.v1 import value_pb2
from nni_wire.limits import VALUE_DEPTH_LIMIT
from nni_wire.texts import REMEDY, RULE, broken_text

_BIG_INT: Final = re.compile(r"-?[0-9]{1,4300}")
"""Python reads no longer ones."""
_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1


def to_value(data: Any) -> value_pb2.Value:  # noqa: ANN401 - any JSON value
    """Convert a JSON-like value, NaN included, to a proto `Value`; raise for other types or depth.

    Args:
        data: `None`, bool, int, float, str, list, tuple or mapping with string keys, nested at
            most `VALUE_DEPTH_LIMIT` deep.

    Raises:
        TypeError: something in it has no JSON form; the text names it.
        ValueError: it is nested too deeply, or has a text that UTF-8 cannot encode.
    """
    message = value_pb2.Value()
    try:
        write_value(message, data)
    except UnicodeEncodeError as error:
        broken = broken_text(data)
        if broken is None:
            raise
        named = broken.place or "the text"
        raise ValueError(f"{named} {RULE}, got {broken.character!r}; {REMEDY}") from error
    return message


def write_value(message: value_pb2.Value, data: Any, depth: int = 0) -> None:  # noqa: ANN401 - any JSON value
    """Write a JSON-like value into an empty proto `Value`; raise for other types or depth."""
    if depth > VALUE_DEPTH_LIMIT:
        raise ValueError(f"a value must be nested at most {VALUE_DEPTH_LIMIT} levels deep")
    if data is None:
        return
    if isinstance(data, bool):
        message.bool_value = data
    elif isinstance(data, int):
        _write_int(message, int(data))
    elif isinstance(data, float):
        message.float_value = data
    elif isinstance(data, str):
        message.string_value = data
    elif isinstance(data, Mapping):
        _write_map(message, data, depth)
    elif isinstance(data, Sequence) and not isinstance(data, bytes | bytearray):
        _write_list(message, data, depth)
    else:
        raise TypeError(f"a value must be JSON-like, got {type(data).__name__}: {data!r:.80}")


def _write_int(message: value_pb2.Value, data: int) -> None:
    if _INT64_MIN <= data <= _INT64_MAX:
        message.int_value = data
    else:
        message.big_int_value = str(data)


def _write_list(message: value_pb2.Value, data: Sequence[Any], depth: int) -> None:
    message.list_value.SetInParent()
    items = message.list_value.items
    for item in data:
        write_value(items.add(), item, depth + 1)


def _write_map(message: value_pb2.Value, data: Mapping[Any, Any], depth: int) -> None:
    message.map_value.SetInParent()
    entries = message.map_value.entries
    for key, item in data.items():
        if not isinstance(key, str):
            raise TypeError(f"keys must be strings, got {type(key).__name__}: {key!r:.80}")
        entry = entries.add()
        entry.key = key
        if item is not None:
            write_value(entry.value, item, depth + 1)


def from_value(message: value_pb2.Value) -> Any:  # noqa: ANN401 - any JSON value
    """Convert a proto `Value` to plain Python; unset: None; LookupError: part in the byte store.

    Raises:
        LookupError: the value, or a part of it, lies in the byte store; load it there.
    """
    kind = message.WhichOneof("kind")
    if kind is None:
        return None
    if kind == "map_value":
        return {entry.key: from_value(entry.value) for entry in message.map_value.entries}
    if kind == "list_value":
        return [from_value(item) for item in message.list_value.items]
    if kind == "big_int_value":
        return int(message.big_int_value)
    if kind == "blob_value":
        raise LookupError(f"the value lies in the byte store: {message.blob_value.sha256}")
    return getattr(message, kind)


def check_value(message: value_pb2.Value) -> None:
    """Raise ValueError if a `Value` is too deep or has a repeated key, bad big int or any blob.

    Raises:
        ValueError: it is nested too deeply, names a key twice, has a large integer that is none,
            or a part that lies in the byte store; the text says where and what.
    """
    _check(message, "", 0)


def _check(message: value_pb2.Value, place: str, depth: int) -> None:
    kind = message.WhichOneof("kind")
    if depth > VALUE_DEPTH_LIMIT and kind is not None:
        raise ValueError(f"a value must be nested at most {VALUE_DEPTH_LIMIT} levels deep")
    if kind == "map_value":
        _check_map(message.map_value, place, depth)
    elif kind == "list_value":
        for index, item in enumerate(message.list_value.items):
            _check(item, f"{place}[{index}]", depth + 1)
    elif kind == "big_int_value":
        if not _BIG_INT.fullmatch(message.big_int_value):
            shown = message.big_int_value[:40]
            raise ValueError(f"{place or 'value'}: a large integer must be digits, got {shown!r}")
    elif kind == "blob_value":
        raise ValueError(f"{place or 'value'}: must be the value itself, not its place in a store")


def _check_map(message: value_pb2.MapValue, place: str, depth: int) -> None:
    seen: set[str] = set()
    for entry in message.entries:
        if entry.key in seen:
            raise ValueError(f"{place or 'value'}: the key {entry.key[:80]!r} comes twice")
        seen.add(entry.key)
        _check(entry.value, f"{place}.{entry.key[:80]}" if place else entry.key[:80], depth + 1)


def blob_of(message: value_pb2.Value) -> value_pb2.BlobRef | None:
    """Return where the value lies, or `None` if it stands in the message itself."""
    return message.blob_value if message.WhichOneof("kind") == "blob_value" else None
