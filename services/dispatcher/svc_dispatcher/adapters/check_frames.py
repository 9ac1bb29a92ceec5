"""Frames between the dispatcher and its checking children: a length, then that many bytes."""

import json
import struct
from typing import Any, BinaryIO, Final

from svc_common.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    ServiceError,
    UnavailableError,
)
from svc_common.large_work import parse_json

LENGTH: Final = struct.Struct(">I")
REPLY_LIMIT_BYTES: Final = 96 * 1024 * 1024
"""Longest reply: a text of 200 characters for each of 400,000 configurations of a request."""
_TEXT_LIMIT: Final = 2_000
"""Longest text of an error: messages show values of any size."""


def read_frame(stream: BinaryIO) -> bytes | None:
    """Read a frame (length, then payload) from a pipe and return its payload; None at the end."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    return stream.read(length)


def write_frame(stream: BinaryIO, payload: bytes) -> None:
    """Write a payload with its length before it to a pipe, and flush."""
    stream.write(LENGTH.pack(len(payload)))
    stream.write(payload)
    stream.flush()


def reply_of(result: dict[str, Any] | ServiceError) -> bytes:
    """Encode a check's result, refusal or error as JSON; cut error texts to 2,000 characters."""
    if isinstance(result, InvalidArgumentError):
        facts = {name: text[:_TEXT_LIMIT] for name, text in result.facts.items()}
        return json.dumps({"refused": result.message[:_TEXT_LIMIT], "facts": facts}).encode()
    if isinstance(result, ServiceError):
        return json.dumps({"error": result.message[:_TEXT_LIMIT]}).encode()
    return json.dumps({"result": result}).encode()


def result_of(reply: bytes) -> dict[str, Any]:
    """Decode a child's JSON reply; return its result, or raise if the request was refused or fails.

    A large reply takes seconds in steps between which other threads run.

    Raises:
        UnavailableError: the reply is none of `reply_of`: user code may have written it.
        InvalidArgumentError: the request was refused.
        FailedPreconditionError: another error of the service.
    """
    try:
        content: dict[str, Any] = parse_json(reply)
        if "refused" in content:
            raise InvalidArgumentError.restored(content["refused"], content["facts"])
        if "error" in content:
            raise FailedPreconditionError(content["error"])
        result: dict[str, Any] = content["result"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UnavailableError(f"the reply of a check cannot be read: {error!r:.200}") from error
    return result
