"""Replays on an in-memory bus with the real command loop: updates and failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from svc_common.clock import ManualClock
from svc_common.errors import (
    FailedPreconditionError,
    NotFoundError,
)
from svc_common.messaging.memory import InMemoryBus
from svc_common.storage.large_values import LargeValues
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.tasks import TaskOwner
from svc_dispatcher.domain import commands as c
from svc_dispatcher.domain.replay import (
    ReplayFinished,
    ReplayProgress,
    ReplayUpdate,
    TrialDifference,
)
from svc_dispatcher.sessions.generation import SessionDependencies
from svc_dispatcher.sessions.registry import session_registry
from svc_dispatcher.usecases.replays import ReplayDependencies, Replays
from tests.support.in_process_host import InProcessLauncher
from tests.support.scripted_manager import (
    ScriptedManager,
    custom,
    ended,
    experiment_ended,
    handed_over,
    metric,
    named,
    requested,
    stop_requested,
)

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}
RESTLESS = """
import itertools
from nni.hpo import Tuner

COUNT = itertools.count()


class Restless(Tuner):
    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id, **kwargs):
        return {"x": next(COUNT)}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        pass
"""


class Bench:
    """Dispatcher that serves an experiment, and replays of it."""

    def __init__(self, root: Path, timeout_s: float = 20.0) -> None:
        self.bus = InMemoryBus()
        self.launcher = InProcessLauncher()
        self.manager = ScriptedManager(self.bus, "exp", root)
        clock, blobs = ManualClock(), LargeValues(InMemoryBlobStore())
        self.replays = Replays(
            ReplayDependencies(self.bus.events, blobs, self.launcher, clock, timeout_s)
        )
        self._tasks = TaskOwner(lambda _, error: pytest.fail(repr(error)))
        self._tasks.start(self.manager.read_inbox(), "inbox")
        self._experiments = session_registry(
            SessionDependencies(
                self.bus.events, self.bus.inbox, blobs, self.launcher, clock, 600, 60
            )
        )
        self._tasks.start(self._experiments.run(), "experiments")

    async def replay(self, experiment_id: str = "exp") -> list[ReplayUpdate]:
        async with aclosing(self.replays.run(experiment_id)) as updates:
            return [update async for update in updates]

    async def outcome(self) -> ReplayFinished:
        *_, last = await self.replay()
        assert isinstance(last, ReplayFinished)
        return last

    async def aclose(self) -> None:
        await self._experiments.aclose()
        await self._tasks.aclose()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    await bench.aclose()


async def ran_in_parallel(manager: ScriptedManager, trials: int) -> None:
    """Run trials four at a time that end in another order than they started."""
    waiting: list[tuple[int, float]] = []
    for _ in range(trials):
        for parameter_id, parameters in await manager.generate(1):
            waiting.append((parameter_id, parameters["x"]))
        if len(waiting) == 4:
            parameter_id, x = waiting.pop(2)
            await manager.finish(parameter_id, x * x)


async def test_a_parallel_run_is_drawn_again(bench: Bench) -> None:
    await bench.manager.create(SPACE, tuner=named("TPE", optimize_mode="minimize"))
    await ran_in_parallel(bench.manager, 40)

    updates = await bench.replay()

    outcome = updates[-1]
    assert isinstance(outcome, ReplayFinished)
    assert outcome.result.repeatable
    assert (outcome.result.suggestions, outcome.result.equal) == (40, 40)
    steps = [update for update in updates if isinstance(update, ReplayProgress)]
    assert steps[-1].handled == steps[-1].total > 80


async def test_a_resumed_experiment_is_drawn_again_by_generation(bench: Bench) -> None:
    await bench.manager.create(SPACE, tuner=named("TPE", optimize_mode="minimize"))
    await ran_in_parallel(bench.manager, 12)
    await bench.manager.append(experiment_ended())
    await bench.manager.append(requested(2))
    await ran_in_parallel(bench.manager, 12)

    result = (await bench.outcome()).result

    assert result.repeatable
    assert (result.suggestions, result.equal, result.generations) == (24, 24, 2)


async def test_an_experiment_that_was_handed_over_is_drawn_again_by_tuner(bench: Bench) -> None:
    assessor = named("Medianstop", optimize_mode="minimize")
    await bench.manager.create(SPACE, tuner=named("Random"), assessor=assessor)
    for number, (parameter_id, parameters) in enumerate(await bench.manager.generate(24)):
        await bench.manager.finish(parameter_id, parameters["x"], number, number)
    (running, _), (bad, _) = await bench.manager.generate(2)
    await bench.manager.append(handed_over(2, named("TPE", optimize_mode="minimize")))
    await bench.manager.generate(1)
    await bench.manager.finish(running, 0.1, 1, 1)
    await bench.manager.append(metric(bad, 99, final=False))
    advice = await bench.manager.received("stop_advice")
    await bench.manager.append(stop_requested(advice.trial_id), ended(bad))
    await bench.manager.generate(2)

    result = (await bench.outcome()).result

    assert result.reason == ""
    assert (result.suggestions, result.equal, result.generations) == (29, 29, 2)
    assert (result.stops, result.missing_stops) == (1, ())


async def test_a_tuner_that_does_not_repeat_itself_is_detected(
    bench: Bench, tmp_path: Path
) -> None:
    (tmp_path / "restless.py").write_text(RESTLESS, "utf-8")
    await bench.manager.create(SPACE, tuner=custom("restless.Restless", tmp_path))
    await ran_in_parallel(bench.manager, 3)

    updates = await bench.replay()

    differences = [update for update in updates if isinstance(update, TrialDifference)]
    assert [update.trial_id for update in differences] == ["t0000", "t0001", "t0002"]
    outcome = updates[-1]
    assert isinstance(outcome, ReplayFinished)
    assert not outcome.result.repeatable
    assert "restless.Restless does not repeat itself" in outcome.result.reason


async def test_hosts_of_a_replay_are_ended(bench: Bench) -> None:
    await bench.manager.create(SPACE, tuner=named("Random"))
    await ran_in_parallel(bench.manager, 2)
    before = bench.launcher.closed

    await bench.replay()

    assert bench.launcher.closed == before + 1


async def test_closing_the_generator_ends_the_host(bench: Bench) -> None:
    await bench.manager.create(SPACE, tuner=named("Random"))
    await ran_in_parallel(bench.manager, 2)
    before = bench.launcher.closed

    async with aclosing(bench.replays.run("exp")) as updates:
        async for update in updates:
            if isinstance(update, ReplayProgress) and update.total:
                break

    assert bench.launcher.closed == before + 1


async def test_a_host_that_dies_is_no_proof(bench: Bench) -> None:
    await bench.manager.create(SPACE, tuner=named("Random"))
    await ran_in_parallel(bench.manager, 3)
    bench.launcher.trouble = lambda command: "die" if isinstance(command, c.Recorded) else ""

    result = (await bench.outcome()).result

    assert not result.repeatable
    assert "died on demand" in result.reason
    assert result.equal == 0


async def test_a_host_that_hangs_is_given_up(tmp_path: Path) -> None:
    bench = Bench(tmp_path, timeout_s=0.05)
    await bench.manager.create(SPACE, tuner=named("Random"))
    await ran_in_parallel(bench.manager, 3)
    bench.launcher.trouble = lambda command: "hang" if isinstance(command, c.Recorded) else ""

    result = (await bench.outcome()).result

    await bench.aclose()
    assert "no answer for 0.05 s" in result.reason


async def test_a_host_that_cannot_be_started_says_why(bench: Bench) -> None:
    await bench.manager.create(SPACE, tuner=named("Random"))
    await ran_in_parallel(bench.manager, 1)
    bench.launcher.failure = FailedPreconditionError("no such interpreter")

    assert "no such interpreter" in (await bench.outcome()).result.reason


async def test_an_experiment_that_never_drew_anything_is_repeatable(bench: Bench) -> None:
    await bench.manager.create(SPACE, tuner=named("Random"))

    result = (await bench.outcome()).result

    assert result.repeatable
    assert (result.suggestions, result.generations) == (0, 1)


async def test_an_unknown_experiment_is_refused(bench: Bench) -> None:
    with pytest.raises(NotFoundError):
        await bench.replay()


async def test_a_log_that_cannot_be_read_is_refused(bench: Bench) -> None:
    await bench.bus.events.append("bad", b"\xff\xff", expected_sequence=0, epoch=1, append_id="0")

    with pytest.raises(FailedPreconditionError, match="cannot be read"):
        await bench.replay("bad")


async def test_few_replays_run_at_once(bench: Bench) -> None:
    await bench.manager.create(SPACE, tuner=named("Random"))
    await ran_in_parallel(bench.manager, 1)
    busy = [bench.replays.run("exp") for _ in range(2)]
    for updates in busy:
        while not (isinstance(update := await anext(updates), ReplayProgress) and update.total):
            pass
    waiting = bench.replays.run("exp")
    await anext(waiting)
    step = asyncio.ensure_future(anext(waiting))

    await asyncio.sleep(0)
    assert not step.done()
    await busy[0].aclose()
    assert isinstance(await step, ReplayProgress)

    await asyncio.gather(busy[1].aclose(), waiting.aclose())
