"""In-process `ByteService` over any blob store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import grpc.aio

from nni_proto.bytes.v1 import byte_service_pb2_grpc as pb_grpc
from svc_common.clock import SystemClock
from svc_common.errors import NotFoundError
from svc_common.messaging.ports import Bus
from svc_common.rpc.client import open_channel
from svc_common.rpc.server import GrpcServer
from svc_common.storage.ports import BlobStore
from svc_manager.domain.quota import Quota
from svc_manager.domain.state import Experiment
from svc_manager.servicers.byte_servicer import ByteServicer
from svc_manager.usecases.storage import BlobPolicy, build_blob_services

NAME = "nni_proto.bytes.v1.ByteService"
NO_QUOTA = Quota(0, 0)


async def no_experiment(experiment_id: str) -> Experiment:
    """`FindExperiment` of an installation without experiments."""
    raise NotFoundError("experiment", experiment_id)


@asynccontextmanager
async def byte_service(bus: Bus, blobs: BlobStore, quota: Quota = NO_QUOTA) -> AsyncIterator[str]:
    """Serve a blob store; yield the address."""
    rules = BlobPolicy(quota, timedelta(0), travel=True)
    services = build_blob_services(blobs, bus.events, SystemClock(), rules, list, no_experiment)
    servicer = ByteServicer(services.transfers, services.storage)
    server = GrpcServer([NAME], None)
    server.register(lambda raw: pb_grpc.add_ByteServiceServicer_to_server(servicer, raw))
    port = await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(1)


@asynccontextmanager
async def byte_channel(
    bus: Bus, blobs: BlobStore, quota: Quota = NO_QUOTA
) -> AsyncIterator[grpc.aio.Channel]:
    """Serve a blob store; yield a channel to the server."""
    async with byte_service(bus, blobs, quota) as address, open_channel(address) as channel:
        yield channel


def write(path: Path, data: bytes) -> Path:
    """Write a file and return its path."""
    path.write_bytes(data)
    return path
