"""Reports of algorithms on an in-memory bus and a blob store that may be full."""

import asyncio

import pytest

from nni_proto.experiment.v1 import event_pb2, inbox_pb2
from nni_wire.values import to_value
from svc_common import algorithm_reports, subjects
from svc_common.algorithm_reports import AlgorithmReports
from svc_common.clock import ManualClock
from svc_common.errors import OutOfRoomError, ResourceExhaustedError
from svc_common.messaging.memory import InMemoryBus
from svc_common.storage.large_values import LargeValues
from svc_common.storage.memory import InMemoryBlobStore

FULL = OutOfRoomError("no space to store the blob")


class FullBlobs(InMemoryBlobStore):
    """Blob store that has no room for its first `refusals` blobs."""

    def __init__(self, refusals: int) -> None:
        super().__init__()
        self.refusals = refusals

    async def put(self, data: bytes) -> str:
        if self.refusals:
            self.refusals -= 1
            raise FULL
        return await super().put(data)


class RecordingClock(ManualClock):
    """Clock on which pauses take no time, and are recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    async def sleep(self, duration_s: float) -> None:
        self.pauses.append(duration_s)
        await asyncio.sleep(0)


def generated(number: int, size: int = 300_000) -> inbox_pb2.InboxMessage:
    item = event_pb2.GeneratedParameters(parameter_id=number, parameters=to_value("y" * size))
    answer = event_pb2.ParametersGenerated(parameters=[item])
    return inbox_pb2.InboxMessage(parameters_generated=answer)


class Sender:
    """`AlgorithmReports` on a bus with room, whose blob store refuses its first blobs."""

    def __init__(self, refusals: int = 0) -> None:
        self.bus = InMemoryBus()
        self.clock = RecordingClock()
        self.blobs = FullBlobs(refusals)
        self.reports = AlgorithmReports(
            "exp", subjects.NAS, self.bus.inbox, self.clock, LargeValues(self.blobs)
        )

    async def publish(self, number: int = 0) -> None:
        await self.reports.publish(3, lambda: generated(number), f"exp.3.{number}")

    async def arrived(self, count: int) -> list[inbox_pb2.InboxMessage]:
        """Return the first messages of the INBOX."""
        found: list[inbox_pb2.InboxMessage] = []
        async for batch in self.bus.inbox.follow("exp"):
            found += [inbox_pb2.InboxMessage.FromString(one.payload) for one in batch]
            if len(found) >= count:
                break
        return found


def kinds(messages: list[inbox_pb2.InboxMessage]) -> list[str | None]:
    return [message.WhichOneof("kind") for message in messages]


async def test_delay_is_reported_once_per_report() -> None:
    sender = Sender(refusals=3)

    await sender.publish(0)
    sender.blobs.refusals = 2
    await sender.publish(1)

    found = await sender.arrived(4)
    assert kinds(found) == ["algorithm_waits", "parameters_generated"] * 2
    waits = found[0].algorithm_waits
    assert (waits.generation, waits.reason) == (3, "no space to store the blob")
    assert [one.parameters_generated.parameters[0].parameter_id for one in found[1::2]] == [0, 1]


async def test_pauses_double_up_to_ten_seconds() -> None:
    sender = Sender(refusals=9)

    await sender.publish()

    assert sender.clock.pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0, 10.0]


async def test_full_bus_is_tried_again_without_a_report_of_the_delay() -> None:
    sender = Sender()
    publish, ids = sender.bus.inbox.publish, []

    async def full(experiment_id: str, source: str, payload: bytes, *, message_id: str) -> int:
        ids.append(message_id)
        if len(ids) < 4:
            raise OutOfRoomError("the bus is out of room")
        return await publish(experiment_id, source, payload, message_id=message_id)

    sender.bus.inbox.publish = full  # type: ignore[method-assign] # a full disk
    await sender.publish()

    assert ids == ["exp.3.0"] * 4
    assert kinds(await sender.arrived(1)) == ["parameters_generated"]


async def test_delay_that_finds_the_bus_full_too_is_reported_at_the_next_try() -> None:
    sender = Sender(refusals=2)
    publish, ids = sender.bus.inbox.publish, []

    async def full(experiment_id: str, source: str, payload: bytes, *, message_id: str) -> int:
        ids.append(message_id)
        if len(ids) == 1:
            raise OutOfRoomError("the bus is out of room")
        return await publish(experiment_id, source, payload, message_id=message_id)

    sender.bus.inbox.publish = full  # type: ignore[method-assign] # a full disk
    await sender.publish()

    assert ids == ["exp.3.0.waits", "exp.3.0.waits", "exp.3.0"]


async def test_report_with_too_many_parts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(algorithm_reports, "PARTS_LIMIT", 3)
    reports = AlgorithmReports("exp", subjects.NAS, InMemoryBus().inbox, ManualClock())

    with pytest.raises(ResourceExhaustedError, match="at most 3 parts"):
        await reports.publish(1, lambda: generated(0, 10), "id")


async def test_without_a_store_large_values_are_sent_as_they_are() -> None:
    bus = InMemoryBus()
    reports = AlgorithmReports("exp", subjects.COMPRESSOR, bus.inbox, ManualClock())

    await reports.publish(1, lambda: generated(0), "id")

    async for batch in bus.inbox.follow("exp"):
        message = inbox_pb2.InboxMessage.FromString(batch[0].payload)
        assert message == generated(0)
        assert batch[0].source == subjects.COMPRESSOR
        break
