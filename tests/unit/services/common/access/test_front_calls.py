"""Tests of calls that come through the TLS front: they have the rights of agents only."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import grpc.aio

from nni_proto.bytes.v1 import byte_service_pb2 as pb
from nni_proto.bytes.v1 import byte_service_pb2_grpc as pb_grpc
from nni_wire.access import AGENT, AccessEntry, dump_entries, fingerprint
from svc_common.access.audit import AuditTrail
from svc_common.access.authentication import Authenticator
from svc_common.access.front_addresses import front_source
from svc_common.access.keyring import Keyring
from svc_common.access.security import Guard
from svc_common.rpc.client import token_metadata
from svc_common.rpc.server import GrpcServer
from svc_trial_runner.fleet.adapters.front.listener import Forward

OWNER, HELPER = "token-of-the-installation", "token-of-an-agent"


class Blobs(pb_grpc.ByteServiceServicer):
    """Servicer whose calls agents may make, and one that they may not."""

    async def PrepareDownload(
        self, request: pb.PrepareDownloadRequest, context: object
    ) -> pb.PrepareDownloadResponse:
        return pb.PrepareDownloadResponse()

    async def GetUsage(self, request: pb.GetUsageRequest, context: object) -> pb.GetUsageResponse:
        return pb.GetUsageResponse()


@asynccontextmanager
async def server(folder: Path, *, agents_only: bool = False) -> AsyncIterator[int]:
    """Yield the port of a server that knows the installation and one agent."""
    access = folder / "access.json"
    access.write_text(dump_entries([AccessEntry("box", AGENT, fingerprint(HELPER))]))
    access.chmod(0o600)
    guard = Guard(Authenticator(Keyring(OWNER, access), AuditTrail()))
    started = GrpcServer(["nni_proto.bytes.v1.ByteService"], guard, "TEST", agents_only=agents_only)
    blobs = Blobs()  # type: ignore[abstract] # no test calls the other methods
    started.register(lambda raw: pb_grpc.add_ByteServiceServicer_to_server(blobs, raw))
    port = await started.start("127.0.0.1", 0)
    try:
        yield port
    finally:
        await started.stop(0)
        guard.close()


async def outcome(port: int, token: str, *, through_front: bool, usage: bool = False) -> str:
    """Return the name of the status of a call, directly or as the front forwards it."""
    if not through_front:
        return await called(port, token, usage=usage)
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Forward("127.0.0.1", port).serve(reader, writer, "203.0.113.7")
        writer.close()
        await writer.wait_closed()
        ended.set()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        found = await called(listening.sockets[0].getsockname()[1], token, usage=usage)
        await ended.wait()
    finally:
        listening.close()
    return found


async def called(port: int, token: str, *, usage: bool) -> str:
    """Return the name of the status of a call to a port."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = pb_grpc.ByteServiceStub(channel)
        metadata = token_metadata(token or None)
        try:
            if usage:
                await stub.GetUsage(pb.GetUsageRequest(), metadata=metadata, timeout=20)
            else:
                request = pb.PrepareDownloadRequest()
                await stub.PrepareDownload(request, metadata=metadata, timeout=20)
        except grpc.aio.AioRpcError as error:
            return error.code().name
    return "OK"


async def test_agents_may_call_through_the_front(tmp_path: Path) -> None:
    async with server(tmp_path) as port:
        assert await outcome(port, HELPER, through_front=True) == "OK"
        assert await outcome(port, HELPER, through_front=True, usage=True) == "PERMISSION_DENIED"


async def test_owner_of_the_installation_may_not(tmp_path: Path) -> None:
    async with server(tmp_path) as port:
        assert await outcome(port, OWNER, through_front=False) == "OK"
        assert await outcome(port, OWNER, through_front=True) == "PERMISSION_DENIED"


async def test_calls_without_a_token_are_refused(tmp_path: Path) -> None:
    async with server(tmp_path) as port:
        assert await outcome(port, "", through_front=True) == "UNAUTHENTICATED"


def test_clients_keep_their_address_for_the_limit_of_failures() -> None:
    assert front_source("203.0.113.7") != "127.0.0.1"


async def test_port_for_the_front_of_another_container_serves_agents_only(tmp_path: Path) -> None:
    async with server(tmp_path, agents_only=True) as port:
        found = [
            await called(port, token, usage=usage)
            for token, usage in ((HELPER, False), (HELPER, True), (OWNER, False), ("guess", False))
        ]

    assert found == ["OK", "PERMISSION_DENIED", "PERMISSION_DENIED", "UNAUTHENTICATED"]
