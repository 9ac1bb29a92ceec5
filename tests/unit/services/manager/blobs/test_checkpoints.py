"""Tasks of trials that load checkpoints, and checkpoints that are no longer needed."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from nni_proto.runner.v1 import task_pb2
from nni_wire.values import to_value
from svc_common.clock import ManualClock
from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.ports import TaskFeed
from svc_common.storage.memory import InMemoryBlobStore
from svc_manager.actors.effect_runner import EffectRunner
from svc_manager.blobs.checkpoints import (
    checkpoint_folder,
    dead_checkpoints,
    frees_blobs,
    saving_trial,
)
from svc_manager.blobs.large_values import LargeValues
from svc_manager.domain import events
from svc_manager.domain.checkpoints import SavedCheckpoint, TrialCheckpoint
from svc_manager.domain.effects import PublishTask
from svc_manager.domain.experiment import Budget
from svc_manager.domain.reports import CheckpointSaved, ExitCause, Exited, Started
from svc_manager.domain.trial import Trial
from svc_manager.domain.values import Parameters
from tests.unit.services.manager.building import Lab, encoded
from tests.unit.services.manager.world import InMemoryListeners

POOL: Final = "local"
MARK: Final = b"end of the tasks so far"
_marks = itertools.count()
FIRST = {"load_checkpoint_dir": "/c/0/0", "save_checkpoint_dir": "/c/0/0"}
SECOND = {"load_checkpoint_dir": "/c/0/0", "save_checkpoint_dir": "/c/0/1"}
SAVED = SavedCheckpoint("/c/0/0", "ab" * 32, 7)


class NoAgents:
    """`Agents` without any agent."""

    def of_pools(self, pools: Collection[str]) -> list[str]:
        return []

    def expect(self, *_: object) -> None:
        """Do nothing."""


class Publishing:
    """A lab whose effects on tasks are carried out."""

    def __init__(self, bus: InMemoryBus, feed: TaskFeed, *, travel: bool = True) -> None:
        self.bus = bus
        self.feed = feed
        self.lab = Lab(Budget(trial_concurrency=2, max_trial_number=10))
        self.effect_runner = EffectRunner(
            self.lab.experiment,
            bus,
            InMemoryListeners(),
            self._no_summary,
            NoAgents(),
            LargeValues(InMemoryBlobStore()),
            lambda: 1,
            ManualClock(),
            bytes_travel=travel,
        )

    async def _no_summary(self) -> None:
        """Write no summary."""

    async def suggest(self, *parameters: dict[str, Any], released: tuple[str, ...] = ()) -> None:
        """Let the algorithm answer what it was asked, or what it has deferred."""
        algorithm = self.lab.experiment.algorithm
        request_id, ids = next(iter(algorithm.asked.items()), ("", algorithm.late_ids))
        given = zip(sorted(ids), parameters, strict=False)
        answer = tuple(Parameters(number, encoded(one), b"") for number, one in given)
        deferred = len(ids) - len(answer) if request_id else 0
        generated = events.ParametersGenerated(
            request_id, answer, False, deferred, (1, 0), released
        )
        await self._carry_out(self.lab.notification(generated))

    async def start(self, trial: Trial) -> None:
        await self._carry_out(self.lab.report(trial, 0, Started(1), claim=trial.id))

    async def end(self, trial: Trial, checkpoint: SavedCheckpoint | None, code: int = 0) -> None:
        exited = Exited(9, ExitCause.ENDED, code, checkpoint=checkpoint)
        await self._carry_out(self.lab.report(trial, 1, exited, claim=trial.id))

    async def _carry_out(self, events: list[events.Event]) -> None:
        for event in events:
            self.effect_runner.observe(event)
        tasks = [one for one in self.lab.effects if isinstance(one, PublishTask)]
        await self.effect_runner.run(tasks)
        await self.effect_runner.drain()

    @property
    def trials(self) -> list[Trial]:
        return list(self.lab.experiment.trials.values())

    async def tasks(self) -> list[task_pb2.TrialTask]:
        """Give the tasks that have come since the last call."""
        await self.bus.tasks.publish(POOL, MARK, message_id=f"mark {next(_marks)}")
        found: list[task_pb2.TrialTask] = []
        async with asyncio.timeout(30):
            async for task in self.feed:
                if task.payload == MARK:
                    return found
                found.append(task_pb2.TrialTask.FromString(task.payload))
        raise AssertionError("the feed has ended")


@asynccontextmanager
async def publishing(*, travel: bool = True) -> AsyncIterator[Publishing]:
    async with InMemoryBus() as bus:
        feed = await bus.tasks.pull(POOL)
        feed.grant(1000)
        yield Publishing(bus, feed, travel=travel)
        await feed.aclose()


async def test_trial_is_published_when_what_it_loads_is_saved() -> None:
    async with publishing() as world:
        await world.suggest(FIRST)
        (saving,) = world.trials
        (first,) = await world.tasks()
        await world.start(saving)
        await world.suggest(SECOND)
        before = await world.tasks()

        await world.end(saving, SAVED)

        (second,) = await world.tasks()
    assert first.spec.checkpoints_travel
    assert not first.HasField("load_checkpoint")
    assert before == []
    assert second.trial_id == world.trials[1].id
    assert (second.load_checkpoint.sha256, second.load_checkpoint.size_bytes) == ("ab" * 32, 7)


async def test_trial_starts_anew_when_what_it_loads_was_never_saved() -> None:
    async with publishing() as world:
        await world.suggest(FIRST)
        (saving,) = world.trials
        await world.start(saving)
        await world.suggest(SECOND)
        await world.tasks()

        await world.end(saving, None, code=1)

        (task,) = await world.tasks()
    assert not task.HasField("load_checkpoint")


async def test_checkpoint_of_a_failed_trial_is_not_taken() -> None:
    async with publishing() as world:
        await world.suggest(FIRST)
        await world.start(world.trials[0])

        await world.end(world.trials[0], SAVED, code=1)

    assert world.lab.experiment.checkpoints == {}


async def test_shared_folders_delay_no_task() -> None:
    async with publishing(travel=False) as world:
        await world.suggest(FIRST)
        await world.start(world.trials[0])
        await world.suggest(SECOND)

        tasks = await world.tasks()

    assert len(tasks) == 2
    assert not tasks[0].spec.checkpoints_travel


async def test_state_survives_a_new_fold() -> None:
    async with publishing() as world:
        await world.suggest(FIRST, released=("/c/9/9",))
        await world.start(world.trials[0])
        await world.end(world.trials[0], SAVED)

    again = world.lab.refolded()
    assert again.checkpoints == world.lab.experiment.checkpoints == {"/c/0/0": SAVED}
    assert again.released_checkpoints == {"/c/9/9"}


async def test_released_checkpoint_is_dead_when_its_last_reader_is_over() -> None:
    async with publishing() as world:
        await world.suggest(FIRST)
        await world.start(world.trials[0])
        await world.end(world.trials[0], SAVED)
        await world.suggest(SECOND, released=("/c/0/0",))
        reading = dead_checkpoints(world.lab.experiment)
        await world.start(world.trials[1])

        await world.end(world.trials[1], None)

    assert reading == frozenset()
    assert dead_checkpoints(world.lab.experiment) == {SAVED.sha256}


@pytest.mark.parametrize(
    ("parameters", "folder"),
    [
        ({"load_checkpoint_dir": "/c"}, "/c"),
        ({"load_checkpoint_dir": 7}, ""),
        ({"x": {"load_checkpoint_dir": "/c"}}, ""),
        ([1], ""),
        (None, ""),
    ],
)
def test_only_text_at_the_top_names_a_folder(parameters: object, folder: str) -> None:
    assert checkpoint_folder(to_value(parameters), "load_checkpoint_dir") == folder


async def test_trial_does_not_wait_for_itself() -> None:
    async with publishing() as world:
        await world.suggest(FIRST)
        (trial,) = world.trials

        assert saving_trial(world.lab.experiment, "/c/0/0", besides=trial.id) == ""
        assert saving_trial(world.lab.experiment, "/c/0/0", besides="other") == trial.id


def saved(lab: Lab, trial: Trial, digest: str, number: int = 1) -> None:
    checkpoint = TrialCheckpoint(number, trial.attempt, number, digest * 32, 9)
    lab.report(trial, trial.report_sequence + 1, CheckpointSaved(checkpoint))


def test_checkpoint_is_dead_when_the_trial_has_stored_a_newer_one() -> None:
    lab = Lab()
    trial = lab.running()
    saved(lab, trial, "aa", 1)
    before = dead_checkpoints(lab.experiment)

    saved(lab, trial, "bb", 2)

    assert before == frozenset()
    assert dead_checkpoints(lab.experiment) == {"aa" * 32}


def test_checkpoint_of_equal_content_stays_alive() -> None:
    lab = Lab()
    trial = lab.running()
    saved(lab, trial, "aa", 1)

    saved(lab, trial, "aa", 2)

    assert dead_checkpoints(lab.experiment) == frozenset()


def test_checkpoint_that_another_trial_goes_on_from_stays_alive() -> None:
    lab = Lab()
    first = lab.running()
    saved(lab, first, "aa")
    second = lab.running()
    saved(lab, second, "aa")

    saved(lab, first, "bb", 2)

    assert dead_checkpoints(lab.experiment) == frozenset()


def test_checkpoint_that_was_passed_on_to_other_trials_stays_alive() -> None:
    lab = Lab()
    trial = lab.running()
    saved(lab, trial, "ab")

    passed_on = Exited(9, ExitCause.ENDED, 0, checkpoint=SAVED)
    lab.report(trial, trial.report_sequence + 1, passed_on)

    assert dead_checkpoints(lab.experiment) == frozenset()


def test_checkpoints_of_an_ended_trial_are_dead() -> None:
    lab = Lab()
    trial = lab.running()
    saved(lab, trial, "aa")

    lab.finish(trial)

    assert dead_checkpoints(lab.experiment) == {"aa" * 32}


def test_each_sixteenth_superseded_checkpoint_is_worth_a_collection() -> None:
    lab = Lab()
    trial = lab.running()
    worth: list[int] = []

    for number in range(1, 35):
        saved(lab, trial, f"{number:02x}", number)
        if any(frees_blobs(lab.experiment, event) for event in lab.last):
            worth.append(number)

    assert worth == [17, 33]
