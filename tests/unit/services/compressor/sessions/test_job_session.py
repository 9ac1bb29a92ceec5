"""Sessions of jobs on an in-memory bus, with a scripted manager."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nni_proto.experiment.v1 import config_pb2, event_pb2
from nni_wire.values import from_value, to_value
from svc_common.clock import ManualClock
from svc_common.errors import OutOfRoomError
from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.ports import Inbox
from svc_common.tasks import TaskOwner
from svc_compressor.sessions.job_session import job_sessions
from svc_compressor.telemetry import Telemetry
from tests.support.compression_job import job_of
from tests.support.scripted_manager import ScriptedManager, experiment_ended, named, requested

SPACE: dict[str, object] = {}


class Bench:
    """Compressor and scripted manager on an in-memory bus."""

    def __init__(self, root: Path) -> None:
        self.bus = InMemoryBus()
        self.clock = ManualClock()
        self.manager = ScriptedManager(self.bus, "exp", root)
        self._tasks = TaskOwner(lambda _, error: pytest.fail(repr(error)))
        self._tasks.start(self.manager.read_inbox(), "inbox")

    def start(self, inbox: Inbox | None = None) -> None:
        self._sessions = job_sessions(
            self.bus.events, inbox or self.bus.inbox, self.clock, Telemetry(self.clock)
        )
        self._running = self._tasks.start(self._sessions.run(), "jobs")

    async def stop(self) -> None:
        self._running.cancel()
        await self._sessions.aclose()

    async def aclose(self) -> None:
        await self.stop()
        await self._tasks.aclose()

    async def create(self, generation: int = 1) -> None:
        job = config_pb2.CompressionConfig(job=to_value(job_of()))
        await self.manager.create(
            SPACE, generation=generation, service="compressor", compression=job
        )


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = Bench(tmp_path)
    bench.start()
    yield bench
    await bench.aclose()


async def test_job_runs_step_by_step_to_its_completion(bench: Bench) -> None:
    await bench.create()
    await bench.manager.received("algorithm_started")
    steps = []
    for _ in range(3):
        ((parameter_id, parameters),) = await bench.manager.generate()
        steps.append(parameters["step"])
        await bench.manager.finish(parameter_id, {"default": 0.5})

    last = await bench.manager.answer(await bench.manager.ask(1))

    assert steps == [1, 2, 3]
    assert last.exhausted


async def test_restarted_compressor_answers_what_its_predecessor_left(bench: Bench) -> None:
    await bench.create()
    ((parameter_id, _),) = await bench.manager.generate()
    await bench.stop()
    await bench.manager.finish(parameter_id, {"default": 0.5})
    request = await bench.manager.ask(1)

    bench.start()
    answer = await bench.manager.answer(request)

    assert from_value(answer.parameters[0].parameters)["step"] == 2


async def test_each_report_is_sent_once(bench: Bench) -> None:
    await bench.create()
    request = await bench.manager.ask(1)
    await bench.manager.answer(request)
    noise = event_pb2.Event(report_ignored=event_pb2.ReportIgnored())
    await bench.manager.append(noise)
    await bench.manager.append(noise)

    await bench.manager.append(experiment_ended(), requested(2, "compressor"))
    await bench.manager.received("algorithm_started", lambda m: m.generation == 2)

    assert len(bench.manager.all("parameters_generated")) == 1


async def test_experiments_with_a_tuner_are_left_to_the_dispatcher(bench: Bench) -> None:
    await bench.manager.create(SPACE, tuner=named("Random"))
    await bench.manager.ask(1)
    other = ScriptedManager(bench.bus, "job", bench.manager.root)
    reading = asyncio.ensure_future(other.read_inbox())
    job = config_pb2.CompressionConfig(job=to_value(job_of()))
    await other.create(SPACE, service="compressor", compression=job)

    await other.received("algorithm_started")

    assert bench.manager.inbox == []
    reading.cancel()


class FullInbox:
    """INBOX whose first publications find no room."""

    def __init__(self, inner: Inbox, refusals: int) -> None:
        self._inner = inner
        self._refusals = refusals

    async def publish(
        self, experiment_id: str, source: str, payload: bytes, *, message_id: str
    ) -> None:
        if self._refusals:
            self._refusals -= 1
            raise OutOfRoomError("the bus has no room")
        await self._inner.publish(experiment_id, source, payload, message_id=message_id)


async def test_report_waits_while_the_bus_has_no_room(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.start(FullInbox(bench.bus.inbox, refusals=2))  # type: ignore[arg-type] # publishes only
    await bench.create()
    received = asyncio.ensure_future(bench.manager.received("algorithm_started"))
    while not received.done():
        bench.clock.advance(0.2)
        await asyncio.sleep(0)

    assert (await received).generation == 1
    await bench.aclose()
