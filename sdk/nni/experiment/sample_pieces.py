"""Division of samples into messages that the manager accepts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nni_proto.common.v1 import value_pb2

PIECE_BYTES: Final = 1_500_000
"""Largest message of samples. The manager refuses messages of more than 800,000 fields, and a field
has at least two bytes."""


def sample_pieces(
    data: value_pb2.Value, limit_bytes: int = PIECE_BYTES
) -> Iterator[value_pb2.Value]:
    """Yield a list of samples as lists of limited size, in order; any other value as it is.

    Args:
        data: samples, as `ImportData` takes them.
        limit_bytes: largest size of a list, in bytes; a larger sample is a list of its own.

    Example:
        >>> from nni_wire.values import from_value, to_value
        >>> [from_value(piece) for piece in sample_pieces(to_value([10, 20, 30]), 12)]
        [[10, 20], [30]]
    """
    items = data.list_value.items
    if data.ByteSize() <= limit_bytes or len(items) < 2:  # noqa: PLR2004 - nothing to divide
        yield data
        return
    start = size = 0
    for place, item in enumerate(items):
        item_bytes = item.ByteSize() + _OVERHEAD_BYTES
        if place > start and size + item_bytes > limit_bytes:
            yield _list_of(items[start:place])
            start, size = place, 0
        size += item_bytes
    yield _list_of(items[start:])


_OVERHEAD_BYTES: Final = 4
"""Tag and length of an item of up to 2 MB."""


def _list_of(items: list[value_pb2.Value]) -> value_pb2.Value:
    return value_pb2.Value(list_value=value_pb2.ListValue(items=items))
