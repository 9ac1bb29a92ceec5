"""Sessions of explorations on an in-memory bus, with scripted strategies and a scripted manager."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2, event_pb2
from nni_wire.values import from_value
from svc_common import algorithm_reports
from svc_common.clock import ManualClock
from svc_common.errors import FailedPreconditionError, OutOfRoomError
from svc_common.messaging.memory import InMemoryBus
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.tasks import TaskOwner
from svc_nas.domain.reports import Candidate
from svc_nas.domain.strategy_lines import (
    Added,
    Ended,
    Exhausted,
    Failed,
    Ready,
    StrategyInput,
    StrategyOutput,
    Submitted,
)
from svc_nas.ports import StrategySink, StrategyStart
from svc_nas.sessions.exploration_session import (
    STARTS_LIMIT,
    Dependencies,
    exploration_sessions,
)
from svc_nas.telemetry import Telemetry
from tests.support.scripted_manager import (
    ScriptedManager,
    ended,
    experiment_ended,
    metric,
    requested,
)

DOCUMENT = '{"space": null}'
WAIT_S = 30.0


class ScriptedStrategy:
    """`StrategyProcess` that a test controls."""

    def __init__(self, start: StrategyStart, sink: StrategySink, changed: asyncio.Event) -> None:
        self.start = start
        self.sink = sink
        self.lines: list[StrategyInput] = []
        self.is_live = False
        self.closed = False
        self._changed = changed

    def send(self, lines: Sequence[StrategyInput]) -> None:
        self.lines += lines
        self._changed.set()

    def go_live(self) -> None:
        self.is_live = True
        self._changed.set()

    async def aclose(self) -> None:
        self.closed = True
        self._changed.set()

    def say(self, *outputs: StrategyOutput) -> None:
        self.sink.on_outputs(outputs)

    def submit(self, *widths: int) -> None:
        self.say(
            *(
                Submitted(Candidate(f"{id(self)}-{one}", {"sample": {"width": one}}))
                for one in widths
            )
        )


class ImpatientClock(ManualClock):
    """Clock on which no pause takes time."""

    async def sleep(self, duration_s: float) -> None:
        del duration_s
        await asyncio.sleep(0)


class ScriptedLauncher:
    """`StrategyLauncher` whose processes do what a test says."""

    def __init__(self) -> None:
        self.started: list[ScriptedStrategy] = []
        self.refusal = ""
        self.changed = asyncio.Event()

    async def launch(self, start: StrategyStart, sink: StrategySink) -> ScriptedStrategy:
        if self.refusal:
            raise FailedPreconditionError(self.refusal)
        self.started.append(ScriptedStrategy(start, sink, self.changed))
        self.changed.set()
        return self.started[-1]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    async def process(self, number: int = 1) -> ScriptedStrategy:
        """Wait until a process was started and has got the log; return it."""
        await self.until(lambda: len(self.started) >= number and self.started[number - 1].is_live)
        return self.started[number - 1]


class Bench:
    """NAS service and scripted manager on an in-memory bus."""

    def __init__(self, root: Path) -> None:
        self.bus = InMemoryBus()
        self.blobs = InMemoryBlobStore()
        self.launcher = ScriptedLauncher()
        self.manager = ScriptedManager(self.bus, "exp", root)
        self._tasks = TaskOwner(lambda _, error: pytest.fail(repr(error)))
        self._tasks.start(self.manager.read_inbox(), "inbox")

    def start(self) -> None:
        self._sessions = exploration_sessions(
            Dependencies(
                self.bus.events,
                self.bus.inbox,
                self.blobs,
                self.launcher,
                ImpatientClock(),
                Telemetry(),
            )
        )
        self._running = self._tasks.start(self._sessions.run(), "explorations")

    async def stop(self) -> None:
        self._running.cancel()
        await self._sessions.aclose()

    async def aclose(self) -> None:
        await self.stop()
        await self._tasks.aclose()

    async def create(self, *, stored: bool = True) -> None:
        sha256 = "0" * 64
        if stored:
            sha256 = (await self.blobs.put(DOCUMENT.encode())).rpartition("/")[2]
        document = value_pb2.BlobRef(sha256=sha256, size_bytes=len(DOCUMENT))
        await self.manager.create(
            {}, service="nas", nas=config_pb2.NasConfig(document=document), trial_concurrency=2
        )

    async def running(self) -> ScriptedStrategy:
        """Create an exploration; return its strategy, whose start is in the log."""
        await self.create()
        strategy = await self.launcher.process()
        strategy.say(Ready())
        started = await self.manager.received("algorithm_started")
        await self.manager.append(event_pb2.Event(algorithm_started=started))
        return strategy


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = Bench(tmp_path)
    bench.start()
    yield bench
    await bench.aclose()


def widths(answer: event_pb2.ParametersGenerated) -> list[int]:
    return [from_value(item.parameters)["sample"]["width"] for item in answer.parameters]


async def test_strategy_gets_the_document_that_the_log_names(bench: Bench) -> None:
    strategy = await bench.running()

    assert strategy.start.document == DOCUMENT
    assert strategy.start.concurrency == 2


async def test_candidates_answer_requests_and_their_results_come_back(bench: Bench) -> None:
    strategy = await bench.running()
    strategy.submit(8)
    ((parameter_id, parameters),) = await bench.manager.generate()
    await bench.manager.finish(parameter_id, 0.5)

    await bench.launcher.until(lambda: any(isinstance(one, Ended) for one in strategy.lines))

    assert parameters == {"sample": {"width": 8}}
    assert not any(isinstance(one, Added) for one in strategy.lines)


async def test_candidates_wait_for_room_in_the_blob_store(bench: Bench) -> None:
    strategy = await bench.running()
    put, tries = bench.blobs.put, 0

    async def full(data: bytes) -> str:
        nonlocal tries
        tries += 1
        if tries < 4:
            raise OutOfRoomError("no space to store the blob")
        return await put(data)

    bench.blobs.put = full  # type: ignore[method-assign] # a full disk
    strategy.say(Submitted(Candidate("large", {"sample": {"width": 8}, "text": "y" * 300_000})))
    answer = await bench.manager.answer(await bench.manager.ask(1))

    assert len(answer.parameters) == 1
    assert tries == 4
    (waits,) = bench.manager.all("algorithm_waits")
    assert (waits.generation, waits.reason) == (1, "no space to store the blob")
    assert not strategy.closed


async def test_exploration_whose_candidate_has_too_many_parts_is_given_up(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(algorithm_reports, "PARTS_LIMIT", 300)
    strategy = await bench.running()
    strategy.say(Submitted(Candidate("large", {"sample": {"widths": [1] * 400}})))

    await bench.manager.ask(1)
    gave_up = await bench.manager.received("algorithm_gave_up")

    assert gave_up.generation == 1
    assert "the algorithm must have at most 300 parts" in gave_up.reason
    assert bench.manager.all("parameters_generated") == []


async def test_result_whose_blob_is_missing_does_not_stop_the_exploration(bench: Bench) -> None:
    strategy = await bench.running()
    strategy.submit(8)
    ((parameter_id, _),) = await bench.manager.generate()
    lost = metric(parameter_id, None)
    lost.metric_reported.metric.value.blob_value.sha256 = "0" * 64
    await bench.manager.append(lost, ended(parameter_id))

    await bench.launcher.until(lambda: any(isinstance(one, Ended) for one in strategy.lines))

    assert not strategy.closed


async def test_next_process_gets_the_log_after_what_was_reported_is_in_it(bench: Bench) -> None:
    first = await bench.running()
    first.submit(8)
    answer = await bench.manager.answer(await bench.manager.ask(1))
    first.sink.on_end("killed", clean=False)

    await bench.manager.schedule(answer)
    second = await bench.launcher.process(2)

    assert [one.parameters for one in second.lines if isinstance(one, Added)] == [
        {"sample": {"width": 8}}
    ]


async def test_restarted_service_starts_the_strategy_again(bench: Bench) -> None:
    strategy = await bench.running()
    strategy.submit(8)
    await bench.manager.generate()
    await bench.stop()

    bench.start()
    again = await bench.launcher.process(2)
    again.say(Ready())
    again.submit(9)
    answer = await bench.manager.answer(await bench.manager.ask(1))

    assert strategy.closed
    assert widths(answer) == [9]


async def test_exhausted_strategy_ends_the_search_without_another_process(bench: Bench) -> None:
    strategy = await bench.running()
    strategy.say(Exhausted())
    strategy.sink.on_end("exit code 0", clean=True)

    answer = await bench.manager.answer(await bench.manager.ask(1))

    assert answer.exhausted
    assert len(bench.launcher.started) == 1


async def test_strategy_that_raises_ends_the_exploration(bench: Bench) -> None:
    strategy = await bench.running()
    strategy.say(Failed("ValueError: no layer"))

    gave_up = await bench.manager.received("algorithm_gave_up")

    assert gave_up.reason == "ValueError: no layer"


async def test_document_that_is_not_stored_ends_the_exploration(bench: Bench) -> None:
    await bench.create(stored=False)

    gave_up = await bench.manager.received("algorithm_gave_up")

    assert "create the exploration again" in gave_up.reason


async def test_process_that_cannot_be_started_ends_the_exploration(bench: Bench) -> None:
    bench.launcher.refusal = "no python"
    await bench.create()

    assert (await bench.manager.received("algorithm_gave_up")).reason == "no python"


async def test_process_that_never_runs_is_given_up(bench: Bench) -> None:
    await bench.create()
    for number in range(1, STARTS_LIMIT + 1):
        strategy = await bench.launcher.process(number)
        strategy.sink.on_end("exit code 1: ImportError", clean=False)

    gave_up = await bench.manager.received("algorithm_gave_up")

    assert gave_up.reason.startswith("exit code 1: ImportError")


async def test_stopped_experiment_ends_its_process(bench: Bench) -> None:
    strategy = await bench.running()

    await bench.manager.append(experiment_ended())
    await bench.launcher.until(lambda: strategy.closed)

    assert bench.launcher.started == [strategy]


async def test_resumed_experiment_has_another_process(bench: Bench) -> None:
    first = await bench.running()

    await bench.manager.append(experiment_ended(), requested(2, "nas"))
    second = await bench.launcher.process(2)

    assert first.closed
    assert second.start.document == DOCUMENT
