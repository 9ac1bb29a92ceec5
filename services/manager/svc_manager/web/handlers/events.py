"""Handler of the event log of an experiment as server-sent events.

The id of an event is its position in the log, `<sequence>-<index>`. A browser that reconnects
sends the last id that it received as `Last-Event-ID`; the stream resumes after it without a gap.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.message import Message
from nni_proto.experiment.v1.experiment_service_pb2 import FollowEventsResponse
from starlette.responses import Response, StreamingResponse

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import event_pb2
from svc_common.errors import InvalidArgumentError
from svc_manager.web.records.encoding import to_json
from svc_manager.web.records.scalars import to_ms, to_seconds, value_of
from svc_manager.web.route import Call
from svc_manager.web.streams import HEARTBEAT_S, end_on_error, take_until

EVENT_STREAM_TYPE: Final = "text/event-stream"
_LONGEST_VALUE: Final = 4_096
"""Longest JSON text of a value in an event; longer values are null, their own routes serve them."""
LATEST: Final = "latest"
"""Position of the current end of the log: the stream starts with the next event."""
END_OF_LOG: Final = event_pb2.EventPosition(sequence=-1)
"""Position that the use case takes for `LATEST`."""
_OMITTED: Final = frozenset({"config", "environment_sha256", "interpreter"})


async def follow_events(call: Call) -> Response:
    """Respond with events after a position as server-sent events; endless unless `follow=false`."""
    text = call.last_event_id or call.query.get("after", "")
    follow = call.query.get("follow", True)
    await call.dependencies.experiments.get(
        call.experiment_id
    )  # an unknown experiment is a plain 404
    events = call.dependencies.experiments.follow_events(
        call.experiment_id, parse_position(text) if text else None, follow=follow
    )
    return StreamingResponse(
        _stream(call, events),
        media_type=EVENT_STREAM_TYPE,
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def parse_position(text: str) -> event_pb2.EventPosition:
    """Parse an event id `sequence-index` to a log position; `latest` is the end of the log.

    Raises:
        InvalidArgumentError: the text is not the id of an event.
    """
    if text == LATEST:
        return END_OF_LOG
    sequence, _, index = text.partition("-")
    for part, digits in ((sequence, 18), (index, 9)):  # digits that always fit int64 and int32
        if not (part.isascii() and part.isdigit() and len(part) <= digits):
            raise InvalidArgumentError("after", "must be the id of an event, like 12-0", text[:80])
    return event_pb2.EventPosition(sequence=int(sequence), index=int(index))


def event_text(message: FollowEventsResponse) -> str:
    """Return a server-sent event of a log event: id, kind, and its fields as JSON."""
    kind = message.event.WhichOneof("kind") or "unknown"
    data: dict[str, Any] = {"kind": kind, "time": to_ms(message.time)}
    if kind != "unknown":
        data |= fields_of(getattr(message.event, kind))
    identity = f"{message.position.sequence}-{message.position.index}"
    return f"id: {identity}\nevent: {kind}\ndata: {to_json(data)}\n\n"


def fields_of(message: Message) -> dict[str, Any]:
    """Return an event's set fields by camelCase name as JSON; long values null, config left out."""
    return {
        field.json_name: _json_value(item, field.enum_type)
        for field, item in message.ListFields()
        if field.name not in _OMITTED
    }


async def _stream(
    call: Call, events: AsyncGenerator[FollowEventsResponse, None]
) -> AsyncGenerator[str, None]:
    # Sent at once, so that a browser sees an open stream; it reconnects after a second.
    yield "retry: 1000\n\n"
    safe = end_on_error(events)  # a browser reconnects and requests the later events
    async with aclosing(take_until(call.until_stopped, safe, HEARTBEAT_S)) as live:
        async for event in live:
            yield ": still here\n\n" if event is None else event_text(event)


def _json_value(item: Any, enum: EnumDescriptor | None) -> Any:  # noqa: ANN401 - any field of a message
    if enum is not None:
        return _enum_name(item, enum)
    if isinstance(item, value_pb2.Value):
        value = value_of(item)
        return value if len(to_json(value)) <= _LONGEST_VALUE else None
    if isinstance(item, Message):
        return _message_value(item)
    if isinstance(item, bytes):
        return None
    if isinstance(item, str | int | float | bool):
        return item
    if hasattr(item, "items"):
        return {str(key): _json_value(part, None) for key, part in item.items()}
    return [_json_value(part, None) for part in item]


def _enum_name(number: int, enum: EnumDescriptor) -> str | int:
    """Return an enum number's name without the enum's prefix, e.g. `RUNNING`; else the number."""
    known = enum.values_by_number.get(number)
    if known is None:
        return number
    prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", enum.name).upper() + "_"
    return known.name.removeprefix(prefix)


def _message_value(message: Message) -> Any:  # noqa: ANN401 - any JSON value
    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Timestamp":
        return to_ms(message)  # type: ignore[arg-type] # by its name
    if name == "google.protobuf.Duration":
        return to_seconds(message)  # type: ignore[arg-type] # by its name
    return fields_of(message)
