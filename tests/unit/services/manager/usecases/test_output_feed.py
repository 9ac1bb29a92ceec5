"""Output of trials whose files are on another machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nni_proto.experiment.v1 import experiment_pb2, experiment_service_pb2
from nni_proto.trial.v1 import output_pb2
from svc_common.errors import NotFoundError
from svc_common.messaging.memory import InMemoryBus
from svc_manager.usecases.output_feed import OutputFeed
from tests.support.manual_timers import ManualTimers
from tests.unit.services.manager.world import PATIENCE_S, Held, World, hold, world_on

STDOUT = experiment_service_pb2.LOG_SOURCE_TRIAL_STDOUT
STDERR = experiment_service_pb2.LOG_SOURCE_TRIAL_STDERR
GRACE_S = 12.5
"""A time that only `ManualTimers` lets pass: real time would race with the output."""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path, script=hold) as made:
        yield made


@pytest.fixture
async def held(world: World) -> Held:
    """A trial that runs where its files cannot be seen from here."""
    await world.create(trial_concurrency=1, max_trial_number=1)
    (held,) = await world.agent.holds(1)
    await world.wait_for_state(
        held.task.experiment_id, experiment_pb2.EXPERIMENT_STATE_NO_MORE_TRIAL
    )
    return held


def publish(
    world: World,
    held: Held,
    data: bytes,
    offset: int = 0,
    *,
    stream: output_pb2.OutputStream.ValueType = output_pb2.OUTPUT_STREAM_STDOUT,
    at_end: bool = False,
    attempt: int = 1,
) -> None:
    piece = output_pb2.TrialOutput(
        attempt=attempt, stream=stream, offset=offset, data=data, at_end=at_end
    )
    world.bus.log_lines.publish(
        held.task.experiment_id, held.task.trial_id, piece.SerializeToString()
    )


async def collect(
    world: World,
    held: Held,
    source: experiment_service_pb2.LogSource.ValueType = STDOUT,
    *,
    offset: int = 0,
    follow: bool = True,
) -> list[tuple[int, bytes]]:
    feed = world.experiments.follow_logs(
        held.task.experiment_id,
        source,
        trial_id=held.task.trial_id,
        offset=offset,
        follow=follow,
    )
    async with asyncio.timeout(PATIENCE_S):
        return [(piece.offset, piece.data) async for piece in feed]


async def test_output_is_followed_to_its_end(world: World, held: Held) -> None:
    publish(world, held, b"one ")
    following = asyncio.ensure_future(collect(world, held))
    publish(world, held, b"two", 4)
    publish(world, held, b"oh", stream=output_pb2.OUTPUT_STREAM_STDERR)
    await world.agent.exit(held)
    publish(world, held, b"", 7, at_end=True)

    assert await following == [(0, b"one "), (4, b"two")]


async def test_end_without_a_stream_ends_each(world: World, held: Held) -> None:
    publish(world, held, b"one")
    following = [asyncio.ensure_future(collect(world, held, source)) for source in (STDOUT, STDERR)]
    await world.agent.exit(held)
    publish(world, held, b"", stream=output_pb2.OUTPUT_STREAM_UNSPECIFIED, at_end=True)

    assert await asyncio.gather(*following) == [[(0, b"one")], []]


async def test_the_other_stream_has_its_own_offsets(world: World, held: Held) -> None:
    publish(world, held, b"one ")
    publish(world, held, b"oh", stream=output_pb2.OUTPUT_STREAM_STDERR)

    assert await collect(world, held, STDERR, follow=False) == [(0, b"oh")]


async def test_output_is_given_from_an_offset_on(world: World, held: Held) -> None:
    publish(world, held, b"one ")
    publish(world, held, b"two", 4)

    assert await collect(world, held, offset=2, follow=False) == [(2, b"e "), (4, b"two")]


async def test_what_was_skipped_shows_in_the_offsets(world: World, held: Held) -> None:
    publish(world, held, b"one")
    publish(world, held, b"later", 1000)

    assert await collect(world, held, follow=False) == [(0, b"one"), (1000, b"later")]


async def test_piece_with_too_many_parts_is_left_out(world: World, held: Held) -> None:
    piece = output_pb2.TrialOutput(
        attempt=1, stream=output_pb2.OUTPUT_STREAM_STDOUT, data=b"dense"
    ).SerializeToString()
    dense = piece + b"\x08\x01" * 1_000  # its attempt once more
    world.bus.log_lines.publish(held.task.experiment_id, held.task.trial_id, dense)
    publish(world, held, b"next")

    assert await collect(world, held, follow=False) == [(0, b"next")]


async def test_a_new_attempt_begins_anew(world: World, held: Held) -> None:
    publish(world, held, b"first", attempt=1)
    publish(world, held, b"again", attempt=2)

    assert await collect(world, held, follow=False) == [(0, b"first"), (0, b"again")]


async def test_without_output_there_is_a_clear_error(world: World, held: Held) -> None:
    with pytest.raises(NotFoundError, match="output of trial"):
        await collect(world, held, follow=False)


async def test_the_output_of_a_dead_agent_is_awaited_for_a_limited_time(
    world: World, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers = ManualTimers(monkeypatch, GRACE_S)
    publish(world, held, b"last")
    await world.agent.exit(held)
    await world.wait_for_state(held.task.experiment_id, experiment_pb2.EXPERIMENT_STATE_DONE)
    actor = await world.manager.registry.find(held.task.experiment_id)
    feed = OutputFeed(
        world.bus.log_lines,
        actor,
        held.task.trial_id,
        output_pb2.OUTPUT_STREAM_STDOUT,
        0,
        grace_s=GRACE_S,
    )

    pieces: list[bytes] = []
    arrived = asyncio.Event()

    async def follow() -> None:
        async for piece in feed.follow():
            pieces.append(piece.data)
            arrived.set()

    async with asyncio.timeout(PATIENCE_S):
        following = asyncio.ensure_future(follow())
        await arrived.wait()
        await timers.wait_pending()
        timers.fire()
        await following

    assert pieces == [b"last"]


async def test_files_of_this_machine_are_read_themselves(world: World, held: Held) -> None:
    actor = await world.manager.registry.find(held.task.experiment_id)
    folder = Path(actor.experiment.directory) / "trials" / held.task.trial_id
    folder.mkdir(parents=True)
    (folder / "stdout").write_bytes(b"from the file")

    following = asyncio.ensure_future(collect(world, held))
    await world.agent.exit(held)

    assert await following == [(0, b"from the file")]


async def test_a_trial_that_never_ran_has_said_nothing(tmp_path: Path) -> None:
    async def leave_it(_agent: object, _held: Held) -> None:
        """Take the task and say nothing."""

    async with InMemoryBus() as bus, world_on(bus, tmp_path, script=leave_it) as world:
        await world.create(trial_concurrency=1, max_trial_number=1)
        (held,) = await world.agent.holds(1)
        following = asyncio.ensure_future(collect(world, held))
        await world.manager.trials.kill(held.task.experiment_id, held.task.trial_id)

        assert await following == []
