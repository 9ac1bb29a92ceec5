"""Limit on the number of parts of a gRPC message: the fields on the wire, at all levels.

To decode, copy or encode a part takes up to 50 ns, and a loop over parts in Python some 500 ns, so
that a message within its limit of bytes could hold the event loop. Parts are counted before the
message is decoded, by a walk over its bytes in Python, which other threads can interrupt.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import Any, Final, TypeAlias, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from svc_common.errors import InvalidArgumentError, ResourceExhaustedError

PARTS_LIMIT: Final = 800_000
"""Most parts of a message with a search space, samples or parameters: a number in a list is two
parts, one in a map four. To decode or copy them takes up to 40 ms."""
FEW_PARTS: Final = 50_000
"""Most parts of other messages, over which handlers iterate; up to 25 ms."""
MANY_PARTS: Final = 100_000
"""Messages with more parts are decoded and handled one at a time."""
MAP_ENTRY_PARTS: Final = 20
"""Parts that an entry of a field of type `map` stands for, beside key and value: it is put into a
hash table."""
TEXT_LIMIT_BYTES: Final = 16 * 1024 * 1024
"""Longest text or bytes in a message: functions of C that handle one run for up to 25 ms."""

_VARINT: Final = 0
_EIGHT_BYTES: Final = 1
_LENGTH_DELIMITED: Final = 2
_FOUR_BYTES: Final = 5
_CONTINUED: Final = 0x80
"""Bit of a byte of a number that is not its last one."""
_LONGEST_NUMBER: Final = 10
"""Bytes of a number; longer ones are malformed."""
_TEXTS: Final = frozenset({FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES})

_Inner: TypeAlias = "Descriptor | None"
"""Type of the messages in a field; None: packed numbers."""


class DecodingTurns:
    """Queue of the messages with many parts: one of them is decoded and handled at a time."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def turn(self, count: int) -> AsyncIterator[None]:
        """Hold the only turn during the block, if the message has more than `MANY_PARTS` parts."""
        if count <= MANY_PARTS:
            yield
            return
        async with self._turn:
            yield


def check_parts(method: str, limit: int, read: Any, payload: bytes) -> int:  # noqa: ANN401 - a function of generated code
    """Count the parts of a serialized message, 0 if it is short; raise if too many, or long text.

    Args:
        method: full name of the RPC.
        limit: most parts. A message with at most so many bytes is not counted: 0 is returned.
        read: `FromString` of the message's class; other functions are not limited.
        payload: the message; if it is malformed, the parts before that place are counted.

    Raises:
        ResourceExhaustedError: it has too many parts.
        InvalidArgumentError: a text is longer than `TEXT_LIMIT_BYTES`.
    """
    if len(payload) <= limit:
        return 0
    descriptor = _descriptor_of(read)
    if descriptor is None:
        return 0
    count = count_parts(payload, descriptor, limit)
    if count > limit:
        name = method.rpartition("/")[2]
        raise ResourceExhaustedError(
            f"a message of {name} must have at most {limit:,} parts (a number in a list is two, "
            f"one in a map four), got more in {len(payload):,} bytes; send less, or in pieces"
        )
    return count


def count_parts(payload: bytes, descriptor: Descriptor, limit: int) -> int:
    """Return the number of fields in serialized bytes, sub-messages' included; stop above a limit.

    Each number of a packed list counts by its bytes.

    Args:
        payload: the message.
        descriptor: its type.
        limit: the walk stops at the first part above it.

    Raises:
        InvalidArgumentError: a text is longer than `TEXT_LIMIT_BYTES`.
    """
    walk = _Walk(payload, descriptor)
    with suppress(IndexError):  # cut short: decoding it fails
        walk.run(limit)
    return walk.count


def _descriptor_of(read: Any) -> Descriptor | None:  # noqa: ANN401 - a function of generated code
    message = getattr(read, "__self__", None)
    if isinstance(message, type) and issubclass(message, Message):
        descriptor: Any = message.DESCRIPTOR  # of Python or of C
        return cast("Descriptor", descriptor)
    return None


@cache
def _fields_of(descriptor: Descriptor) -> Mapping[int, _Inner]:
    """Return the fields by number that hold messages, or lists of numbers that may be packed."""
    return {
        field.number: field.message_type
        for field in descriptor.fields
        if field.message_type is not None or (field.is_repeated and field.type not in _TEXTS)
    }


class _Walk:
    """Counter of the fields of a serialized message and its sub-messages, without decoding."""

    def __init__(self, payload: bytes, descriptor: Descriptor) -> None:
        self._payload = payload
        self._place = 0
        self._end = len(payload)
        self._fields = _fields_of(descriptor)
        self._outer: list[tuple[int, Mapping[int, _Inner]]] = []
        self.count = 0

    def run(self, limit: int) -> None:
        """Count to the end of the message, or to the first part above a limit.

        Raises:
            IndexError: the message is malformed.
        """
        while self.count <= limit:
            while self._place >= self._end:
                if not self._outer:
                    return
                self._end, self._fields = self._outer.pop()
            self._skip(self._number())

    def _skip(self, tag: int) -> None:
        """Count a field and move past it, or into it if it is a message."""
        self.count += 1
        wire_type = tag & 7
        if wire_type == _LENGTH_DELIMITED:
            self._enter(tag >> 3, self._number())
        elif wire_type == _VARINT:
            self._number()
        elif wire_type == _EIGHT_BYTES:
            self._place += 8
        elif wire_type == _FOUR_BYTES:
            self._place += 4
        # Groups begin and end with a tag only.

    def _enter(self, number: int, length: int) -> None:
        if number not in self._fields:
            _check_text(length)
            self._place += length
            return
        inner = self._fields[number]
        if inner is None:
            self.count += length
            self._place += length
            return
        if inner.GetOptions().map_entry:
            self.count += MAP_ENTRY_PARTS - 1
        self._outer.append((self._end, self._fields))
        self._end = min(self._place + length, self._end)
        self._fields = _fields_of(inner)

    def _number(self) -> int:
        """Read a varint at the current place; raise IndexError if it is cut short or too long."""
        byte = self._payload[self._place]
        self._place += 1
        if byte < _CONTINUED:
            return byte
        value = byte & (_CONTINUED - 1)
        for position in range(1, _LONGEST_NUMBER):
            byte = self._payload[self._place]
            self._place += 1
            value |= (byte & (_CONTINUED - 1)) << 7 * position
            if byte < _CONTINUED:
                return value
        raise IndexError


def _check_text(length: int) -> None:
    if length > TEXT_LIMIT_BYTES:
        raise InvalidArgumentError(
            "request",
            f"must have no text longer than {TEXT_LIMIT_BYTES:,} bytes",
            f"{length:,} bytes",
            "store it in a file, and send its path",
        )
