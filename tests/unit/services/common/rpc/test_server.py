import asyncio
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from nni_proto.experiment.v1 import history_service_pb2 as history_pb
from nni_proto.experiment.v1 import history_service_pb2_grpc as history_pb_grpc
from nni_proto.trial.v1 import trial_service_pb2 as pb
from nni_proto.trial.v1 import trial_service_pb2_grpc as pb_grpc
from svc_common import errors
from svc_common.rpc.client import open_channel, service_error, token_metadata
from svc_common.rpc.server import (
    STATUS_BY_ERROR,
    GrpcConnectionLimits,
    GrpcServer,
)

NAME = "nni_proto.trial.v1.TrialService"
TOKEN = "secret"


class FailingTrials(pb_grpc.TrialServiceServicer):
    """Servicer that raises the error that a test sets."""

    def __init__(self) -> None:
        self.error: Exception = errors.NotFoundError("trial", "t1")

    async def GetTrial(self, request: pb.GetTrialRequest, context: object) -> pb.GetTrialResponse:
        raise self.error


@pytest.fixture
def trials() -> FailingTrials:
    return FailingTrials()  # type: ignore[abstract] # no test calls the other methods


@pytest.fixture
async def address(trials: FailingTrials) -> AsyncIterator[str]:
    server = GrpcServer([NAME], TOKEN)
    server.register(lambda one: pb_grpc.add_TrialServiceServicer_to_server(trials, one))
    port = await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(0.1)


async def call(address: str, token: str | None = TOKEN) -> grpc.aio.AioRpcError:
    async with open_channel(address) as channel:
        stub: pb_grpc.TrialServiceAsyncStub = pb_grpc.TrialServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.GetTrial(pb.GetTrialRequest(), metadata=token_metadata(token), timeout=10)
    return caught.value


EXAMPLES: list[errors.ServiceError] = [
    errors.InvalidArgumentError("a.b", "must be >= 1", 0, "use 1"),
    errors.NotFoundError("trial", "t1"),
    errors.AlreadyExistsError("experiment", "e1"),
    errors.FailedPreconditionError("the experiment has ended"),
    errors.AbortedError("another writer came first"),
    errors.PermissionDeniedError("a viewer may not stop"),
    errors.ResourceExhaustedError("the disk is full"),
    errors.UnavailableError("the bus is away"),
    errors.DataLossError("sha256/00", "00", "ff"),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
async def test_error_is_restored_on_the_client(
    address: str, trials: FailingTrials, error: errors.ServiceError
) -> None:
    trials.error = error

    refused = await call(address)
    back = service_error(refused)

    assert refused.code() is STATUS_BY_ERROR[type(error)]
    assert type(back) is type(error)
    assert back.message == error.message
    assert back.facts == error.facts


async def test_every_error_of_the_tree_has_a_status() -> None:
    def tree(kind: type[errors.ServiceError]) -> set[type[errors.ServiceError]]:
        return {kind}.union(
            *(tree(sub) for sub in kind.__subclasses__() if sub.__module__ == errors.__name__)
        )

    assert tree(errors.ServiceError) - {errors.ServiceError} == set(STATUS_BY_ERROR)


async def test_unexpected_error_shows_its_class_only(address: str, trials: FailingTrials) -> None:
    trials.error = ValueError("a secret path")

    refused = await call(address)

    assert refused.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in (refused.details() or "")


async def test_facts_too_large_for_metadata_are_left_out(
    address: str, trials: FailingTrials
) -> None:
    trials.error = errors.InvalidArgumentError("space", "must be valid", "x" * 10_000)

    assert (await call(address)).code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("token", [None, "wrong"])
async def test_call_without_the_token_is_refused(address: str, token: str | None) -> None:
    refused = await call(address, token)

    assert isinstance(service_error(refused), errors.UnauthenticatedError)


async def test_health_needs_no_token_and_names_the_service(address: str) -> None:
    async with open_channel(address) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=NAME), timeout=10)

    assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_health_cannot_be_watched(address: str) -> None:
    async with open_channel(address) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await anext(aiter(stub.Watch(health_pb2.HealthCheckRequest(), timeout=10)))

    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_reflection_without_the_token_is_refused(address: str) -> None:
    async with open_channel(address) as channel:
        make: Any = reflection_pb2_grpc.ServerReflectionStub
        requests: Any = reflection_pb2
        listed = requests.ServerReflectionRequest(list_services="")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await anext(aiter(make(channel).ServerReflectionInfo(iter([listed]), timeout=10)))

    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_reflection_lists_the_service(address: str) -> None:
    async with open_channel(address) as channel:
        requests: Any = reflection_pb2
        make: Any = reflection_pb2_grpc.ServerReflectionStub
        stub = make(channel)
        call = stub.ServerReflectionInfo(
            iter([requests.ServerReflectionRequest(list_services="")]),
            metadata=token_metadata(TOKEN),
            timeout=10,
        )
        names = [
            service.name
            async for answer in call
            for service in answer.list_services_response.service
        ]

    assert NAME in names


async def test_taken_port_is_a_clear_error(address: str) -> None:
    port = int(address.rpartition(":")[2])

    with pytest.raises(errors.FailedPreconditionError, match=f"cannot listen on 127.0.0.1:{port}"):
        await GrpcServer([], None).start(port=port)


@pytest.mark.parametrize("letter", ["x", "ü", "界"])
async def test_a_long_message_is_cut_so_that_it_arrives(
    trials: FailingTrials, address: str, letter: str
) -> None:
    trials.error = errors.NotFoundError("trial", letter * 20_000)

    error = await call(address)

    assert error.code() is grpc.StatusCode.NOT_FOUND
    assert (error.details() or "").startswith("there is no trial")


async def test_error_of_one_service_has_the_status_of_its_base_class(
    trials: FailingTrials, address: str
) -> None:
    class TakenError(errors.FailedPreconditionError):
        """Error of one service."""

    trials.error = TakenError("it is taken")

    assert (await call(address)).code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_malformed_bytes_are_an_invalid_argument(address: str) -> None:
    async with open_channel(address) as channel:
        method: Any = channel.unary_unary(f"/{NAME}/GetTrial")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await method(b"\xff\xff", metadata=token_metadata(TOKEN), timeout=10)

    found = service_error(caught.value)
    assert isinstance(found, errors.InvalidArgumentError)
    assert found.message.startswith("request must be a message of this method")


class Refusing(history_pb_grpc.HistoryServiceServicer):
    """Servicer that refuses a stream after its first message."""

    def __init__(self) -> None:
        self.refused = asyncio.Event()

    async def LoadExperiment(
        self, request_iterator: AsyncIterator[history_pb.LoadExperimentRequest], context: object
    ) -> history_pb.LoadExperimentResponse:
        await anext(request_iterator)
        self.refused.set()
        raise errors.FailedPreconditionError("there is one already")


async def test_refused_client_that_still_sends_gets_the_cause() -> None:
    server, servicer = GrpcServer([], TOKEN), Refusing()  # type: ignore[abstract] # the rest is never called
    server.register(lambda one: history_pb_grpc.add_HistoryServiceServicer_to_server(servicer, one))
    port = await server.start()

    async def requests() -> AsyncIterator[history_pb.LoadExperimentRequest]:
        yield history_pb.LoadExperimentRequest()
        await servicer.refused.wait()
        for _ in range(20):
            yield history_pb.LoadExperimentRequest(piece=history_pb.FilePiece(data=b"x" * 10_000))

    async with open_channel(f"127.0.0.1:{port}") as channel:
        stub: history_pb_grpc.HistoryServiceAsyncStub = history_pb_grpc.HistoryServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError, match="there is one already") as refusal:
            await stub.LoadExperiment(requests(), metadata=token_metadata(TOKEN), timeout=10)
    await server.stop(0)

    assert refusal.value.code() is grpc.StatusCode.FAILED_PRECONDITION


def idle_connection(address: str) -> socket.socket:
    """Return a connection of HTTP/2 that never makes a call."""
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=10)
    settings = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings)
    return connection


def is_served(connection: socket.socket) -> bool:
    """Return whether the server answers on a connection; False: it has closed it."""
    try:
        return bool(connection.recv(1))
    except ConnectionError:
        return False


async def test_idle_connections_are_limited() -> None:
    server = GrpcServer([NAME], TOKEN, limits=GrpcConnectionLimits(5))
    address = f"127.0.0.1:{await server.start()}"
    connections = [await asyncio.to_thread(idle_connection, address) for _ in range(8)]

    served = [await asyncio.to_thread(is_served, connection) for connection in connections]

    assert sum(served) == 5
    for connection in connections:
        connection.close()
    await server.stop(0)


async def test_connection_without_a_call_is_closed() -> None:
    server = GrpcServer([NAME], TOKEN, limits=GrpcConnectionLimits(5, idle_ms=100))
    connection = await asyncio.to_thread(idle_connection, f"127.0.0.1:{await server.start()}")

    def is_closed() -> bool:
        # Reset, if it was closed before the server has read the first bytes.
        with suppress(ConnectionError):
            while connection.recv(65536):  # its time-out fails the test
                pass
        return True

    assert await asyncio.to_thread(is_closed)
    connection.close()
    await server.stop(0)


@pytest.mark.parametrize(
    ("descriptors", "connections"),
    [(1024, 256), (1_048_576, 4_000), (resource.RLIM_INFINITY, 4_000), (2, 1)],
)
def test_connections_leave_descriptors_for_all_else(descriptors: int, connections: int) -> None:
    assert GrpcConnectionLimits.of_descriptors(descriptors).connections == connections


def test_idle_connections_end_within_a_minute() -> None:
    assert 0 < GrpcConnectionLimits.of_process().idle_ms <= 60_000
