"""Facts to messages of the log and back.

An event that a newer version wrote and this one does not know is passed over, so that old programs
can open new logs for reading.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nni_proto.experiment.v1 import event_pb2
from svc_manager.converters.event_readers import READERS
from svc_manager.converters.event_writers import WRITERS
from svc_manager.converters.scalars import set_ms
from svc_manager.domain import events


@dataclass(frozen=True, slots=True)
class Stamp:
    """Who writes a batch, and when."""

    epoch: int
    append_count: int
    """Appends of this epoch before; its text is the append id."""
    time_ms: int


def batch_to_bytes(events: Sequence[events.Event], stamp: Stamp, inbox_sequence: int) -> bytes:
    """Return one append of the log."""
    batch = event_pb2.EventBatch(
        epoch=stamp.epoch, append_id=str(stamp.append_count), inbox_sequence=inbox_sequence
    )
    set_ms(batch.time, stamp.time_ms)
    for event in events:
        write_event(batch.events.add(), event)
    return batch.SerializeToString()


def batches_to_bytes(
    events: Sequence[events.Event], stamp: Stamp, cursor: int, next_cursor: int, limit_bytes: int
) -> Iterator[bytes]:
    """Give the events of a round as appends of a size that the bus takes.

    Only the last one moves the cursor of the INBOX: a manager that dies in between reads the
    messages again and finds what it has counted already. A single event above the limit stays
    whole.

    Args:
        events: at least one.
        stamp: of the first append.
        cursor: INBOX sequence before the round.
        next_cursor: INBOX sequence after it.
        limit_bytes: longest append.
    """
    payload = batch_to_bytes(events, stamp, next_cursor)
    if len(payload) <= limit_bytes or len(events) == 1:
        yield payload
        return
    half = len(events) // 2
    count = stamp.append_count
    for payload in batches_to_bytes(events[:half], stamp, cursor, cursor, limit_bytes):
        yield payload
        count += 1
    rest = replace(stamp, append_count=count)
    yield from batches_to_bytes(events[half:], rest, cursor, next_cursor, limit_bytes)


def batch_from_bytes(payload: bytes) -> event_pb2.EventBatch:
    """Parse one append of the log.

    Raises:
        google.protobuf.message.DecodeError: it is no batch.
    """
    batch = event_pb2.EventBatch()
    batch.ParseFromString(payload)
    return batch


def write_event(message: event_pb2.Event, event: events.Event) -> None:
    """Write a fact into an empty message."""
    WRITERS[type(event)](message, event)


def event_from(message: event_pb2.Event) -> events.Event | None:
    """Return the fact of a message; None if this version does not know it."""
    kind = message.WhichOneof("kind")
    if kind is None:
        return None
    return READERS[kind](getattr(message, kind))
