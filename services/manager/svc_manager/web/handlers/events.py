"""The log of an experiment as server-sent events.

Each event's id is its position in the log, `<sequence>-<index>`; a browser whose connection
broke sends the last one it saw as `Last-Event-ID` and goes on behind it, missing nothing.
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
from svc_manager.web.streams import HEARTBEAT_S, until, until_broken

EVENT_STREAM_TYPE: Final = "text/event-stream"
_LONGEST_VALUE: Final = 4_096
"""Values with longer JSON text are left out of events; their own paths give them."""
LATEST: Final = "latest"
"""Stands for the present end of the log: only what comes later is wanted."""
END_OF_LOG: Final = event_pb2.EventPosition(sequence=-1)
"""What the use case takes for `LATEST`."""
_NOT_SHOWN: Final = frozenset({"config", "environment_sha256", "interpreter"})


async def follow_events(call: Call) -> Response:
    """Stream the events behind a position, and with `follow` (the default) what comes later."""
    text = call.last_event_id or call.query.get("after", "")
    follow = call.query.get("follow", True)
    await call.installation.experiments.get(call.experiment_id)  # unknown: a plain 404
    events = call.installation.experiments.follow_events(
        call.experiment_id, parse_position(text) if text else None, follow=follow
    )
    return StreamingResponse(
        _stream(call, events),
        media_type=EVENT_STREAM_TYPE,
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def parse_position(text: str) -> event_pb2.EventPosition:
    """Return the position that an event's id names, or the end of the log for `latest`.

    Raises:
        InvalidArgumentError: no event has such an id.
    """
    if text == LATEST:
        return END_OF_LOG
    sequence, _, index = text.partition("-")
    for part, digits in ((sequence, 18), (index, 9)):  # what int64 and int32 hold in any case
        if not (part.isascii() and part.isdigit() and len(part) <= digits):
            raise InvalidArgumentError("after", "must be the id of an event, like 12-0", text[:80])
    return event_pb2.EventPosition(sequence=int(sequence), index=int(index))


def event_text(message: FollowEventsResponse) -> str:
    """Return one event in the format of server-sent events."""
    kind = message.event.WhichOneof("kind") or "unknown"
    data: dict[str, Any] = {"kind": kind, "time": to_ms(message.time)}
    if kind != "unknown":
        data |= fields_of(getattr(message.event, kind))
    identity = f"{message.position.sequence}-{message.position.index}"
    return f"id: {identity}\nevent: {kind}\ndata: {to_json(data)}\n\n"


def fields_of(message: Message) -> dict[str, Any]:
    """Return the fields of an event that are set, by their camelCase names."""
    return {
        field.json_name: _plain(item, field.enum_type)
        for field, item in message.ListFields()
        if field.name not in _NOT_SHOWN
    }


async def _stream(
    call: Call, events: AsyncGenerator[FollowEventsResponse, None]
) -> AsyncGenerator[str, None]:
    # Told at once, so that a browser knows the stream is open; it reconnects after a second.
    yield "retry: 1000\n\n"
    known = until_broken(events)  # a browser connects again, and asks for what comes behind
    async with aclosing(until(call.until_stopped, known, HEARTBEAT_S)) as live:
        async for event in live:
            yield ": still here\n\n" if event is None else event_text(event)


def _plain(item: Any, enum: EnumDescriptor | None) -> Any:  # noqa: ANN401 - any field of a message
    if enum is not None:
        return _enum_word(item, enum)
    if isinstance(item, value_pb2.Value):
        value = value_of(item)
        return value if len(to_json(value)) <= _LONGEST_VALUE else None
    if isinstance(item, Message):
        return _plain_message(item)
    if isinstance(item, bytes):
        return None
    if isinstance(item, str | int | float | bool):
        return item
    if hasattr(item, "items"):
        return {str(key): _plain(part, None) for key, part in item.items()}
    return [_plain(part, None) for part in item]


def _enum_word(number: int, enum: EnumDescriptor) -> str | int:
    """Return e.g. `RUNNING` for `TRIAL_STATE_RUNNING`; the number if this version knows no name."""
    known = enum.values_by_number.get(number)
    if known is None:
        return number
    prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", enum.name).upper() + "_"
    return known.name.removeprefix(prefix)


def _plain_message(message: Message) -> Any:  # noqa: ANN401 - any JSON value
    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Timestamp":
        return to_ms(message)  # type: ignore[arg-type] # by its name
    if name == "google.protobuf.Duration":
        return to_seconds(message)  # type: ignore[arg-type] # by its name
    return fields_of(message)
