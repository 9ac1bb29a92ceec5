import asyncio
from asyncio import TimerHandle
from collections.abc import Callable
from dataclasses import replace

import pytest

from nni_proto.runner.v1 import task_pb2
from nni_proto.trial.v1 import cause_pb2
from svc_common.clock import ManualClock
from svc_common.subjects import presence_subject
from svc_trial_runner.agent.presence import PRESENCE_EVERY_S, Presence, RunnerIdentity
from tests.unit.services.trial_runner.conftest import WAIT_S, Bench

IDENTITY = RunnerIdentity("r", "b", "local", "host", "1.0", "127.0.0.1:1")


async def test_presence_is_published_regularly(bench: Bench) -> None:
    clock = ManualClock()
    heard = await bench.bus.signals.subscribe(presence_subject("r"))
    presence = Presence(bench.agent(slots=4), IDENTITY, bench.bus.signals, clock, 2)
    bench.tasks.start(presence.run(), "presence")

    first = await asyncio.wait_for(anext(heard), WAIT_S)
    clock.advance(PRESENCE_EVERY_S)
    second = await asyncio.wait_for(anext(heard), WAIT_S)

    message = task_pb2.RunnerPresence.FromString(first.payload)
    again = task_pb2.RunnerPresence.FromString(second.payload)
    assert PRESENCE_EVERY_S == 5
    assert again.sent_at.seconds - message.sent_at.seconds == PRESENCE_EVERY_S
    for one in (message, again):
        one.ClearField("sent_at")
        one.ClearField("running_time")
    assert message == again
    assert (message.runner_id, message.boot_id, message.pool) == ("r", "b", "local")
    assert (message.gpu_count, message.draining, message.leaving) == (2, False, False)
    assert (message.host_name, message.version) == ("host", "1.0")
    assert (message.uploads, message.restarted) == (0, False)
    assert message.slots == 4
    assert message.grpc_address == "127.0.0.1:1"


async def test_change_is_published_soon(bench: Bench) -> None:
    heard = await bench.bus.signals.subscribe(presence_subject("r"))
    agent = bench.agent()
    presence = Presence(agent, IDENTITY, bench.bus.signals, ManualClock(), 0, debounce_s=0.0)

    agent.drain()

    message = task_pb2.RunnerPresence.FromString(
        (await asyncio.wait_for(anext(heard), WAIT_S)).payload
    )
    assert message.draining
    presence.publish(leaving=True)
    message = task_pb2.RunnerPresence.FromString(
        (await asyncio.wait_for(anext(heard), WAIT_S)).payload
    )
    assert message.leaving


async def test_changes_within_half_a_second_are_published_together(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[float] = []
    loop = asyncio.get_running_loop()
    later: Callable[..., TimerHandle] = loop.call_later

    def call_later(delay: float, callback: Callable[..., object], *args: object) -> TimerHandle:
        delays.append(delay)
        return later(delay, callback, *args)

    agent = bench.agent()
    presence = Presence(agent, IDENTITY, bench.bus.signals, ManualClock(), 0)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "call_later", call_later)
        agent.drain()
        agent.set_slots(3)
    presence.publish()

    assert delays == [0.5]


async def test_published_presence_replaces_a_pending_one(bench: Bench) -> None:
    heard = await bench.bus.signals.subscribe(presence_subject("r"))
    agent = bench.agent()
    presence = Presence(agent, IDENTITY, bench.bus.signals, ManualClock(), 0, debounce_s=0.0)

    agent.drain()
    presence.publish()
    for _ in range(3):
        await asyncio.sleep(0)
    presence.publish(leaving=True)
    agent.drain()

    signals = [await asyncio.wait_for(anext(heard), WAIT_S) for _ in range(3)]
    messages = [task_pb2.RunnerPresence.FromString(signal.payload) for signal in signals]
    assert [message.leaving for message in messages] == [False, True, False]


async def test_outputs_that_are_not_stored_are_counted(bench: Bench) -> None:
    heard = await bench.bus.signals.subscribe(presence_subject("r"))
    signals, clock = bench.bus.signals, ManualClock()
    presence = Presence(bench.agent(), IDENTITY, signals, clock, 0, uploads=lambda: 2)

    presence.publish()

    message = task_pb2.RunnerPresence.FromString(
        (await asyncio.wait_for(anext(heard), WAIT_S)).payload
    )
    assert message.uploads == 2


async def test_time_of_the_process_is_published(bench: Bench) -> None:
    clock = ManualClock()
    heard = await bench.bus.signals.subscribe(presence_subject("r"))
    presence = Presence(bench.agent(), IDENTITY, bench.bus.signals, clock, 0)
    clock.advance(90.0)

    presence.publish()

    message = task_pb2.RunnerPresence.FromString((await asyncio.wait_for(anext(heard), 5)).payload)
    assert message.running_time.ToSeconds() == 90


async def test_restart_is_published_for_a_while(bench: Bench) -> None:
    clock = ManualClock()
    heard = await bench.bus.signals.subscribe(presence_subject("r"))
    identity = replace(IDENTITY, restarted=True)
    presence = Presence(bench.agent(), identity, bench.bus.signals, clock, 0)

    restarted = []
    for _ in range(5):
        presence.publish()
        signal = await asyncio.wait_for(anext(heard), WAIT_S)
        restarted.append(task_pb2.RunnerPresence.FromString(signal.payload).restarted)
        clock.advance(PRESENCE_EVERY_S)

    assert restarted == [True, True, True, False, False]


async def test_restart_is_published_for_twelve_seconds(bench: Bench) -> None:
    clock = ManualClock()
    heard = await bench.bus.signals.subscribe(presence_subject("r"))
    identity = replace(IDENTITY, restarted=True)
    presence = Presence(bench.agent(), identity, bench.bus.signals, clock, 0)

    restarted = []
    for elapsed_s in (11.5, 0.5):
        clock.advance(elapsed_s)
        presence.publish()
        signal = await asyncio.wait_for(anext(heard), WAIT_S)
        restarted.append(task_pb2.RunnerPresence.FromString(signal.payload).restarted)

    assert restarted == [True, False]


async def test_waiting_trial_is_published_with_its_cause(bench: Bench) -> None:
    heard = await bench.bus.signals.subscribe(presence_subject("r"))
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", gpu_number=1))
    await bench.until_kind("one", "waits")
    presence = Presence(agent, IDENTITY, bench.bus.signals, ManualClock(), 0)

    presence.publish()

    signal = await asyncio.wait_for(anext(heard), WAIT_S)
    (held,) = task_pb2.RunnerPresence.FromString(signal.payload).trials
    assert held.wait.cause == cause_pb2.WAIT_CAUSE_GPU_MISSING
    assert held.waiting_for == "waiting for 1 GPU: this machine has 0"


async def test_agent_without_a_limit_of_slots_publishes_none(bench: Bench) -> None:
    heard = await bench.bus.signals.subscribe(presence_subject("r"))
    presence = Presence(bench.agent(), IDENTITY, bench.bus.signals, ManualClock(), 0)

    presence.publish()

    signal = await asyncio.wait_for(anext(heard), WAIT_S)
    assert task_pb2.RunnerPresence.FromString(signal.payload).slots == 0
