"""Registry of a service's sessions, on an in-memory bus."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from nni_proto.experiment.v1 import event_pb2
from svc_common.clock import ManualClock
from svc_common.errors import UnavailableError
from svc_common.experiment_sessions import ExperimentSessions, SessionKind
from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.ports import LogMessage
from svc_common.tasks import TaskOwner

BEGIN, END, NOISE = (
    event_pb2.EventBatch(append_id=word).SerializeToString() for word in ("begin", "end", "noise")
)


class RecordingSession:
    """Session that records what it gets, and ends with the log."""

    def __init__(self, experiment_id: str, failures: int, failure: Exception) -> None:
        self.id = experiment_id
        self.failures = failures
        self.failure = failure
        self.delivered: list[bytes] = []
        self.closed = False
        self._over = asyncio.Event()

    def deliver(self, message: LogMessage) -> None:
        self.delivered.append(message.payload)
        if message.payload == END:
            self._over.set()

    async def serve(self) -> None:
        if self.failures:
            self.failures -= 1
            raise self.failure
        await self._over.wait()

    async def aclose(self) -> None:
        self.closed = True


class Bench:
    """Registry on an in-memory bus; a batch `begin` wants a session, `end` ends it."""

    def __init__(self) -> None:
        self.bus, self.clock = InMemoryBus(), ManualClock()
        self.opened: list[RecordingSession] = []
        self.failures = 0
        self.failure: Exception = RuntimeError("a defect")
        self._sequences: dict[str, int] = {}
        self._tasks = TaskOwner(lambda _, error: pytest.fail(repr(error)))
        kind = SessionKind(self._open, lambda one: one == BEGIN, self._ends)
        self.sessions = ExperimentSessions(self.bus.events, self.clock, kind)

    def start(self) -> None:
        self._tasks.start(self.sessions.run(), "sessions")

    async def append(self, payload: bytes, experiment_id: str = "e") -> None:
        before = self._sequences.get(experiment_id, 0)
        self._sequences[experiment_id] = await self.bus.events.append(
            experiment_id, payload, expected_sequence=before, epoch=1, append_id=str(before)
        )

    async def until_opened(self, count: int) -> None:
        async with asyncio.timeout(10):
            while len(self.opened) < count:  # noqa: ASYNC110 - all happens in this loop
                await asyncio.sleep(0)

    async def until_closed(self) -> None:
        async with asyncio.timeout(10):
            while not self.opened[-1].closed:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0)

    async def aclose(self) -> None:
        await self._tasks.aclose()
        await self.sessions.aclose()

    def _open(self, experiment_id: str) -> RecordingSession:
        self.opened.append(RecordingSession(experiment_id, self.failures, self.failure))
        return self.opened[-1]

    @staticmethod
    def _ends(payload: bytes) -> bool:
        event_pb2.EventBatch.FromString(payload)
        return payload == END


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    await bench.aclose()


async def test_logs_that_have_not_ended_get_a_session_at_the_start(bench: Bench) -> None:
    await bench.append(NOISE, "live")
    await bench.append(END, "over")

    bench.start()
    await bench.until_opened(1)

    assert [one.id for one in bench.opened] == ["live"]


async def test_session_begins_and_ends_with_its_log(bench: Bench) -> None:
    bench.start()
    await bench.append(NOISE)
    await bench.append(BEGIN)
    await bench.until_opened(1)
    await bench.append(NOISE)
    await bench.append(END)

    await bench.until_closed()

    assert bench.opened[0].delivered == [NOISE, END]
    await bench.append(BEGIN)
    await bench.until_opened(2)


@pytest.mark.parametrize("failure", [RuntimeError("a defect"), UnavailableError("read-only disk")])
async def test_session_that_fails_is_served_again_after_a_pause(
    bench: Bench, failure: Exception
) -> None:
    bench.failures, bench.failure = 1, failure
    bench.start()
    await bench.append(BEGIN)
    await bench.until_opened(1)
    async with asyncio.timeout(10):
        while not bench.clock.sleepers:  # noqa: ASYNC110 - all happens in this loop
            await asyncio.sleep(0)
    assert not bench.opened[0].closed

    bench.clock.advance(2.0)
    await bench.append(END)
    await bench.until_closed()

    assert len(bench.opened) == 1


async def test_damaged_log_is_left_alone(bench: Bench) -> None:
    await bench.append(b"\xff\xff\xff", "broken")
    await bench.append(NOISE, "live")

    bench.start()
    await bench.until_opened(1)

    assert [one.id for one in bench.opened] == ["live"]
