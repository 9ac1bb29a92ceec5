"""A full bus: experiments wait with a visible reason, and go on when there is room."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nni_proto.experiment.v1 import experiment_pb2
from svc_common.errors import ResourceExhaustedError
from svc_common.messaging.nats_bus import LOG_LINES_LIMIT_BYTES, NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from svc_manager.usecases.experiments import ConfigChange
from tests.support.servers import NatsServer
from tests.unit.services.manager.world import World, world_on

RUNNING = experiment_pb2.EXPERIMENT_STATE_RUNNING
ROOM_BYTES = 4 * 1024 * 1024
PIECE_BYTES = 4 * 1024 * 1024


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    server = NatsServer(tmp_path / "nats")
    # The stream of output sets its own room aside.
    server.room = f", max_file_store: {LOG_LINES_LIMIT_BYTES + ROOM_BYTES}"
    server.start()
    try:
        async with NatsBus(NatsSettings(server.url)) as bus, world_on(bus, tmp_path) as made:
            yield made
    finally:
        server.stop()


async def fill(world: World) -> None:
    """Put something else into the bus until it takes no more."""
    pieces = 2 * LOG_LINES_LIMIT_BYTES // PIECE_BYTES
    try:
        for number in range(pieces):
            await world.bus.inbox.publish(
                "filler", "x", bytes(PIECE_BYTES), message_id=f"filler-{number}"
            )
    except ResourceExhaustedError:
        return
    pytest.fail("there is still room")


async def test_an_experiment_waits_visibly_for_room_and_loses_nothing(world: World) -> None:
    experiment_id = await world.create(max_trial_number=1)
    await world.wait_for_state(experiment_id, experiment_pb2.EXPERIMENT_STATE_DONE)
    await fill(world)

    change = asyncio.ensure_future(
        world.experiments.update(experiment_id, ConfigChange(max_trial_number=3))
    )
    async with asyncio.timeout(60):
        while True:
            view = (await world.experiments.get(experiment_id)).experiment
            if "out of room" in view.waiting_for:
                break
            await asyncio.sleep(0.05)
    assert "free disk space" in view.waiting_for
    with pytest.raises(ResourceExhaustedError):
        await world.create()
    await world.bus.inbox.delete("filler")
    await change
    done = await world.wait_for_state(experiment_id, experiment_pb2.EXPERIMENT_STATE_DONE)

    assert done.waiting_for == ""
    assert dict(done.trial_counts) == {"SUCCEEDED": 3}
