"""gRPC API of histories over a real server and channel in this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from nni_proto.experiment.v1 import experiment_pb2, history_service_pb2_grpc, replay_pb2
from nni_proto.experiment.v1 import history_service_pb2 as pb
from svc_common.clock import SystemClock
from svc_common.messaging.memory import InMemoryBus
from svc_common.rpc.client import open_channel
from svc_common.rpc.server import GrpcServer
from svc_common.storage.memory import InMemoryBlobStore
from svc_manager.adapters.random_ids import RandomIds
from svc_manager.adapters.saved_folders import LocalSavedFolders
from svc_manager.app import SERVICES
from svc_manager.servicers.history_servicer import HistoryServicer
from svc_manager.usecases.archives import ArchiveDependencies, Archives
from svc_manager.usecases.histories import Histories
from tests.unit.services.manager.world import World, world_on

DONE = experiment_pb2.EXPERIMENT_STATE_DONE


class Content:
    """`Replayer` that finds everything equal."""

    async def replay(self, experiment_id: str) -> AsyncGenerator[pb.ReplayExperimentResponse, None]:
        yield pb.ReplayExperimentResponse(
            verdict=replay_pb2.ReplayVerdict(repeatable=True, reason=experiment_id)
        )


@dataclass
class Client:
    world: World
    channel: grpc.aio.Channel
    histories: history_service_pb2_grpc.HistoryServiceAsyncStub

    async def finished(self) -> str:
        experiment_id = await self.world.create()
        await self.world.wait_for_state(experiment_id, DONE)
        await self.world.experiments.stop(experiment_id)
        return experiment_id

    async def save(self, experiment_id: str) -> list[pb.SaveExperimentResponse]:
        request = pb.SaveExperimentRequest(experiment_id=experiment_id)
        return [message async for message in self.histories.SaveExperiment(request)]

    async def load(
        self, header: pb.LoadHeader, pieces: list[pb.FilePiece]
    ) -> pb.LoadExperimentResponse:
        async def requests() -> AsyncIterator[pb.LoadExperimentRequest]:
            yield pb.LoadExperimentRequest(header=header)
            for piece in pieces:
                yield pb.LoadExperimentRequest(piece=piece)

        answer: pb.LoadExperimentResponse = await self.histories.LoadExperiment(requests())
        return answer


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    server = GrpcServer(SERVICES, None)
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as world:
        ports = ArchiveDependencies(
            bus.events, InMemoryBlobStore(), LocalSavedFolders(), RandomIds(), SystemClock()
        )
        servicer = HistoryServicer(
            Histories(world.manager.registry, Content()),
            Archives(world.manager.registry, ports, tmp_path / "experiments", "1.2.3"),
        )
        server.register(
            lambda raw: history_service_pb2_grpc.add_HistoryServiceServicer_to_server(servicer, raw)
        )
        port = await server.start()
        async with open_channel(f"127.0.0.1:{port}") as channel:
            yield Client(world, channel, history_service_pb2_grpc.HistoryServiceStub(channel))
        await server.stop(0)


async def test_replay_of_a_known_experiment_is_the_dispatchers_word(client: Client) -> None:
    experiment_id = await client.finished()

    request = pb.ReplayExperimentRequest(experiment_id=experiment_id)
    (answer,) = [message async for message in client.histories.ReplayExperiment(request)]

    assert answer.verdict.reason == experiment_id


async def test_replay_of_an_unknown_experiment_is_not_found(client: Client) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        async for _ in client.histories.ReplayExperiment(
            pb.ReplayExperimentRequest(experiment_id="unknown1")
        ):
            pass

    assert refusal.value.code() is grpc.StatusCode.NOT_FOUND


async def test_what_was_saved_can_be_loaded_once_it_is_deleted(client: Client) -> None:
    experiment_id = await client.finished()
    about, *rest = await client.save(experiment_id)
    await client.world.experiments.delete(experiment_id)

    header = pb.LoadHeader(request_id="r", experiment_id=experiment_id)
    answer = await client.load(header, [message.piece for message in rest])

    assert about.about.nni_version == "1.2.3"
    assert answer.experiment.id == experiment_id
    assert answer.experiment.trial_counts == about.about.experiment.trial_counts


async def test_loading_what_is_here_is_refused_with_the_remedy(client: Client) -> None:
    experiment_id = await client.finished()
    _, *rest = await client.save(experiment_id)

    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await client.load(
            pb.LoadHeader(experiment_id=experiment_id), [message.piece for message in rest]
        )

    assert refusal.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert "nnictl experiment delete" in str(refusal.value.details())


async def test_bytes_that_are_no_message_are_refused(client: Client) -> None:
    method: Any = client.channel.stream_unary(
        "/nni_proto.experiment.v1.HistoryService/LoadExperiment"
    )

    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await method(iter([b"\xff\xff\xff"]))

    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT
