"""Effects on bus, ports and summaries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection

import pytest

from nni_proto.runner.v1 import task_pb2
from svc_common import subjects
from svc_common.clock import ManualClock
from svc_common.experiment_events.causes import StopCause, StopReason
from svc_common.messaging.memory import InMemoryBus
from svc_common.storage.memory import InMemoryBlobStore
from svc_manager.actors.effect_runner import EffectRunner
from svc_manager.blobs.large_values import LargeValues
from svc_manager.domain.effects import (
    CloseListener,
    ForgetExperiment,
    OpenListener,
    PublishAgain,
    PublishTask,
    SendDrop,
    SendStop,
    WithdrawTask,
    WriteSummary,
)
from svc_manager.domain.reports import Started
from tests.unit.services.manager.building import EXPERIMENT_ID, Lab
from tests.unit.services.manager.world import PATIENCE_S, InMemoryListeners


class OneAgent:
    """`Agents` with the agent r1."""

    def of_pools(self, pools: Collection[str]) -> list[str]:
        return ["r1"] if "local" in pools else []

    def expect(self, *_: object) -> None:
        """Do nothing."""


class Bench:
    """Effect runner of a lab's experiment, on a bus in memory."""

    def __init__(self, bus: InMemoryBus) -> None:
        self.bus = bus
        self.lab = Lab()
        self.clock = ManualClock()
        self.listeners = InMemoryListeners()
        self.summaries = 0
        self.runner = EffectRunner(
            self.lab.experiment,
            bus,
            self.listeners,
            self._write_summary,
            OneAgent(),
            LargeValues(InMemoryBlobStore()),
            lambda: 42,
            self.clock,
            traceparent=lambda experiment_id, parameter_id: f"{experiment_id}-{parameter_id}",
        )

    async def _write_summary(self) -> None:
        self.summaries += 1
        await asyncio.sleep(0)

    async def tasks(self, count: int) -> list[task_pb2.TrialTask]:
        """Pull ``count`` tasks."""
        feed = await self.bus.tasks.pull("local")
        found: list[task_pb2.TrialTask] = []
        try:
            feed.grant(100)
            async with asyncio.timeout(PATIENCE_S):
                async for task in feed:
                    found.append(task_pb2.TrialTask.FromString(task.payload))
                    if len(found) == count:
                        break
        finally:
            await feed.aclose()
        return found


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with InMemoryBus() as bus:
        made = Bench(bus)
        yield made
        await made.runner.aclose()


async def test_a_task_carries_attempt_trace_and_position(bench: Bench) -> None:
    trial = bench.lab.waiting()

    await bench.runner.run([PublishTask(trial.id, 1)])

    (task,) = await bench.tasks(1)
    assert (task.trial_id, task.attempt, task.log_sequence) == (trial.id, 1, 42)
    assert task.traceparent == f"{EXPERIMENT_ID}-{trial.parameter_id}"


async def test_the_task_of_a_retried_trial_is_pulled_before_older_tasks(bench: Bench) -> None:
    retried = bench.lab.waiting()
    other = next(t for t in bench.lab.experiment.live.values() if t.id != retried.id)
    await bench.runner.run([PublishTask(other.id, 1)])
    await bench.runner.drain()
    retried.attempt = 2

    await bench.runner.run([PublishTask(retried.id, 2)])
    await bench.runner.drain()

    assert [task.trial_id for task in await bench.tasks(2)] == [retried.id, other.id]


async def test_the_task_of_an_earlier_attempt_is_not_published(bench: Bench) -> None:
    first = bench.lab.waiting()
    other = next(t for t in bench.lab.experiment.live.values() if t.id != first.id)

    await bench.runner.run([PublishTask(first.id, 7), PublishTask(other.id, 1)])

    (task,) = await bench.tasks(1)
    assert task.trial_id == other.id


async def test_a_withdrawn_task_is_pulled_by_no_agent(bench: Bench) -> None:
    first = bench.lab.waiting()
    other = next(t for t in bench.lab.experiment.live.values() if t.id != first.id)
    await bench.runner.run([PublishTask(first.id, 1)])
    await bench.runner.drain()

    await bench.runner.run([WithdrawTask(first.id, 1), PublishTask(other.id, 1)])
    await bench.runner.drain()

    (task,) = await bench.tasks(1)
    assert task.trial_id == other.id


async def test_a_task_published_again_replaces_the_first_one(bench: Bench) -> None:
    first = bench.lab.waiting()
    other = next(t for t in bench.lab.experiment.live.values() if t.id != first.id)
    await bench.runner.run([PublishTask(first.id, 1)])
    await bench.runner.drain()

    await bench.runner.run([PublishAgain(first.id, 1, "boot2")])
    await bench.runner.drain()
    await bench.runner.run([PublishTask(other.id, 1)])
    await bench.runner.drain()

    assert [task.trial_id for task in await bench.tasks(2)] == [first.id, other.id]


async def test_a_claimed_task_is_not_published_again(bench: Bench) -> None:
    first = bench.lab.waiting()
    other = next(t for t in bench.lab.experiment.live.values() if t.id != first.id)
    await bench.runner.run([PublishTask(first.id, 1)])
    await bench.runner.drain()
    assert len(await bench.tasks(1)) == 1
    for event in bench.lab.report(first, 0, Started(1)):
        bench.runner.observe(event)

    await bench.runner.run([PublishAgain(first.id, 1, "boot2"), PublishTask(other.id, 1)])

    (task,) = await bench.tasks(1)
    assert task.trial_id == other.id


async def test_orders_go_to_the_agent_of_the_trial(bench: Bench) -> None:
    orders = await bench.bus.signals.subscribe(subjects.control_subject("r1"))

    await bench.runner.run(
        [
            SendStop("r1", "t1", 2, StopReason(StopCause.USER)),
            SendDrop("r1", "t2", 1, "c1"),
            SendStop("", "t3", 1, StopReason(StopCause.USER)),
            ForgetExperiment(),
        ]
    )

    async with asyncio.timeout(PATIENCE_S):
        found = [task_pb2.RunnerControl.FromString((await anext(orders)).payload) for _ in range(3)]
    await orders.aclose()
    assert found[0].stop_trial.reason == "killed by the user"
    assert found[1].drop_trial.claim_id == "c1"
    assert found[2].forget_experiment.experiment_id == EXPERIMENT_ID
    assert {control.log_sequence for control in found} == {42}


async def test_a_port_in_use_is_tried_again(bench: Bench) -> None:
    bench.lab.experiment.port = 8080
    bench.listeners.taken[8080] = "program nginx"
    await bench.runner.run([OpenListener(8080, "p")])
    async with asyncio.timeout(PATIENCE_S):
        while not bench.clock.sleepers:  # noqa: ASYNC110 - the clock has no event of its sleepers
            await asyncio.sleep(0)

    del bench.listeners.taken[8080]
    bench.clock.advance(1.0)
    await bench.runner.drain()

    assert bench.listeners.open == {EXPERIMENT_ID: (8080, "p")}


async def test_a_closed_port_is_free_when_run_returns(bench: Bench) -> None:
    bench.lab.experiment.port = 8080
    await bench.runner.run([OpenListener(8080, "")])
    await bench.runner.drain()

    await bench.runner.run([CloseListener()])

    assert not bench.listeners.open


async def test_summaries_requested_meanwhile_become_one_write(bench: Bench) -> None:
    await bench.runner.run([WriteSummary()])
    await asyncio.sleep(0)

    await bench.runner.run([WriteSummary(), WriteSummary()])
    await bench.runner.drain()

    assert bench.summaries == 2
