"""Limit on the number of parts of a gRPC message: list items, map entries and messages in them.

A decoded part takes some 200 bytes of memory, two or four of the message, so that a message within
its limit of bytes could fill the memory and hold the event loop. Parts are counted before the
message is decoded, by the bytes that begin them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from nni_wire.limits import MESSAGE_LIMIT_BYTES
from svc_common.errors import ResourceExhaustedError

PARTS_LIMIT: Final = 4_000_000
"""Most parts of a message with a search space or the results of all trials: 50,000 trials with 20
parameters; its decoding takes up to a second and 1 GB."""
FEW_PARTS: Final = 500_000
"""Most parts of other messages, and of those that are decoded while others are."""
_LENGTH_DELIMITED: Final = 2
"""Wire type of messages and texts."""
_CONTINUED: Final = 0x80
"""Bit of a byte of a number that is not its last one."""
_LAST_ONE_BYTE_FIELD: Final = 15


class DecodingTurns:
    """Queue of the messages with many parts: one of them is decoded and handled at a time."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def turn(self, count: int) -> AsyncIterator[None]:
        """Wait until a message of so many parts may be decoded; others wait until it is handled."""
        if count <= FEW_PARTS:
            yield
            return
        async with self._turn:
            yield


def check_parts(method: str, limit_bytes: int, read: Any, payload: bytes) -> int:  # noqa: ANN401 - a function of generated code
    """Return about how many parts a message has; raise ResourceExhaustedError if they are too many.

    Args:
        method: full name of the RPC.
        limit_bytes: of the method's messages; it has the larger limit of parts if it has that of
            search spaces.
        read: `FromString` of the message's class; other functions are not limited.
        payload: the message.

    Raises:
        ResourceExhaustedError: it has too many parts.
    """
    limit = PARTS_LIMIT if limit_bytes > MESSAGE_LIMIT_BYTES else FEW_PARTS
    if len(payload) <= FEW_PARTS:
        return 0
    tags = _tags_of(read)
    count = len(payload) - len(payload.translate(None, tags)) if tags else 0
    if count > limit:
        name = method.rpartition("/")[2]
        raise ResourceExhaustedError(
            f"a message of {name} must have at most {limit:,} list items and map entries, "
            f"got about {count:,}"
        )
    return count


def _tags_of(read: Any) -> bytes:  # noqa: ANN401 - a function of generated code
    message = getattr(read, "__self__", None)
    if isinstance(message, type) and issubclass(message, Message):
        return tags_of(message.DESCRIPTOR)
    return b""


@cache
def tags_of(descriptor: Descriptor) -> bytes:
    """Return the bytes that begin an item of a list or map, anywhere in messages of a type."""
    fields = _repeated(descriptor, set())
    return bytes(sorted({first for field in fields for first in _first_bytes(field)}))


def _repeated(descriptor: Descriptor, seen: set[str]) -> Iterator[FieldDescriptor]:
    """Yield the repeated fields with parts of their own, of a type and of all that it refers to."""
    seen.add(descriptor.full_name)
    for field in descriptor.fields:
        has_length = field.message_type is not None or field.type in {
            FieldDescriptor.TYPE_STRING,
            FieldDescriptor.TYPE_BYTES,
        }
        if field.is_repeated and has_length:
            yield field
        inner = field.message_type
        if inner is not None and inner.full_name not in seen:
            yield from _repeated(inner, seen)


def _first_bytes(field: FieldDescriptor) -> Iterator[int]:
    """Yield the first bytes of a field's tag: the usual one, and of one with needless zeros."""
    first = (field.number << 3 | _LENGTH_DELIMITED) & (_CONTINUED - 1)
    yield first | _CONTINUED
    if field.number <= _LAST_ONE_BYTE_FIELD:
        yield first
