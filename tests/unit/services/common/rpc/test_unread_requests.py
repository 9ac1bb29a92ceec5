"""Messages are read after the caller was checked, and are limited by method."""

import gzip
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from nni_proto.bytes.v1 import byte_service_pb2 as byte_pb
from nni_proto.bytes.v1 import byte_service_pb2_grpc as byte_pb_grpc
from nni_proto.trial.v1 import trial_service_pb2 as pb
from nni_proto.trial.v1 import trial_service_pb2_grpc as pb_grpc
from nni_wire.limits import LARGE_REQUEST_LIMIT_BYTES, MESSAGE_LIMIT_BYTES
from svc_common.access.permissions import RULE_BY_METHOD
from svc_common.rpc.client import open_channel, token_metadata
from svc_common.rpc.server import GrpcServer
from svc_common.rpc.unread_requests import (
    DEFAULT_LIMIT_BYTES,
    UnreadRequestInterceptor,
    limit_of_method,
)

TOKEN = "secret-of-the-installation"
GET_TRIAL = "/nni_proto.trial.v1.TrialService/GetTrial"


class EchoingTrials(pb_grpc.TrialServiceServicer):
    """Servicer that returns the trial of the request."""

    async def GetTrial(self, request: pb.GetTrialRequest, context: object) -> pb.GetTrialResponse:
        response = pb.GetTrialResponse()
        response.trial.id = request.trial_id
        return response


class CountingBytes(byte_pb_grpc.ByteServiceServicer):
    """Servicer that counts the messages of an upload."""

    async def Upload(
        self, request_iterator: AsyncIterator[byte_pb.UploadRequest], context: object
    ) -> byte_pb.UploadResponse:
        return byte_pb.UploadResponse(key=str(len([one async for one in request_iterator])))


@pytest.fixture
def reads() -> list[int]:
    """Sizes of the messages that were read."""
    return []


@pytest.fixture
async def address(reads: list[int]) -> AsyncIterator[str]:
    counting = CountingBytes()  # type: ignore[abstract] # no test calls the other methods
    server = GrpcServer([], TOKEN, unread=UnreadRequestInterceptor(reads.append))
    server.register(lambda one: pb_grpc.add_TrialServiceServicer_to_server(EchoingTrials(), one))  # type: ignore[abstract] # no test calls the other methods
    server.register(lambda one: byte_pb_grpc.add_ByteServiceServicer_to_server(counting, one))
    port = await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(0.1)


async def get_trial(address: str, token: str | None, trial_id: str) -> pb.GetTrialResponse:
    async with open_channel(address) as channel:
        stub: pb_grpc.TrialServiceAsyncStub = pb_grpc.TrialServiceStub(channel)
        request = pb.GetTrialRequest(experiment_id="e", trial_id=trial_id)
        return await stub.GetTrial(request, metadata=token_metadata(token), timeout=20)


async def test_health_check_is_answered_without_reading_its_message(
    address: str, reads: list[int]
) -> None:
    async with open_channel(address) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        request = health_pb2.HealthCheckRequest(service="x" * 60_000_000)
        answer = await stub.Check(request, timeout=20)

    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    assert reads == []


@pytest.mark.parametrize("token", [None, "wrong-token-of-another"])
async def test_no_message_of_an_unknown_caller_is_read(
    address: str, reads: list[int], token: str | None
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await get_trial(address, token, "x" * 60_000_000)

    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert reads == []


async def test_message_of_a_known_caller_is_read_once(address: str, reads: list[int]) -> None:
    answer = await get_trial(address, TOKEN, "trial")

    assert answer.trial.id == "trial"
    assert reads == [
        len(pb.GetTrialRequest(experiment_id="e", trial_id="trial").SerializeToString())
    ]


async def test_message_beyond_the_limit_of_its_method_is_refused(address: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match="GetTrial must have at most 1,048,576 bytes"):
        await get_trial(address, TOKEN, "x" * 2_000_000)


async def test_compressed_message_is_refused(address: str, reads: list[int]) -> None:
    async with open_channel(address) as channel:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(GET_TRIAL)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(
                gzip.compress(b"\0" * 60_000_000),
                metadata=token_metadata(TOKEN),
                compression=grpc.Compression.Gzip,
                timeout=20,
            )

    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert reads == []


async def test_large_piece_of_a_stream_is_refused(address: str) -> None:
    async def pieces(size: int) -> AsyncIterator[byte_pb.UploadRequest]:
        yield byte_pb.UploadRequest(data=b"x")
        yield byte_pb.UploadRequest(data=b"x" * size)

    async with open_channel(address) as channel:
        stub: byte_pb_grpc.ByteServiceAsyncStub = byte_pb_grpc.ByteServiceStub(channel)
        answer = await stub.Upload(pieces(1_000_000), metadata=token_metadata(TOKEN), timeout=20)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.Upload(
                pieces(MESSAGE_LIMIT_BYTES), metadata=token_metadata(TOKEN), timeout=20
            )

    assert answer.key == "2"
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "must have at most" in str(refused.value.details())


async def test_stream_of_an_unknown_caller_is_not_read(address: str) -> None:
    taken = 0

    async def pieces() -> AsyncIterator[byte_pb.UploadRequest]:
        nonlocal taken
        for _ in range(20):
            taken += 1
            yield byte_pb.UploadRequest(data=b"x" * 4_000_000)

    async with open_channel(address) as channel:
        stub: byte_pb_grpc.ByteServiceAsyncStub = byte_pb_grpc.ByteServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError):
            await stub.Upload(pieces(), timeout=20)

    # A piece is under way, one waits in the client's buffer, one for room there; a busy server
    # answers late. A stream that is read gives all twenty.
    assert taken < 6


@pytest.mark.parametrize("method", RULE_BY_METHOD)
def test_every_method_has_a_limit_and_few_a_large_one(method: str) -> None:
    limit = limit_of_method(method)

    assert limit in {DEFAULT_LIMIT_BYTES, MESSAGE_LIMIT_BYTES, LARGE_REQUEST_LIMIT_BYTES}
    if method.rpartition("/")[2].startswith(("Get", "List", "Stop", "Delete", "Follow", "Wait")):
        assert limit == DEFAULT_LIMIT_BYTES


async def test_handlers_of_a_method_are_made_once_and_of_an_unknown_one_never() -> None:
    made: list[str] = []

    async def find(details: grpc.HandlerCallDetails) -> Any:
        made.append(details.method)
        return grpc.unary_unary_rpc_method_handler(print) if details.method == GET_TRIAL else None

    interceptor = UnreadRequestInterceptor()
    details = [_Details(method) for method in (GET_TRIAL, GET_TRIAL, "/none", "/none")]

    first, again, *unknown = [await interceptor.intercept_service(find, one) for one in details]

    assert first is again
    assert unknown == [None, None]
    assert made == [GET_TRIAL, "/none", "/none"]


class _Details(grpc.HandlerCallDetails):
    """Details of a call of a method without metadata."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.invocation_metadata = ()
