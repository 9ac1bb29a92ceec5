"""Converters between events and the batches of the log.

An event of an unknown kind, which a newer version wrote, is skipped, so that old programs can open
new logs for reading.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nni_proto.experiment.v1 import event_pb2
from svc_manager.converters.event_codec import write_event
from svc_manager.converters.scalars import set_ms
from svc_manager.domain import events


@dataclass(frozen=True, slots=True)
class Stamp:
    """Epoch, append number and time that identify a batch in the log."""

    epoch: int
    append_count: int
    """Earlier appends of this epoch; its text is the append id."""
    time_ms: int


def batch_to_bytes(events: Sequence[events.Event], stamp: Stamp, inbox_sequence: int) -> bytes:
    """Encode events with epoch, append id, time and INBOX cursor as one batch for the log."""
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
    """Yield a round's events as batches, halved to the size limit; the last moves the INBOX cursor.

    Only the last append moves the INBOX cursor: a manager that dies in between reads the messages
    again and finds their reports applied. A single event above the limit stays whole.

    Args:
        events: at least one.
        stamp: of the first append.
        cursor: INBOX sequence before the round.
        next_cursor: INBOX sequence after it.
        limit_bytes: maximum size of an append.
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
    """Parse a log message as the proto message `EventBatch`; raise DecodeError if it is not one.

    Raises:
        google.protobuf.message.DecodeError: it is not a batch.
    """
    batch = event_pb2.EventBatch()
    batch.ParseFromString(payload)
    return batch
