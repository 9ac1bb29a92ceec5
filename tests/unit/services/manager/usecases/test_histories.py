from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from nni_proto.experiment.v1 import history_service_pb2 as pb
from svc_common.errors import NotFoundError
from svc_common.messaging.memory import InMemoryBus
from svc_manager.usecases.histories import Histories
from tests.unit.services.manager.world import world_on


class CountingReplayer:
    """`Replayer` that yields three messages, and records its end."""

    def __init__(self) -> None:
        self.closed = False

    async def replay(self, experiment_id: str) -> AsyncGenerator[pb.ReplayExperimentResponse, None]:
        del experiment_id
        try:
            for _ in range(3):
                yield pb.ReplayExperimentResponse()
        finally:
            self.closed = True


async def test_a_replay_yields_all_messages_of_the_dispatcher(tmp_path: Path) -> None:
    replayer = CountingReplayer()
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as world:
        experiment_id = await world.create()

        messages = [
            message
            async for message in Histories(world.manager.registry, replayer).replay(experiment_id)
        ]

    assert len(messages) == 3
    assert replayer.closed


async def test_a_caller_that_leaves_ends_the_replay(tmp_path: Path) -> None:
    replayer = CountingReplayer()
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as world:
        experiment_id = await world.create()
        replay = Histories(world.manager.registry, replayer).replay(experiment_id)

        await anext(replay)
        await replay.aclose()

    assert replayer.closed


async def test_an_unknown_experiment_is_not_replayed(tmp_path: Path) -> None:
    replayer = CountingReplayer()
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as world:
        with pytest.raises(NotFoundError):
            await anext(Histories(world.manager.registry, replayer).replay("unknown1"))

    assert not replayer.closed
