"""Streams of events and of log files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from nni_proto.experiment.v1 import event_pb2, experiment_pb2
from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from svc_common.errors import InvalidArgumentError, NotFoundError
from svc_common.messaging.memory import InMemoryBus
from svc_manager.adapters.inotify_watch import InotifyWatches
from svc_manager.usecases.log_streams import CHUNK_BYTES, LogStreams, follow_events
from tests.unit.services.manager.world import (
    PATIENCE_S,
    Held,
    ScriptedAgent,
    World,
    hold,
    world_on,
)

STDOUT = pb.LOG_SOURCE_TRIAL_STDOUT
LOGS = {1: b"the first attempt\n", 2: b"the second\n"}
"""Of the attempts of a trial; the second one is shorter."""
DONE = experiment_pb2.EXPERIMENT_STATE_DONE


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as made:
        yield made


@pytest.fixture
async def experiment_id(world: World) -> str:
    """A stopped experiment."""
    made = await world.create()
    await world.wait_for_state(made, DONE)
    await world.experiments.stop(made)
    return made


def streams(world: World) -> LogStreams:
    return LogStreams(InotifyWatches(), world.bus.log_lines, lambda _: True)


async def text_of(
    world: World,
    experiment_id: str,
    source: pb.LogSource.ValueType,
    trial_id: str = "",
    offset: int = 0,
    *,
    follow: bool = False,
) -> bytes:
    actor = await world.manager.registry.find(experiment_id)
    stream = streams(world).follow(actor, source, trial_id, offset, follow=follow)
    async with asyncio.timeout(PATIENCE_S):
        return b"".join([piece.data async for piece in stream])


async def test_events_behind_a_position_are_yielded(world: World, experiment_id: str) -> None:
    everything = [
        item async for item in follow_events(world.bus.events, experiment_id, None, follow=False)
    ]
    place = everything[3].position

    rest = [
        item async for item in follow_events(world.bus.events, experiment_id, place, follow=False)
    ]

    assert [item.position for item in rest] == [item.position for item in everything[4:]]
    assert everything[0].event.HasField("experiment_created")


async def test_a_position_inside_a_batch_splits_it(world: World, experiment_id: str) -> None:
    first = next(
        item.position
        for item in [
            one async for one in follow_events(world.bus.events, experiment_id, None, follow=False)
        ]
    )
    before = event_pb2.EventPosition(sequence=first.sequence, index=0)

    rest = follow_events(world.bus.events, experiment_id, before, follow=False)
    following = await anext(rest)
    await rest.aclose()

    assert (following.position.sequence, following.position.index) == (first.sequence, 1)


async def test_a_log_is_read_from_its_offset(world: World, experiment_id: str) -> None:
    whole = await text_of(world, experiment_id, pb.LOG_SOURCE_MANAGER)
    rest = await text_of(world, experiment_id, pb.LOG_SOURCE_MANAGER, offset=10)

    assert b"Experiment is RUNNING" in whole
    assert rest == whole[10:]


async def test_size_of_a_log_is_its_length(world: World, experiment_id: str) -> None:
    actor = await world.manager.registry.find(experiment_id)
    whole = await text_of(world, experiment_id, pb.LOG_SOURCE_MANAGER)

    assert await streams(world).size(actor, pb.LOG_SOURCE_MANAGER, "") == len(whole)
    with pytest.raises(NotFoundError):
        await streams(world).size(actor, pb.LOG_SOURCE_TRIAL_STDOUT, "nobod")
    with pytest.raises(InvalidArgumentError):
        await streams(world).size(actor, pb.LOG_SOURCE_UNSPECIFIED, "")


async def test_a_followed_log_of_a_closed_experiment_ends(world: World, experiment_id: str) -> None:
    followed = await text_of(world, experiment_id, pb.LOG_SOURCE_MANAGER, follow=True)

    assert followed == await text_of(world, experiment_id, pb.LOG_SOURCE_MANAGER)


async def test_a_long_file_comes_in_chunks(world: World, experiment_id: str) -> None:
    (trial, *_) = (await world.manager.trials.list(experiment_id)).items
    folder = world.folder / "experiments" / experiment_id / "trials" / trial.id
    folder.mkdir(parents=True)
    content = b"x" * (CHUNK_BYTES + 1)
    (folder / "stdout").write_bytes(content)
    actor = await world.manager.registry.find(experiment_id)

    stream = streams(world).follow(actor, pb.LOG_SOURCE_TRIAL_STDOUT, trial.id, 0, follow=False)
    pieces = [piece async for piece in stream]

    assert [len(piece.data) for piece in pieces] == [CHUNK_BYTES, 1]
    assert [piece.offset for piece in pieces] == [0, CHUNK_BYTES]


async def test_a_log_that_was_not_written_is_not_found(world: World, experiment_id: str) -> None:
    with pytest.raises(NotFoundError):
        await text_of(world, experiment_id, pb.LOG_SOURCE_DISPATCHER)


@pytest.mark.parametrize(
    ("source", "trial_id", "offset", "error"),
    [
        (pb.LOG_SOURCE_MANAGER, "", -1, InvalidArgumentError),
        (pb.LOG_SOURCE_UNSPECIFIED, "", 0, InvalidArgumentError),
        (pb.LOG_SOURCE_TRIAL_STDOUT, "none1", 0, NotFoundError),
    ],
)
async def test_a_log_that_cannot_exist_is_refused(
    world: World,
    experiment_id: str,
    source: pb.LogSource.ValueType,
    trial_id: str,
    offset: int,
    error: type[Exception],
) -> None:
    with pytest.raises(error):
        await text_of(world, experiment_id, source, trial_id, offset)


@pytest.fixture
async def retrying(tmp_path: Path) -> AsyncIterator[World]:
    """World with a trial whose agent writes its log here."""
    experiments = tmp_path / "experiments"

    async def write_log(agent: ScriptedAgent, held: Held) -> None:
        folder = experiments / held.task.experiment_id / "trials" / held.task.trial_id
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "stdout").write_bytes(LOGS[held.task.attempt])
        await hold(agent, held)

    async with InMemoryBus() as bus, world_on(bus, tmp_path, script=write_log) as made:
        yield made


async def keep_waiting(agent: ScriptedAgent, held: Held) -> None:
    """Hold a trial without starting it."""


async def pieces_of(
    world: World, held: Held, offset: int = 0, attempt: int = 0
) -> AsyncGenerator[tuple[int, int, bytes], None]:
    """Follow the output of a trial; yield attempt, offset and data of each piece."""
    actor = await world.manager.registry.find(held.task.experiment_id)
    feed = streams(world).follow(
        actor, STDOUT, held.task.trial_id, offset, attempt=attempt, follow=True
    )
    async with aclosing(feed):
        async for piece in feed:
            yield piece.attempt, piece.offset, piece.data


async def test_log_of_a_trial_that_is_tried_again_follows_from_its_begin(retrying: World) -> None:
    await retrying.create(trial_concurrency=1, max_trial_number=1)
    (first,) = await retrying.agent.holds(1)

    async with asyncio.timeout(PATIENCE_S), aclosing(pieces_of(retrying, first)) as pieces:
        found = [await anext(pieces)]
        await retrying.agent.lose_attempt(first)
        (second,) = await retrying.agent.holds(1)
        await retrying.agent.exit(second)
        found += [piece async for piece in pieces]

    assert found == [(1, 0, LOGS[1]), (2, 0, LOGS[2])]


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [(1, (2, 0, LOGS[2])), (2, (2, 4, LOGS[2][4:])), (0, (2, 4, LOGS[2][4:]))],
)
async def test_offset_of_an_earlier_attempt_is_none_of_the_present_one(
    retrying: World, attempt: int, expected: tuple[int, int, bytes]
) -> None:
    await retrying.create(trial_concurrency=1, max_trial_number=1)
    (first,) = await retrying.agent.holds(1)
    await retrying.agent.lose_attempt(first)
    (second,) = await retrying.agent.holds(1)
    await retrying.agent.exit(second)

    async with asyncio.timeout(PATIENCE_S):
        found = [piece async for piece in pieces_of(retrying, second, offset=4, attempt=attempt)]

    assert found == [expected]


async def test_trial_that_ends_before_its_second_attempt_has_the_log_of_the_first(
    retrying: World,
) -> None:
    await retrying.create(trial_concurrency=1, max_trial_number=1)
    (first,) = await retrying.agent.holds(1)
    experiment_id, trial_id = first.task.experiment_id, first.task.trial_id

    async with asyncio.timeout(PATIENCE_S), aclosing(pieces_of(retrying, first)) as pieces:
        found = [await anext(pieces)]
        retrying.agent.script = keep_waiting
        await retrying.agent.lose_attempt(first)
        await retrying.agent.holds(1)
        await retrying.manager.trials.kill(experiment_id, trial_id)
        found += [piece async for piece in pieces]

    assert found == [(1, 0, LOGS[1])]
