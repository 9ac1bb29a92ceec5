"""Probes of the services that the manager needs, for `nnictl doctor`."""

import secrets
from typing import Any, Final

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from svc_common.errors import NotFoundError, UnavailableError
from svc_common.storage.ports import BlobStore
from svc_manager.ports import Views
from svc_manager.usecases.diagnosis import Probe

_PATIENCE_S: Final = 3.0


def dispatcher_probe(channel: grpc.aio.Channel, address: str) -> Probe:
    """Return an async check that raises unless the dispatcher's gRPC health is SERVING."""

    async def probe() -> str:
        stub: Any = health_pb2_grpc.HealthStub(channel)  # its types name no method
        try:
            answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=_PATIENCE_S)
        except grpc.aio.AioRpcError as error:
            raise UnavailableError(
                f"{address} does not answer ({error.code().name}): algorithms cannot be checked "
                "or started; see dispatcher.log"
            ) from error
        if answer.status != health_pb2.HealthCheckResponse.SERVING:
            raise UnavailableError(f"{address} does not serve; see dispatcher.log")
        return f"{address} serves"

    return probe


def store_probe(blobs: BlobStore) -> Probe:
    """Return an async check that writes a random blob, reads and deletes it; raises on a loss."""

    async def probe() -> str:
        key = f"probe/{secrets.token_hex(8)}/manager"
        await blobs.put_named(key, b"nni")
        try:
            if await blobs.get(key) != b"nni":
                raise UnavailableError("the byte store returns other bytes than were written")
        except NotFoundError as error:
            raise UnavailableError(
                "the byte store has lost a blob that was just written"
            ) from error
        finally:
            await blobs.delete(key)
        return "bytes can be written and read"

    return probe


def views_probe(views: Views) -> Probe:
    """Return an async check that the view store responds: it reads a view that does not exist."""

    async def probe() -> str:
        await views.get(["probe"])
        return "answers"

    return probe
