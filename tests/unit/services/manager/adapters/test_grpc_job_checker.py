"""The checker of jobs, over a real gRPC connection to the compressor's servicer."""

from __future__ import annotations

import pytest

from nni_proto.compression.v1 import compression_service_pb2_grpc
from nni_wire.values import to_value
from svc_common.errors import FailedPreconditionError, InvalidArgumentError
from svc_common.rpc.client import open_channel
from svc_common.rpc.server import GrpcServer
from svc_compressor.servicers.compression_servicer import CompressionServicer
from svc_manager.adapters.grpc_job_checker import GrpcJobChecker, NoCompressor
from tests.support.compression_job import job_of


async def test_answer_of_the_compressor_is_passed_on() -> None:
    server = GrpcServer([], None)
    server.register(
        lambda raw: compression_service_pb2_grpc.add_CompressionServiceServicer_to_server(
            CompressionServicer(), raw
        )
    )
    port = await server.start()
    async with open_channel(f"127.0.0.1:{port}") as channel:
        checker = GrpcJobChecker(channel, None)

        await checker.check(to_value(job_of()))

        with pytest.raises(InvalidArgumentError) as refusal:
            await checker.check(to_value({}))
    await server.stop(0)
    assert refusal.value.field == "job.model"


async def test_installation_without_a_compressor_says_what_is_missing() -> None:
    with pytest.raises(FailedPreconditionError, match="NNI_COMPRESSOR_GRPC"):
        await NoCompressor().check(to_value(job_of()))
