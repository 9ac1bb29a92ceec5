from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from nni_proto.runner.v1 import task_pb2
from svc_common import subjects
from svc_common.clock import ManualClock
from svc_common.messaging.memory import InMemoryBus
from svc_manager.agents.liveness import (
    GONE_AFTER_S,
    MISSED_AFTER_S,
    SILENT_AFTER_S,
    SUSPECT_AFTER_S,
    AgentWatch,
)
from svc_manager.domain.inputs import (
    AttemptGone,
    Held,
    RunnerGone,
    RunnerMissed,
    RunnerRestarted,
    RunnerSeen,
    RunnerSilent,
    Stop,
    Word,
)
from svc_manager.domain.reports import Lost
from svc_manager.domain.state import Experiment
from tests.unit.services.manager.building import EXPERIMENT_ID, Lab


class Listening:
    """An experiment that writes down what it is told."""

    def __init__(self, experiment: Experiment) -> None:
        self.id = EXPERIMENT_ID
        self.experiment = experiment
        self.told: list[Word] = []

    def tell(self, word: Word) -> None:
        self.told.append(word)


class One:
    def __init__(self, actor: Listening) -> None:
        self._actor = actor

    def found(self) -> list[Listening]:
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
def watching(watch: AgentWatch) -> Iterator[None]:
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
    watch = AgentWatch(InMemoryBus(), clock)
    watch.watch_for(One(actor))
    watch.heard(presence())

    with watching(watch):
        await turns()
        clock.advance(SILENT_AFTER_S)
        await turns()
        assert actor.told == [RunnerSilent("r1")]
        assert watch.of_pools(["local"]) == []
        clock.advance(GONE_AFTER_S - SILENT_AFTER_S)
        await turns()

    assert isinstance(actor.told[-1], RunnerGone)
    assert watch.get("r1") is None


async def test_an_agent_that_only_the_log_names_has_the_whole_time() -> None:
    lab = Lab()
    lab.running()
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentWatch(InMemoryBus(), clock)
    watch.watch_for(One(actor))

    with watching(watch):
        await turns()
        clock.advance(SILENT_AFTER_S - 1)
        await turns()
        assert actor.told == []
        clock.advance(2)
        await turns()

    assert actor.told == [RunnerSilent("r1")]


async def test_an_agent_that_speaks_in_time_is_never_judged() -> None:
    lab = Lab()
    trial = lab.running()
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentWatch(InMemoryBus(), clock)
    watch.watch_for(One(actor))

    with watching(watch):
        for _ in range(10):
            watch.heard(presence((trial.id, 1, "claim")))
            clock.advance(SILENT_AFTER_S / 2)
            await turns()

    assert actor.told == []


async def test_an_agent_that_holds_what_it_should_not_is_told_on() -> None:
    lab = Lab()
    trial = lab.running()
    actor = Listening(lab.experiment)
    watch = AgentWatch(InMemoryBus(), ManualClock())
    watch.watch_for(One(actor))

    watch.heard(presence((trial.id, 1, "claim"), ("zzzzz", 1, "other")))

    (word,) = actor.told
    assert isinstance(word, RunnerSeen)


async def test_what_a_restarted_agent_has_forgotten_is_lost_after_a_while() -> None:
    lab = Lab()
    kept, forgotten = lab.running(), lab.running(claim="c2")
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentWatch(InMemoryBus(), clock)
    watch.watch_for(One(actor))

    with watching(watch):
        await turns()
        for _ in range(4):
            watch.heard(presence((kept.id, 1, "claim")))
            await turns()
            clock.advance(SUSPECT_AFTER_S / 3)
            await turns()

    (word,) = actor.told
    assert isinstance(word, AttemptGone)
    assert word.held == Held(forgotten.id, 1, "c2")
    lab.word(word)
    assert (forgotten.state.name, forgotten.attempt) == ("WAITING", 2)


async def test_a_forgotten_attempt_that_was_reported_lost_meanwhile_is_left_alone() -> None:
    lab = Lab()
    trial = lab.running()
    lab.report(trial, 1, Lost("its agent was restarted"))

    lab.word(AttemptGone(Held(trial.id, 1, "claim"), "forgotten"))

    assert trial.attempt == 2


async def test_a_task_that_outlived_its_experiment_is_dropped() -> None:
    bus = InMemoryBus()
    watch = AgentWatch(bus, ManualClock())
    watch.watch_for(One(Listening(Lab().experiment)))
    orders = await bus.signals.subscribe(subjects.control_subject("r1"))
    message = presence()
    message.trials.add(experiment_id="stopped1", trial_id="abcde", attempt=1, claim_id="c")
    message.trials.add(experiment_id="unknown1", trial_id="fghij", attempt=1, claim_id="c")

    watch.heard(message)
    order = await anext(orders)

    control = task_pb2.RunnerControl.FromString(order.payload)
    assert control.drop_trial.trial_id == "abcde"
    await orders.aclose()


async def test_an_agent_that_leaves_is_not_counted_on_and_soon_gone() -> None:
    lab = Lab()
    lab.running()
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentWatch(InMemoryBus(), clock)
    watch.watch_for(One(actor))
    watch.heard(presence())

    with watching(watch):
        await turns()
        watch.heard(presence(leaving=True))
        await turns()
        assert watch.of_pools(["local"]) == []
        clock.advance(GONE_AFTER_S)
        await turns()

    assert actor.told[-1] == RunnerGone("r1", "its agent has left")


async def test_nobody_is_judged_for_the_time_the_bus_was_away() -> None:
    lab = Lab()
    lab.running()
    bus = InMemoryBus()
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentWatch(bus, clock)
    watch.watch_for(One(actor))
    forgiving = asyncio.ensure_future(watch.forgive())

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
    assert actor.told == []


async def test_agents_that_the_log_of_a_taken_experiment_names_have_the_whole_time() -> None:
    lab = Lab()
    lab.running()
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentWatch(InMemoryBus(), clock)
    watch.watch_for(One(actor))
    with watching(watch):
        await turns()
        clock.advance(GONE_AFTER_S)
        await turns()
        actor.told.clear()

        watch.expect(EXPERIMENT_ID, lab.experiment)
        clock.advance(GONE_AFTER_S - 1)
        await turns()
        assert not any(isinstance(word, RunnerGone) for word in actor.told)
        clock.advance(1)
        await turns()

    assert isinstance(actor.told[-1], RunnerGone)


async def test_attempts_of_a_taken_experiment_that_their_agent_does_not_hold_are_gone() -> None:
    lab = Lab()
    trial = lab.running()
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentWatch(InMemoryBus(), clock)
    watch.heard(presence())
    watch.watch_for(One(actor))
    watch.expect(EXPERIMENT_ID, lab.experiment)

    with watching(watch):
        for _ in range(int(SUSPECT_AFTER_S // 5)):
            await turns()
            clock.advance(5)
            watch.heard(presence())
        await turns()

    gone = [word for word in actor.told if isinstance(word, AttemptGone)]
    assert [word.held for word in gone] == [Held(trial.id, 1, "claim")]


async def test_an_attempt_that_its_agent_says_to_hold_after_all_is_not_suspected() -> None:
    lab = Lab()
    trial = lab.running()
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentWatch(InMemoryBus(), clock)
    watch.heard(presence())
    watch.watch_for(One(actor))
    watch.expect(EXPERIMENT_ID, lab.experiment)

    with watching(watch):
        for _ in range(int(SUSPECT_AFTER_S // 5) + 1):
            watch.heard(presence((trial.id, 1, "claim")))
            await turns()
            clock.advance(5)
        await turns()

    assert actor.told == []


async def test_only_a_stop_makes_an_agent_that_does_not_answer_a_matter_of_seconds() -> None:
    lab = Lab()
    trial = lab.running()
    actor, clock = Listening(lab.experiment), ManualClock()
    watch = AgentWatch(InMemoryBus(), clock)
    watch.watch_for(One(actor))
    watch.heard(presence((trial.id, 1, "claim")))

    with watching(watch):
        await turns()
        clock.advance(MISSED_AFTER_S + 1)
        await turns()
        assert actor.told == []
        lab.command(Stop())
        clock.advance(MISSED_AFTER_S / 4)
        await turns()

    assert set(actor.told) == {RunnerMissed("r1")}


def test_who_waits_for_a_task_of_a_restarted_agent_is_told_so() -> None:
    lab = Lab()
    lab.waiting()
    actor = Listening(lab.experiment)
    watch = AgentWatch(InMemoryBus(), ManualClock())
    watch.watch_for(One(actor))
    first, second = presence(), presence()
    first.boot_id, second.boot_id = "boot1", "boot2"

    watch.heard(first)
    assert actor.told == []
    watch.heard(second)
    watch.heard(second)
    assert actor.told == [RunnerRestarted("local", "boot2")]
    second.restarted = True
    watch.heard(second)

    assert actor.told == [RunnerRestarted("local", "boot2")] * 2
