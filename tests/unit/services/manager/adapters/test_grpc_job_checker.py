"""The checkers of jobs, over real gRPC connections to the servicers of their services."""

from __future__ import annotations

import pytest

from nni_proto.common.v1 import value_pb2
from nni_proto.compression.v1 import compression_service_pb2_grpc
from nni_proto.experiment.v1 import config_pb2
from nni_proto.nas.v1 import nas_service_pb2_grpc
from nni_wire.values import to_value
from svc_common.errors import FailedPreconditionError, InvalidArgumentError
from svc_common.messaging.memory import InMemoryBus
from svc_common.rpc.client import open_channel
from svc_common.rpc.server import GrpcServer
from svc_common.storage.large_values import LargeValues
from svc_common.storage.memory import InMemoryBlobStore
from svc_compressor.servicers.compression_servicer import CompressionServicer
from svc_manager.adapters.grpc_job_checker import (
    GrpcExplorationChecker,
    GrpcJobChecker,
    JobCheckers,
    NoService,
)
from svc_nas.servicers.nas_servicer import NasServicer
from svc_nas.sessions.progress_reader import ProgressReader
from svc_nas.stored_documents import StoredDocuments
from tests.support.compression_job import job_of


def config_of(job: object) -> config_pb2.ExperimentConfig:
    return config_pb2.ExperimentConfig(compression=config_pb2.CompressionConfig(job=to_value(job)))


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

        await checker.check(config_of(job_of()))

        with pytest.raises(InvalidArgumentError) as refusal:
            await checker.check(config_of({}))
    await server.stop(0)
    assert refusal.value.field == "job.model"


async def test_exploration_is_checked_by_the_nas_service() -> None:
    blobs = InMemoryBlobStore()
    log = InMemoryBus().events
    server = GrpcServer([], None)
    servicer = NasServicer(StoredDocuments(blobs), ProgressReader(log, LargeValues(blobs)))
    server.register(
        lambda raw: nas_service_pb2_grpc.add_NasServiceServicer_to_server(servicer, raw)
    )
    port = await server.start()
    config = config_pb2.ExperimentConfig(
        nas=config_pb2.NasConfig(
            document=value_pb2.BlobRef(sha256="0" * 64, size_bytes=3), model_format="simplified"
        )
    )
    async with open_channel(f"127.0.0.1:{port}") as channel:
        checker = GrpcExplorationChecker(channel, None)

        with pytest.raises(InvalidArgumentError) as refusal:
            await checker.check(config)
        key = await blobs.put(b"abc")
        config.nas.document.sha256 = key.rpartition("/")[2]
        await checker.check(config)
    await server.stop(0)
    assert refusal.value.field == "nas.document"


@pytest.mark.parametrize(
    ("config", "variable"),
    [
        (config_pb2.ExperimentConfig(nas=config_pb2.NasConfig()), "NNI_NAS_GRPC"),
        (
            config_pb2.ExperimentConfig(compression=config_pb2.CompressionConfig()),
            "NNI_COMPRESSOR_GRPC",
        ),
    ],
)
async def test_installation_without_the_service_says_what_is_missing(
    config: config_pb2.ExperimentConfig, variable: str
) -> None:
    checkers = JobCheckers(
        NoService("compressor", "NNI_COMPRESSOR_GRPC"), NoService("NAS service", "NNI_NAS_GRPC")
    )

    with pytest.raises(FailedPreconditionError, match=variable):
        await checkers.check(config)
