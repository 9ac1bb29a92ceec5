from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from nni_proto.runner.v1 import task_pb2
from nni_proto.trial.v1 import report_pb2
from svc_common.messaging.ports import Task
from svc_common.subjects import control_subject
from svc_trial_runner.consumers import ControlConsumer, TaskConsumer
from tests.unit.services.trial_runner.conftest import EXPERIMENT, POOL, WAIT_S, Bench


async def publish(bench: Bench, trial_id: str, command: str = "true") -> None:
    message = bench.task(trial_id, command)
    await bench.bus.tasks.publish(POOL, message.SerializeToString(), message_id=trial_id)


async def test_tasks_flow_without_slots(bench: Bench) -> None:
    agent = bench.agent()
    consumer = TaskConsumer(await bench.bus.tasks.pull(POOL), agent)
    bench.tasks.start(consumer.run(), "tasks")

    for number in range(5):
        await publish(bench, f"t{number}")
    for number in range(5):
        await bench.until_kind(f"t{number}", "exited")

    assert [bench.kinds(f"t{number}") for number in range(5)] == [["started", "exited"]] * 5
    await consumer.finish()


class ManualFeed:
    """`TaskFeed` without tasks; records grants."""

    def __init__(self) -> None:
        self.granted = 0
        self.grants: list[int] = []

    def grant(self, count: int) -> None:
        self.granted += count
        self.grants.append(count)

    def __aiter__(self) -> ManualFeed:
        return self

    async def __anext__(self) -> Task:
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Do nothing."""


async def test_an_agent_without_slots_tops_up_its_grant_below_one_half(bench: Bench) -> None:
    feed = ManualFeed()
    consumer = TaskConsumer(feed, bench.agent())
    await consumer.run()
    (first,) = feed.grants

    feed.granted = first // 2
    await consumer.run()
    feed.granted = first // 2 - 1
    await consumer.run()

    assert feed.grants == [first, first // 2 + 1]
    assert first == 1000


@pytest.mark.parametrize(("granted", "more"), [(0, 3), (1, 2), (3, 0), (4, 0)])
async def test_an_agent_with_slots_requests_what_its_room_lacks(
    bench: Bench, granted: int, more: int
) -> None:
    feed = ManualFeed()
    feed.granted = granted

    await TaskConsumer(feed, bench.agent(slots=3)).run()

    assert feed.grants == [more]


async def test_slots_bound_what_is_pulled(bench: Bench) -> None:
    agent = bench.agent(slots=1)
    consumer = TaskConsumer(await bench.bus.tasks.pull(POOL), agent)
    bench.tasks.start(consumer.run(), "tasks")

    for number in range(3):
        await publish(bench, f"t{number}")
    for number in range(3):
        await bench.until_kind(f"t{number}", "exited")

    kinds = [report.WhichOneof("kind") for report in bench.heard]
    assert kinds == ["started", "exited"] * 3
    await consumer.finish()


async def test_draining_agent_pulls_no_more(bench: Bench) -> None:
    agent = bench.agent()
    feed = await bench.bus.tasks.pull(POOL)
    consumer = TaskConsumer(feed, agent)
    bench.tasks.start(consumer.run(), "tasks")
    bench.tasks.start(consumer.close_when_draining(), "close tasks")

    agent.drain()
    await asyncio.wait_for(bench.tasks.drain(), WAIT_S)
    await publish(bench, "late")

    assert agent.attempts == []
    assert bench.heard == []


async def test_orders_reach_the_agent_and_nonsense_stops_nothing(bench: Bench) -> None:
    agent = bench.agent()
    controls = ControlConsumer(await bench.bus.signals.subscribe(control_subject("r")), agent)
    bench.tasks.start(controls.run(), "controls")
    await bench.deliver(agent, bench.task("one", "sleep 30"))
    await bench.until_kind("one", "started")

    bench.bus.signals.publish(control_subject("r"), b"\xff\xff")
    for order in (
        task_pb2.RunnerControl(),
        task_pb2.RunnerControl(set_runner_slots=task_pb2.SetRunnerSlots(slots=3)),
        task_pb2.RunnerControl(
            stop_trial=task_pb2.StopTrial(experiment_id=EXPERIMENT, trial_id="one", attempt=1)
        ),
        task_pb2.RunnerControl(
            forget_experiment=task_pb2.ForgetExperiment(experiment_id="another1")
        ),
        task_pb2.RunnerControl(drain_runner=task_pb2.DrainRunner()),
    ):
        bench.bus.signals.publish(control_subject("r"), order.SerializeToString())

    ended = await bench.until_kind("one", "exited")
    await asyncio.wait_for(agent.wait_drained(), WAIT_S)
    assert agent.slots == 3
    assert ended.exited.cause == report_pb2.EXIT_CAUSE_STOPPED
    assert bench.failures == []


async def test_drop_reaches_the_agent(bench: Bench) -> None:
    agent = bench.agent()
    controls = ControlConsumer(await bench.bus.signals.subscribe(control_subject("r")), agent)
    bench.tasks.start(controls.run(), "controls")
    await bench.deliver(agent, bench.task("one", gpu_number=1))
    waits = await bench.until_kind("one", "waits")
    dropped = asyncio.Event()
    agent.on_change(dropped.set)

    order = task_pb2.RunnerControl(
        drop_trial=task_pb2.DropTrial(
            experiment_id=EXPERIMENT, trial_id="one", attempt=1, claim_id=waits.claim_id
        )
    )
    bench.bus.signals.publish(control_subject("r"), order.SerializeToString())
    await asyncio.wait_for(dropped.wait(), WAIT_S)

    assert agent.attempts == []


async def test_forgetting_an_experiment_ends_its_attempts(bench: Bench) -> None:
    agent = bench.agent()
    controls = ControlConsumer(await bench.bus.signals.subscribe(control_subject("r")), agent)
    bench.tasks.start(controls.run(), "controls")
    await bench.deliver(agent, bench.task("one", gpu_number=1))
    await bench.until_kind("one", "waits")
    changed = asyncio.Event()
    agent.on_change(changed.set)

    order = task_pb2.RunnerControl(
        forget_experiment=task_pb2.ForgetExperiment(experiment_id=EXPERIMENT)
    )
    bench.bus.signals.publish(control_subject("r"), order.SerializeToString())
    await asyncio.wait_for(changed.wait(), WAIT_S)

    assert agent.attempts == []


async def test_pull_goes_on_until_the_agent_drains(bench: Bench) -> None:
    agent = bench.agent()
    closing = asyncio.ensure_future(TaskConsumer(ManualFeed(), agent).close_when_draining())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not closing.done()

    agent.drain()

    await asyncio.wait_for(closing, WAIT_S)
    assert agent.draining


async def test_order_that_is_none_is_logged(bench: Bench) -> None:
    agent = bench.agent()
    controls = ControlConsumer(await bench.bus.signals.subscribe(control_subject("r")), agent)
    drain = task_pb2.RunnerControl(drain_runner=task_pb2.DrainRunner())
    with capture_logs() as lines:
        bench.tasks.start(controls.run(), "controls")
        for payload in (b"\xff\xff", drain.SerializeToString()):
            bench.bus.signals.publish(control_subject("r"), payload)
        await asyncio.wait_for(agent.wait_drained(), WAIT_S)

    assert [line["event"] for line in lines if line["log_level"] == "error"] == ["order refused"]
