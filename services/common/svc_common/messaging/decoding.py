"""Decoding of messages that agents, and other senders of little trust, publish on the bus.

A message within the limit of the bus can have millions of parts, which hold the event loop and fill
the memory. Parts are counted before it is decoded, as those of requests of gRPC are.
"""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from svc_common.errors import ServiceError
from svc_common.large_work import off_loop
from svc_common.rpc.message_parts import check_parts

M = TypeVar("M", bound=Message)


def decode_counted(kind: type[M], payload: bytes, limit: int) -> M:
    """Decode a message; raise DecodeError before that if it has more than `limit` fields.

    Args:
        kind: type of the message.
        payload: the message. With at most `limit` bytes it is not counted.
        limit: most parts: fields on the wire, at all levels.

    Raises:
        google.protobuf.message.DecodeError: it is malformed, or has more parts.
    """
    try:
        check_parts(kind.DESCRIPTOR.name, limit, kind.FromString, payload)
    except ServiceError as error:
        raise DecodeError(error.message) from error
    return kind.FromString(payload)


async def decode_off_loop(kind: type[M], payload: bytes, limit: int) -> M:
    """Decode like `decode_counted`, or raise DecodeError; in a thread if it has more than 64 KiB.

    Raises:
        google.protobuf.message.DecodeError: it is malformed, or has more parts.
    """
    return await off_loop(len(payload), decode_counted, kind, payload, limit)
