"""Runs of a generation with a recorded owner and a recorded host."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from nni_wire.values import to_value
from svc_common.clock import ManualClock
from svc_common.errors import FailedPreconditionError
from svc_common.messaging.callback_queue import CallbackQueue
from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.ports import LogMessage
from svc_common.storage.large_values import LargeValues
from svc_common.storage.memory import InMemoryBlobStore
from svc_dispatcher.domain import answers, commands
from svc_dispatcher.domain.values import ExperimentSetup, Position
from svc_dispatcher.ports import HostSink
from svc_dispatcher.sessions.generation import GenerationRun, RunEnd, SessionDependencies
from tests.support.manual_timers import ManualTimers
from tests.support.scripted_manager import (
    ScriptedManager,
    ended,
    experiment_ended,
    handed_over,
    metric,
    named,
    scheduled,
    trial_of,
)
from tests.unit.services.dispatcher.sessions.conftest import SPACE, turns

BATCHING_DELAY_S = 0.02


class Owner:
    """`GenerationOwner` that records its calls."""

    id = "exp"

    def __init__(self) -> None:
        self.reports: list[answers.Report] = []
        self.deaths: list[tuple[Position | None, str]] = []
        self.done: list[tuple[Position, bool]] = []
        self.last_given_up = 0
        self.give_up_reason = ""

    def report(self, generation: int, report: answers.Report) -> None:
        self.reports.append(report)

    def given_up(self, generation: int) -> bool:
        return generation <= self.last_given_up

    def give_up(self, generation: int) -> None:
        self.last_given_up = generation

    def handled(self, position: Position, *, everything: bool) -> None:
        self.done.append((position, everything))

    def host_died(self, generation: int, position: Position | None, reason: str) -> str:
        self.deaths.append((position, reason))
        return self.give_up_reason


class Host:
    """`HostLauncher` of itself: `AlgorithmHost` that records its commands."""

    def __init__(self) -> None:
        self.batches: list[list[commands.Command]] = []
        self.closed = 0
        self.failure: Exception | None = None

    async def launch(self, setup: ExperimentSetup, sink: HostSink, *, eager: bool) -> Host:
        if self.failure is not None:
            raise self.failure
        return self

    def send(self, commands: Sequence[commands.Command]) -> None:
        self.batches.append(list(commands))

    async def aclose(self) -> None:
        self.closed += 1


class Bench:
    """One run on the log of one experiment."""

    def __init__(self, folder: Path) -> None:
        self.bus, self.clock = InMemoryBus(), ManualClock()
        self.manager = ScriptedManager(self.bus, "exp", folder)
        self.owner, self.host = Owner(), Host()
        self.box: CallbackQueue[LogMessage] = CallbackQueue()

    def start(self) -> GenerationRun:
        dependencies = SessionDependencies(
            events=self.bus.events,
            inbox=self.bus.inbox,
            blobs=LargeValues(InMemoryBlobStore()),
            launcher=self.host,
            clock=self.clock,
            answer_timeout_s=600.0,
            idle_limit_s=60.0,
        )
        self.run = GenerationRun(self.owner, dependencies)
        self.running = asyncio.ensure_future(self.run.run(self.box, eager=False))
        return self.run

    async def deliver_new(self) -> None:
        """Pass on the last message of the log, as the registry does."""
        last = await self.bus.events.last("exp")
        assert last is not None
        self.box.put(last)

    async def launched(self) -> commands.Command:
        self.start()
        await turns(lambda: self.host.batches)
        return self.host.batches[0][0]


@pytest.fixture
async def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    await bench.manager.create(SPACE, tuner=named("Random"))
    return bench


async def test_ended_experiment_needs_no_host(bench: Bench) -> None:
    await bench.manager.append(experiment_ended())

    run = bench.start()

    assert await bench.running is RunEnd.EXPERIMENT_ENDED
    assert bench.host.batches == []
    await run.aclose()


async def test_first_command_initializes_the_host(bench: Bench) -> None:
    first = await bench.launched()

    assert isinstance(first, commands.Initialize)
    await bench.run.aclose()
    assert bench.host.closed == 1
    assert await bench.running is RunEnd.READ_AGAIN


async def test_nothing_goes_to_or_from_a_host_whose_tuner_was_replaced(bench: Bench) -> None:
    await bench.launched()
    await bench.manager.append(handed_over(2, named("Anneal")))
    await bench.deliver_new()

    assert await bench.running is RunEnd.READ_AGAIN
    bench.run.on_outputs([answers.Ready(lookahead=False, assesses=False, provenance=())])
    bench.run.on_end("it was closed")

    assert len(bench.host.batches) == 1
    assert bench.owner.reports == []
    assert bench.owner.deaths == []
    await bench.run.aclose()


async def test_host_that_cannot_be_launched_is_given_up_with_the_reason(bench: Bench) -> None:
    bench.host.failure = FailedPreconditionError("no interpreter")

    run = bench.start()
    await turns(lambda: bench.owner.reports)

    assert bench.owner.reports == [answers.GaveUp(1, "no interpreter")]
    assert bench.owner.last_given_up == 1
    await run.aclose()


async def test_commands_without_a_waiting_caller_are_sent_in_one_batch(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers = ManualTimers(monkeypatch, BATCHING_DELAY_S)
    await bench.launched()
    await bench.manager.append(scheduled(trial_of(0), 0, to_value({"x": 0.5})))
    await bench.deliver_new()
    for event in (metric(0, 0.25), ended(0)):
        await bench.manager.append(event)
        await bench.deliver_new()
    await turns(lambda: timers.pending)
    await asyncio.sleep(0)

    before = len(bench.host.batches)
    timers.fire()

    assert before == 1
    assert [type(command) for command in bench.host.batches[1]] == [
        commands.TellMetric,
        commands.TellEnd,
    ]
    await bench.run.aclose()


async def test_result_whose_blob_is_missing_reaches_the_host_as_null(bench: Bench) -> None:
    lost = metric(0, None)
    lost.metric_reported.metric.value.blob_value.sha256 = "0" * 64
    await bench.manager.append(scheduled(trial_of(0), 0, to_value({"x": 0.5})), lost)

    await bench.launched()

    (result,) = [one for one in bench.host.batches[0] if isinstance(one, commands.TellMetric)]
    assert result.value == to_value(None)
    await bench.run.aclose()


async def test_request_is_sent_at_once_with_the_commands_before_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers = ManualTimers(monkeypatch, BATCHING_DELAY_S)
    await bench.launched()
    await bench.manager.append(scheduled(trial_of(0), 0, to_value({"x": 0.5})), metric(0, 0.25))
    await bench.deliver_new()
    await turns(lambda: timers.pending)

    await bench.manager.ask(1)
    await bench.deliver_new()
    await turns(lambda: len(bench.host.batches) == 2)

    assert [type(command) for command in bench.host.batches[1]] == [
        commands.TellMetric,
        commands.Generate,
    ]
    assert timers.pending == 0
    await bench.run.aclose()


async def test_end_of_a_host_is_blamed_on_the_oldest_command_that_it_had(bench: Bench) -> None:
    first = await bench.launched()

    bench.run.on_end("killed")

    assert await bench.running is RunEnd.READ_AGAIN
    assert bench.owner.deaths == [(first.position, "killed")]
    await bench.run.aclose()


async def test_end_of_a_host_that_has_handled_everything_is_blamed_on_nothing(
    bench: Bench,
) -> None:
    first = await bench.launched()
    bench.run.on_outputs([answers.Done(first.position)])

    bench.run.on_end("killed")

    assert bench.owner.done == [(first.position, True)]
    assert bench.owner.deaths == [(None, "killed")]
    await bench.run.aclose()


async def test_exception_that_ended_the_host_is_the_reason(bench: Bench) -> None:
    first = await bench.launched()
    failed = answers.CallFailed(first.position, "generate", "line\nValueError: no", skipped=False)

    bench.run.on_outputs([failed])
    bench.run.on_end("ended with exit code 1")

    assert bench.owner.deaths == [(first.position, "generate: ValueError: no")]
    await bench.run.aclose()


async def test_hopeless_algorithm_is_given_up_and_the_run_goes_on(bench: Bench) -> None:
    await bench.launched()
    bench.owner.give_up_reason = "it failed 3 times"

    bench.run.on_end("killed")

    assert bench.owner.reports == [answers.GaveUp(1, "it failed 3 times")]
    assert not bench.running.done()
    await bench.run.aclose()


async def test_algorithm_that_cannot_be_built_is_reported_and_given_up(bench: Bench) -> None:
    first = await bench.launched()

    bench.run.on_outputs([answers.Unbuildable(first.position, "no module m", "traceback")])

    assert bench.owner.reports == [
        answers.CallFailed(first.position, "__init__", "traceback", skipped=False),
        answers.GaveUp(1, "no module m"),
    ]
    await bench.run.aclose()
