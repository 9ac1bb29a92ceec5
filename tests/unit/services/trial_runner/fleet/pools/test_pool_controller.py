import asyncio
import itertools
from contextlib import aclosing

import pytest
from structlog.testing import capture_logs

from nni_proto.runner.v1 import pool_pb2, task_pb2
from svc_common.clock import ManualClock
from svc_common.messaging.memory import InMemoryBus
from svc_common.subjects import control_subject, pool_state_subject
from svc_trial_runner.fleet.adapters.memory import InMemoryPlatform, InMemoryPlatformAdapter
from svc_trial_runner.fleet.domain.agents import AgentPhase
from svc_trial_runner.fleet.domain.pool_events import (
    NeedChanged,
    PresenceReceived,
    RestoredAgent,
    StateRestored,
)
from svc_trial_runner.fleet.pools.pool_controller import FleetDependencies, PoolController
from svc_trial_runner.fleet.ports import PlatformError
from tests.support.fleet_platforms import InMemoryCredentials, InMemoryPlatforms
from tests.support.fleet_pools import INSTALLATION, POOL, agent, need


def controller_of(
    platform: InMemoryPlatform, clock: ManualClock, bus: InMemoryBus | None = None
) -> PoolController:
    def failed(name: str, error: BaseException) -> None:
        raise AssertionError(name) from error

    opener = InMemoryPlatforms(INSTALLATION, {"slurm": platform})
    dependencies = FleetDependencies(
        INSTALLATION, bus or InMemoryBus(), opener, InMemoryCredentials(), clock
    )
    return PoolController(POOL, dependencies, failed)


async def test_failed_platform_is_tried_again_when_the_delay_is_over() -> None:
    clock, platform = ManualClock(), InMemoryPlatform(failure=PlatformError("down"))
    controller = controller_of(platform, clock)
    controller.apply(NeedChanged(need(waiting=1)))
    running = asyncio.ensure_future(controller.run())
    async with asyncio.timeout(30):
        while not clock.sleepers:  # noqa: ASYNC110 - the clock has no event
            await asyncio.sleep(0)
        assert controller.state.reason == "slurm: down"
        platform.failure = None
        clock.advance(2.0)
        while platform.launches != [agent(1)]:  # noqa: ASYNC110 - the platform has no event
            await asyncio.sleep(0)
    running.cancel()
    await controller.aclose()


async def test_state_is_published_each_minute_while_the_time_of_agents_runs() -> None:
    clock, platform, bus = ManualClock(), InMemoryPlatform(), InMemoryBus()
    controller = controller_of(platform, clock, bus)
    counting = RestoredAgent(agent(1), "slurm", 1, launching=False, counts_from_s=0.0)
    controller.apply(StateRestored((counting,), last_number=1))
    controller.apply(NeedChanged(need(running=1)))
    platform.set_phase(agent(1), AgentPhase.RUNNING)
    running = asyncio.ensure_future(controller.run())
    times = []
    async with asyncio.timeout(30):
        async with aclosing(bus.last_values.follow(pool_state_subject(POOL))) as states:
            async for value in states:
                state = pool_pb2.PoolState.FromString(value.payload)
                if not state.agents[0].machine:
                    continue  # not listed yet
                times.append(state.published_at.ToSeconds())
                if len(times) == 2:
                    break
                for seconds in (59.0, 1.0):
                    while not clock.sleepers:  # noqa: ASYNC110 - the clock has no event
                        await asyncio.sleep(0)
                    clock.advance(seconds)
    running.cancel()
    await controller.aclose()

    assert times[1] - times[0] == 60


async def test_control_ends_when_a_closed_pool_is_clean() -> None:
    controller = controller_of(InMemoryPlatform(), ManualClock())
    controller.apply(NeedChanged(need(closed=True)))

    async with asyncio.timeout(30):
        await controller.run()

    assert controller.state.cleaned
    await controller.aclose()


async def test_pool_without_a_need_has_none() -> None:
    controller = controller_of(InMemoryPlatform(), ManualClock())

    with pytest.raises(RuntimeError, match="no need"):
        _ = controller.need


async def turns_of_the_loop() -> None:
    """Let the loop turn more often than a step of the control takes."""
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.mark.parametrize("counting", [True, False])
async def test_bus_that_is_away_ends_the_control_only_if_it_misses_news(*, counting: bool) -> None:
    clock, platform, bus = ManualClock(), InMemoryPlatform(), InMemoryBus()
    controller = controller_of(platform, clock, bus)
    restored = RestoredAgent(agent(1), "slurm", 1, launching=False, counts_from_s=0.0)
    controller.apply(StateRestored((restored,), last_number=1))
    controller.apply(NeedChanged(need(running=1)))
    platform.set_phase(agent(1), AgentPhase.RUNNING)
    running = asyncio.ensure_future(controller.run())
    await turns_of_the_loop()
    await bus.aclose()

    if counting:
        clock.advance(60.0)
        await turns_of_the_loop()
    else:
        controller.apply(NeedChanged(need(running=1, sequence=2)))
        await turns_of_the_loop()

    assert running.done() is not counting
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await controller.aclose()


async def test_state_that_is_the_same_is_not_published_again() -> None:
    clock, bus = ManualClock(), InMemoryBus()
    controller = controller_of(InMemoryPlatform(), clock, bus)
    controller.apply(NeedChanged(need()))
    running = asyncio.ensure_future(controller.run())
    await turns_of_the_loop()
    (before,) = await bus.last_values.read(pool_state_subject(POOL))

    clock.advance(29.0)
    controller.apply(NeedChanged(need()))
    await turns_of_the_loop()

    (after,) = await bus.last_values.read(pool_state_subject(POOL))
    running.cancel()
    await controller.aclose()
    assert after.sequence == before.sequence


async def test_enrolled_agent_has_the_next_number_and_is_stored_first() -> None:
    bus = InMemoryBus()
    controller = controller_of(InMemoryPlatform(), ManualClock(), bus)
    controller.apply(StateRestored((), last_number=6))
    controller.apply(NeedChanged(need(0, 0, "joined")))

    first = await controller.enrol(2, "host-one", None)
    second = await controller.enrol(3, "host-one", first.number)

    (value,) = await bus.last_values.read(pool_state_subject(POOL))
    state = pool_pb2.PoolState.FromString(value.payload)
    await controller.aclose()
    assert (first, second) == (agent(7), agent(8))
    assert (state.last_number, state.agents[-1].slots) == (8, 3)
    assert state.agents[-1].machine == "host-one"


async def test_order_to_run_more_trials_at_once_reaches_the_agent() -> None:
    platform, bus = InMemoryPlatform(capacity=1), InMemoryBus()
    orders = await bus.signals.subscribe(control_subject(str(agent(1))))
    controller = controller_of(platform, ManualClock(), bus)
    controller.apply(NeedChanged(need(running=1, slots=None, concurrency=1)))
    running = asyncio.ensure_future(controller.run())
    async with asyncio.timeout(30):
        while platform.launches != [agent(1)]:  # noqa: ASYNC110 - the platform has no event
            await asyncio.sleep(0)
        await turns_of_the_loop()
        controller.apply(PresenceReceived(agent(1), 1, slots=1))

        controller.apply(NeedChanged(need(running=1, slots=None, concurrency=8, sequence=2)))

        order = task_pb2.RunnerControl.FromString((await anext(orders)).payload)
    further = asyncio.ensure_future(anext(orders))
    await turns_of_the_loop()
    sent_again = further.done()
    further.cancel()
    running.cancel()
    await controller.aclose()
    assert order.WhichOneof("kind") == "set_runner_slots"
    assert order.set_runner_slots.slots == 8
    assert not sent_again


async def test_silent_agent_is_given_up_and_replaced() -> None:
    clock, platform = ManualClock(), InMemoryPlatform()
    controller = controller_of(platform, clock)
    controller.apply(NeedChanged(need(running=1)))
    running = asyncio.ensure_future(controller.run())
    async with asyncio.timeout(30):
        while platform.launches != [agent(1)]:  # noqa: ASYNC110 - the platform has no event
            await asyncio.sleep(0)
        await turns_of_the_loop()
        controller.apply(PresenceReceived(agent(1), 1))
        await turns_of_the_loop()

        for _ in range(20):  # its silence has several steps
            clock.advance(120.0)
            await turns_of_the_loop()

    running.cancel()
    await controller.aclose()
    assert agent(2) in platform.launches
    assert agent(1) not in platform.agents


@pytest.mark.parametrize("call", ["launch", "wait_changed"])
async def test_closed_control_ends_the_calls_of_its_platforms(
    monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def hang(*_: object) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    monkeypatch.setattr(InMemoryPlatformAdapter, call, hang)
    controller = controller_of(InMemoryPlatform(), ManualClock())
    controller.apply(NeedChanged(need(waiting=1)))
    running = asyncio.ensure_future(controller.run())
    await asyncio.wait_for(begun.wait(), 30)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    before = ended.is_set()

    await controller.aclose()

    assert not before
    assert ended.is_set()


async def test_pool_is_logged_when_its_reason_changes_and_not_at_each_publication() -> None:
    clock, platform = ManualClock(), InMemoryPlatform(failure=PlatformError("down"))
    controller = controller_of(platform, clock)
    controller.apply(NeedChanged(need()))
    with capture_logs() as lines:
        running = asyncio.ensure_future(controller.run())
        await turns_of_the_loop()
        controller.apply(NeedChanged(need(waiting=1, sequence=2)))
        await turns_of_the_loop()
        for sequence in (3, 4):
            controller.apply(NeedChanged(need(waiting=sequence, sequence=sequence)))
            await turns_of_the_loop()
    running.cancel()
    await controller.aclose()

    logged = [line["reason"] for line in lines if line["event"] == "pool"]
    failed = [line for line in lines if line["event"] == "action failed"]
    assert logged[0] == ""
    assert logged.count("slurm: down") == 1
    assert all(before != after for before, after in itertools.pairwise(logged))
    assert (failed[0]["pool"], failed[0]["platform"], failed[0]["reason"]) == (
        POOL,
        "slurm",
        "down",
    )
