"""Forwarding from a manager without experiments to the owner of all, each with a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import grpc.aio
import pytest

from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_proto.experiment.v1 import experiment_service_pb2_grpc as pb_grpc
from nni_proto.experiment.v1 import history_service_pb2 as history_pb
from nni_proto.experiment.v1 import history_service_pb2_grpc as history_pb_grpc
from nni_wire.metadata import bearer
from svc_common.access.security import Guard
from svc_common.errors import NotFoundError
from svc_common.rpc.client import open_channel, service_error
from svc_manager.actors.leasing import OwnedElsewhereError
from svc_manager.adapters.forwarding_grpc_server import ForwardingGrpcServer
from svc_manager.adapters.grpc_forwarding import FORWARDED_KEY, Channels, Forwarder
from svc_manager.domain.lease import ManagerId

TOKEN = "a-token-of-tests"
SERVICE = "nni_proto.experiment.v1.ExperimentService"


class Owner(pb_grpc.ExperimentServiceServicer):
    """Has every experiment but `nothing1`."""

    def __init__(self) -> None:
        self.metadata: dict[str, Any] = {}
        self.cancelled = asyncio.Event()

    async def GetExperiment(
        self, request: pb.GetExperimentRequest, context: Any
    ) -> pb.GetExperimentResponse:
        self.metadata = dict(context.invocation_metadata())
        if request.experiment_id == "frozen01":
            await asyncio.Event().wait()
        if request.experiment_id == "nothing1":
            raise NotFoundError("experiment", "nothing1")
        answer = pb.GetExperimentResponse(urls=["http://here"])
        answer.experiment.id = request.experiment_id
        return answer

    async def FollowLogs(
        self, request: pb.FollowLogsRequest, context: Any
    ) -> AsyncIterator[pb.FollowLogsResponse]:
        try:
            for number in range(3):
                yield pb.FollowLogsResponse(data=b"x" * number, offset=number)
            if request.follow:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@dataclass
class Elsewhere(pb_grpc.ExperimentServiceServicer):
    """Knows who has the experiments."""

    owner: ManagerId = field(default_factory=lambda: ManagerId("owner"))

    async def GetExperiment(
        self, request: pb.GetExperimentRequest, context: Any
    ) -> pb.GetExperimentResponse:
        raise OwnedElsewhereError(request.experiment_id, self.owner)

    async def FollowLogs(
        self, request: pb.FollowLogsRequest, context: Any
    ) -> AsyncIterator[pb.FollowLogsResponse]:
        if request.offset:
            yield pb.FollowLogsResponse(offset=request.offset)
        raise OwnedElsewhereError(request.experiment_id, self.owner)


class OwnerOfHistories(history_pb_grpc.HistoryServiceServicer):
    """Takes in whatever comes."""

    async def LoadExperiment(
        self, request_iterator: AsyncIterator[history_pb.LoadExperimentRequest], context: Any
    ) -> history_pb.LoadExperimentResponse:
        answer = history_pb.LoadExperimentResponse()
        answer.experiment.id = " ".join(
            [one.header.experiment_id or one.piece.name async for one in request_iterator]
        )
        return answer


@dataclass
class HistoriesElsewhere(history_pb_grpc.HistoryServiceServicer):
    """Knows who has the histories after it has read some messages."""

    elsewhere: Elsewhere
    reads: int = 1

    async def LoadExperiment(
        self, request_iterator: AsyncIterator[history_pb.LoadExperimentRequest], context: Any
    ) -> history_pb.LoadExperimentResponse:
        for _ in range(self.reads):
            await anext(request_iterator)
        raise OwnedElsewhereError("exp1", self.elsewhere.owner)


@dataclass
class Pair:
    owner: Owner
    elsewhere: Elsewhere
    histories: HistoriesElsewhere
    stub: pb_grpc.ExperimentServiceAsyncStub
    history_stub: history_pb_grpc.HistoryServiceAsyncStub
    stop_owner: Any
    moves: asyncio.Event
    """Set when the experiment has yet another owner."""

    async def get(self, experiment_id: str, **more: Any) -> pb.GetExperimentResponse:
        request = pb.GetExperimentRequest(experiment_id=experiment_id)
        return await self.stub.GetExperiment(request, metadata=bearer(TOKEN), timeout=10, **more)

    async def load(self, *names: str) -> str:
        async def requests() -> AsyncIterator[history_pb.LoadExperimentRequest]:
            header = history_pb.LoadHeader(experiment_id="exp1")
            yield history_pb.LoadExperimentRequest(header=header)
            for name in names:
                yield history_pb.LoadExperimentRequest(piece=history_pb.FilePiece(name=name))

        answer = await self.history_stub.LoadExperiment(
            requests(), metadata=bearer(TOKEN), timeout=10
        )
        return str(answer.experiment.id)


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    channels, moves = Channels(open_channel), asyncio.Event()

    async def until_moved(elsewhere: OwnedElsewhereError) -> None:
        del elsewhere
        await moves.wait()

    forwarder = Forwarder(channels, "boot1", until_moved)
    owner, elsewhere = Owner(), Elsewhere()  # type: ignore[abstract] # the rest is never called
    histories = HistoriesElsewhere(elsewhere)  # type: ignore[abstract] # as above
    servers = []
    for servicer, history in ((owner, OwnerOfHistories()), (elsewhere, histories)):  # type: ignore[abstract] # as above
        server = ForwardingGrpcServer(forwarder, [SERVICE], Guard.of_token(TOKEN), "test")
        server.register(
            lambda raw, it=servicer: pb_grpc.add_ExperimentServiceServicer_to_server(it, raw)  # type: ignore[misc] # bound now
        )
        server.register(
            lambda raw, it=history: history_pb_grpc.add_HistoryServiceServicer_to_server(it, raw)  # type: ignore[misc] # bound now
        )
        servers.append((server, await server.start()))
    elsewhere.owner = ManagerId("owner", f"127.0.0.1:{servers[0][1]}")
    async with open_channel(f"127.0.0.1:{servers[1][1]}") as channel:
        yield Pair(
            owner,
            elsewhere,
            histories,
            pb_grpc.ExperimentServiceStub(channel),
            history_pb_grpc.HistoryServiceStub(channel),
            servers[0][0].stop,
            moves,
        )
        await channels.aclose()
    for server, _ in servers:
        await server.stop(0)


async def test_a_call_is_answered_by_the_owner(pair: Pair) -> None:
    answer = await pair.get("exp1")

    assert (answer.experiment.id, list(answer.urls)) == ("exp1", ["http://here"])
    assert pair.owner.metadata[FORWARDED_KEY] == "boot1"
    assert pair.owner.metadata["authorization"] == f"Bearer {TOKEN}"


async def test_a_refusal_of_the_owner_comes_back_with_its_facts(pair: Pair) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await pair.get("nothing1")

    error = service_error(refusal.value)
    assert isinstance(error, NotFoundError)
    assert (error.kind, error.id) == ("experiment", "nothing1")


async def test_a_stream_is_passed_on_and_ends_with_its_reader(pair: Pair) -> None:
    whole = pair.stub.FollowLogs(pb.FollowLogsRequest(), metadata=bearer(TOKEN), timeout=10)
    assert [item.offset async for item in whole] == [0, 1, 2]
    endless = pair.stub.FollowLogs(pb.FollowLogsRequest(follow=True), metadata=bearer(TOKEN))
    async for item in endless:
        if item.offset == 2:
            break
    endless.cancel()

    await asyncio.wait_for(pair.owner.cancelled.wait(), 10)


async def test_a_stream_that_breaks_when_its_experiment_moves_is_to_be_taken_up_again(
    pair: Pair,
) -> None:
    stream = pair.stub.FollowLogs(pb.FollowLogsRequest(offset=5), metadata=bearer(TOKEN))

    with pytest.raises(grpc.aio.AioRpcError) as broken:
        assert [item async for item in stream] == []

    assert broken.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b", "c")], ids=len)
async def test_what_a_client_streams_is_passed_on_whole(pair: Pair, names: tuple[str, ...]) -> None:
    assert await pair.load(*names) == " ".join(["exp1", *names])


async def test_what_was_read_beyond_the_first_message_cannot_be_passed_on(pair: Pair) -> None:
    pair.histories.reads = 2

    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await pair.load("a", "b")

    assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "try again" in str(refusal.value.details())


async def test_an_owner_that_does_not_answer_is_reported_with_the_remedy(pair: Pair) -> None:
    await pair.stop_owner(0)

    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await pair.get("exp1")

    assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "takes the experiment over within seconds: try again" in str(refusal.value.details())


async def test_a_call_is_passed_on_once(pair: Pair) -> None:
    again = (*bearer(TOKEN), (FORWARDED_KEY, "boot2"))

    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await pair.stub.GetExperiment(
            pb.GetExperimentRequest(experiment_id="exp1"), metadata=again, timeout=10
        )

    assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "changing hands" in str(refusal.value.details())


async def test_an_owner_without_an_address_cannot_be_asked(pair: Pair) -> None:
    pair.elsewhere.owner = ManagerId("")

    with pytest.raises(grpc.aio.AioRpcError, match="changing hands"):
        await pair.get("exp1")


async def test_a_frozen_owner_is_waited_for_until_another_one_has_the_experiment(
    pair: Pair,
) -> None:
    asking = asyncio.ensure_future(pair.get("frozen01"))
    stream = pair.stub.FollowLogs(pb.FollowLogsRequest(follow=True), metadata=bearer(TOKEN))
    items = aiter(stream)
    assert [(await anext(items)).offset for _ in range(3)] == [0, 1, 2]

    pair.moves.set()

    for refused in (asking, anext(items)):
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await asyncio.wait_for(refused, 30)
        assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
