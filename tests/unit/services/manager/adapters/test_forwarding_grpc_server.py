"""Streams of clients that are read a second time; `test_grpc_forwarding` covers the calls."""

from collections.abc import AsyncIterator

import pytest
from google.protobuf.message import Message

from nni_proto.experiment.v1 import history_service_pb2 as pb
from svc_manager.adapters.forwarding_grpc_server import _ReplayableStream


async def requests(count: int) -> AsyncIterator[Message]:
    for number in range(count):
        yield pb.LoadExperimentRequest(piece=pb.FilePiece(name=str(number)))


async def names(stream: AsyncIterator[Message]) -> list[str]:
    return [one.piece.name async for one in stream if isinstance(one, pb.LoadExperimentRequest)]


async def test_a_stream_can_be_replayed_after_its_first_message() -> None:
    stream = _ReplayableStream(requests(3))

    await anext(stream)

    assert stream.replayable
    assert await names(stream.replay()) == ["0", "1", "2"]


async def test_an_unread_stream_can_be_replayed() -> None:
    stream = _ReplayableStream(requests(2))

    assert await names(stream.replay()) == ["0", "1"]


@pytest.mark.parametrize("count", [2, 3])
async def test_a_stream_read_further_cannot_be_replayed(count: int) -> None:
    stream = _ReplayableStream(requests(3))

    for _ in range(count):
        await anext(stream)

    assert not stream.replayable
