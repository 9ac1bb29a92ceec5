from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from nni_proto.runner.v1 import task_pb2
from nni_proto.trial.v1 import cause_pb2
from svc_common import subjects
from svc_common.clock import ManualClock
from svc_common.experiment_events.causes import LossCause, LossReason, WaitCause, WaitReason
from svc_common.messaging.memory import InMemoryBus
from svc_manager.agents.liveness import (
    BEAT_EVERY_S,
    GONE_AFTER_S,
    LEAVING_S,
    OVERDUE_AFTER_S,
    SILENT_AFTER_S,
    SUSPECT_AFTER_S,
    AgentMonitor,
)
from svc_manager.domain.inputs import (
    AgentGone,
    AgentOverdue,
    AgentRestarted,
    AgentSeen,
    AgentSilent,
    AttemptGone,
    HeldAttempt,
    Notification,
    Stop,
)
from svc_manager.domain.reports import Lost
from svc_manager.domain.state import Experiment
from tests.unit.services.manager.building import EXPERIMENT_ID, Lab

FORGOTTEN = LossReason(LossCause.UNKNOWN_TO_AGENT)


class Listening:
    """Experiment that records its notifications."""

    def __init__(self, experiment: Experiment) -> None:
        self.id = EXPERIMENT_ID
        self.experiment = experiment
        self.notified: list[Notification] = []

    def notify(self, notification: Notification) -> None:
        self.notified.append(notification)


class One:
    def __init__(self, actor: Listening) -> None:
        self._actor = actor

    def actors(self) -> list[Listening]:
        return [self._actor]

    def stopped_at(self, experiment_id: str) -> int | None:
        return 7 if experiment_id == "stopped1" else None


def presence(*held: tuple[str, int, str], leaving: bool = False) -> task_pb2.RunnerPresence:
    message = task_pb2.RunnerPresence(runner_id="r1", pool="local", leaving=leaving)
    for trial_id, attempt, claim in held:
        message.trials.add(
            experiment_id=EXPERIMENT_ID, trial_id=trial_id, attempt=attempt, claim_id=claim
        )
    return message


@contextmanager
def watching(watch: AgentMonitor) -> Iterator[None]:
    task = asyncio.ensure_future(watch.watch())
    try:
        yield
    finally:
        task.cancel()


async def turns(count: int = 10) -> None:
    """Let whatever is ready run."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_an_agent_falls_silent_then_is_gone() -> None:
    lab = Lab()
    lab.running()
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentMonitor(InMemoryBus(), clock)
    watch.attach(One(actor))
    watch.handle_presence(presence())

    with watching(watch):
        await turns()
        clock.advance(SILENT_AFTER_S)
        await turns()
        assert actor.notified == [AgentSilent("r1")]
        assert watch.of_pools(["local"]) == []
        clock.advance(GONE_AFTER_S - SILENT_AFTER_S)
        await turns()

    silence_ms = round(GONE_AFTER_S * 1000)
    loss = LossReason(LossCause.AGENT_SILENT, silence_ms=silence_ms, runner_id="r1")
    assert actor.notified[-1] == AgentGone("r1", loss)
    assert watch.get("r1") is None


async def test_presence_with_too_many_parts_is_dropped_and_the_next_is_read() -> None:
    async with InMemoryBus() as bus:
        watch = AgentMonitor(bus, ManualClock())
        listening = asyncio.ensure_future(watch.listen())
        await turns()

        for runner_id, trials in (("r1", 60_000), ("r2", 1_000)):
            message = task_pb2.RunnerPresence(runner_id=runner_id, pool="local")
            payload = message.SerializeToString() + b"\x2a\x00" * trials  # trials without fields
            bus.signals.publish(subjects.presence_subject(runner_id), payload)
        async with asyncio.timeout(60):
            while watch.get("r2") is None:  # noqa: ASYNC110 - nothing is set by its presence alone
                await asyncio.sleep(0)

        assert watch.get("r1") is None
        listening.cancel()


async def test_an_agent_that_only_the_log_names_has_the_whole_time() -> None:
    lab = Lab()
    lab.running()
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentMonitor(InMemoryBus(), clock)
    watch.attach(One(actor))

    with watching(watch):
        await turns()
        clock.advance(SILENT_AFTER_S - 1)
        await turns()
        assert actor.notified == []
        clock.advance(2)
        await turns()

    assert actor.notified == [AgentSilent("r1")]


async def test_an_agent_that_speaks_in_time_is_never_judged() -> None:
    lab = Lab()
    trial = lab.running()
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentMonitor(InMemoryBus(), clock)
    watch.attach(One(actor))

    with watching(watch):
        for _ in range(10):
            watch.handle_presence(presence((trial.id, 1, "claim")))
            clock.advance(SILENT_AFTER_S / 2)
            await turns()

    assert actor.notified == []


async def test_agent_that_has_ended_on_its_platform_is_gone_soon() -> None:
    lab = Lab()
    trial = lab.running()
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentMonitor(InMemoryBus(), clock)
    watch.attach(One(actor))
    watch.handle_presence(presence((trial.id, 1, "claim")))

    with watching(watch):
        clock.advance(2)
        await turns()
        watch.platform_ended("r1")
        watch.platform_ended("unknown")
        await turns()
        assert actor.notified == [AgentSilent("r1")]
        clock.advance(GONE_AFTER_S - LEAVING_S)
        await turns()

    silence_ms = round((2 + GONE_AFTER_S - LEAVING_S) * 1000)
    loss = LossReason(LossCause.AGENT_SILENT, silence_ms=silence_ms, runner_id="r1")
    assert actor.notified == [AgentSilent("r1"), AgentGone("r1", loss)]


async def test_agent_that_runs_is_kept_whatever_its_platform_says() -> None:
    lab = Lab()
    trial = lab.running()
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentMonitor(InMemoryBus(), clock)
    watch.attach(One(actor))
    watch.handle_presence(presence((trial.id, 1, "claim")))

    with watching(watch):
        watch.platform_ended("r1")
        for _ in range(4):
            watch.handle_presence(presence((trial.id, 1, "claim")))
            clock.advance(5)
            await turns()

    assert not any(isinstance(one, AgentGone) for one in actor.notified)
    assert watch.living()


async def test_an_agent_that_holds_a_wrong_attempt_is_reported_to_the_experiment() -> None:
    lab = Lab()
    trial = lab.running()
    actor = Listening(lab.experiment)
    watch = AgentMonitor(InMemoryBus(), ManualClock())
    watch.attach(One(actor))

    watch.handle_presence(presence((trial.id, 1, "claim"), ("zzzzz", 1, "other")))

    (notification,) = actor.notified
    assert isinstance(notification, AgentSeen)


async def test_what_a_restarted_agent_has_forgotten_is_lost_after_a_while() -> None:
    lab = Lab()
    kept, forgotten = lab.running(), lab.running(claim="c2")
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentMonitor(InMemoryBus(), clock)
    watch.attach(One(actor))

    with watching(watch):
        await turns()
        for _ in range(4):
            watch.handle_presence(presence((kept.id, 1, "claim")))
            await turns()
            clock.advance(SUSPECT_AFTER_S / 3)
            await turns()

    (notification,) = actor.notified
    assert isinstance(notification, AttemptGone)
    assert notification == AttemptGone(HeldAttempt(forgotten.id, 1, "c2"), FORGOTTEN)
    lab.notification(notification)
    assert (forgotten.state.name, forgotten.attempt) == ("WAITING", 2)


async def test_a_forgotten_attempt_that_was_reported_lost_meanwhile_is_left_alone() -> None:
    lab = Lab()
    trial = lab.running()
    lab.report(trial, 1, Lost(LossReason(LossCause.AGENT_RESTARTED)))

    lab.notification(AttemptGone(HeldAttempt(trial.id, 1, "claim"), FORGOTTEN))

    assert trial.attempt == 2


async def test_a_task_that_outlived_its_experiment_is_dropped() -> None:
    bus = InMemoryBus()
    watch = AgentMonitor(bus, ManualClock())
    watch.attach(One(Listening(Lab().experiment)))
    orders = await bus.signals.subscribe(subjects.control_subject("r1"))
    message = presence()
    message.trials.add(experiment_id="stopped1", trial_id="abcde", attempt=1, claim_id="c")
    message.trials.add(experiment_id="unknown1", trial_id="fghij", attempt=1, claim_id="c")

    watch.handle_presence(message)
    order = await anext(orders)

    control = task_pb2.RunnerControl.FromString(order.payload)
    assert control.drop_trial.trial_id == "abcde"
    await orders.aclose()


async def test_an_agent_that_leaves_is_not_counted_on_and_soon_gone() -> None:
    lab = Lab()
    lab.running()
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentMonitor(InMemoryBus(), clock)
    watch.attach(One(actor))
    watch.handle_presence(presence())

    with watching(watch):
        await turns()
        watch.handle_presence(presence(leaving=True))
        await turns()
        assert watch.of_pools(["local"]) == []
        clock.advance(GONE_AFTER_S)
        await turns()

    assert actor.notified[-1] == AgentGone("r1", LossReason(LossCause.AGENT_LEFT))


async def test_silence_does_not_count_while_the_bus_is_away() -> None:
    lab = Lab()
    lab.running()
    bus = InMemoryBus()
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentMonitor(bus, clock)
    watch.attach(One(actor))
    forgiving = asyncio.ensure_future(watch.extend_deadlines())

    with watching(watch):
        await turns()
        bus.broker.stop()
        await turns()
        clock.advance(GONE_AFTER_S * 2)
        await turns()
        bus.broker.start()
        await turns()
        clock.advance(SILENT_AFTER_S / 2)
        await turns()

    forgiving.cancel()
    assert actor.notified == []


async def test_silence_does_not_count_while_this_process_stands_still() -> None:
    lab = Lab()
    lab.running()
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentMonitor(InMemoryBus(), clock)
    watch.attach(One(actor))
    watch.handle_presence(presence())
    pausing = asyncio.ensure_future(watch.watch_pauses())

    with watching(watch):
        await turns()
        clock.advance(GONE_AFTER_S * 2)  # nothing runs in between
        await turns()
        after_pause = list(actor.notified)
        for _ in range(round(GONE_AFTER_S / BEAT_EVERY_S)):
            clock.advance(BEAT_EVERY_S)
            await turns()

    pausing.cancel()
    assert after_pause == []
    assert isinstance(actor.notified[-1], AgentGone)


async def test_agents_that_the_log_of_a_taken_experiment_names_have_the_whole_time() -> None:
    lab = Lab()
    lab.running()
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentMonitor(InMemoryBus(), clock)
    watch.attach(One(actor))
    with watching(watch):
        await turns()
        clock.advance(GONE_AFTER_S)
        await turns()
        actor.notified.clear()

        watch.expect(EXPERIMENT_ID, lab.experiment)
        clock.advance(GONE_AFTER_S - 1)
        await turns()
        assert not any(isinstance(notification, AgentGone) for notification in actor.notified)
        clock.advance(1)
        await turns()

    assert isinstance(actor.notified[-1], AgentGone)


async def test_attempts_of_a_taken_experiment_that_their_agent_does_not_hold_are_gone() -> None:
    lab = Lab()
    trial = lab.running()
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentMonitor(InMemoryBus(), clock)
    watch.handle_presence(presence())
    watch.attach(One(actor))
    watch.expect(EXPERIMENT_ID, lab.experiment)

    with watching(watch):
        for _ in range(int(SUSPECT_AFTER_S // 5)):
            await turns()
            clock.advance(5)
            watch.handle_presence(presence())
        await turns()

    gone = [
        notification for notification in actor.notified if isinstance(notification, AttemptGone)
    ]
    assert [notification.held for notification in gone] == [HeldAttempt(trial.id, 1, "claim")]


async def test_an_attempt_that_its_agent_says_to_hold_after_all_is_not_suspected() -> None:
    lab = Lab()
    trial = lab.running()
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentMonitor(InMemoryBus(), clock)
    watch.handle_presence(presence())
    watch.attach(One(actor))
    watch.expect(EXPERIMENT_ID, lab.experiment)

    with watching(watch):
        for _ in range(int(SUSPECT_AFTER_S // 5) + 1):
            watch.handle_presence(presence((trial.id, 1, "claim")))
            await turns()
            clock.advance(5)
        await turns()

    assert actor.notified == []


async def test_only_a_stop_makes_an_agent_that_does_not_answer_a_matter_of_seconds() -> None:
    lab = Lab()
    trial = lab.running()
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentMonitor(InMemoryBus(), clock)
    watch.attach(One(actor))
    watch.handle_presence(presence((trial.id, 1, "claim")))

    with watching(watch):
        await turns()
        clock.advance(OVERDUE_AFTER_S + 1)
        await turns()
        assert actor.notified == []
        lab.command(Stop())
        clock.advance(OVERDUE_AFTER_S / 4)
        await turns()

    assert set(actor.notified) == {AgentOverdue("r1")}


def test_experiments_with_unclaimed_tasks_are_notified_of_a_restarted_agent() -> None:
    lab = Lab()
    lab.waiting()
    actor = Listening(lab.experiment)
    watch = AgentMonitor(InMemoryBus(), ManualClock())
    watch.attach(One(actor))
    first, second = presence(), presence()
    first.boot_id, second.boot_id = "boot1", "boot2"

    watch.handle_presence(first)
    assert actor.notified == []
    watch.handle_presence(second)
    watch.handle_presence(second)
    assert actor.notified == [AgentRestarted("local", "boot2")]
    second.restarted = True
    watch.handle_presence(second)

    assert actor.notified == [AgentRestarted("local", "boot2")] * 2


async def test_facts_name_what_an_agent_holds_and_what_it_waits_for() -> None:
    lab = Lab()
    trial = lab.waiting()
    watch = AgentMonitor(InMemoryBus(), ManualClock())
    message = presence((trial.id, 1, "claim"))
    watch.handle_presence(message)
    (holds,) = watch.facts(EXPERIMENT_ID, trial)
    message.trials[0].waiting_for = "waiting for 1 GPU"
    watch.handle_presence(message)
    (older,) = watch.facts(EXPERIMENT_ID, trial)
    message.trials[0].wait.cause = cause_pb2.WAIT_CAUSE_BLOB
    message.trials[0].wait.object = "its code"
    watch.handle_presence(message)

    (newer,) = watch.facts(EXPERIMENT_ID, trial)
    (other,) = watch.facts("another1", trial)

    assert (holds.holds, holds.wait) == (True, None)
    assert (older.holds, older.wait) == (True, WaitReason(WaitCause.GPU_IN_USE, gpu_count=1))
    assert (newer.holds, newer.wait) == (True, WaitReason(WaitCause.BLOB, object="its code"))
    assert (other.holds, other.wait) == (False, None)
