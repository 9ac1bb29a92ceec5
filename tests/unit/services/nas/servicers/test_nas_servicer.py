"""gRPC API of the NAS service, over a real connection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2, event_pb2
from nni_proto.nas.v1 import nas_service_pb2 as pb
from nni_proto.nas.v1 import nas_service_pb2_grpc
from nni_wire.values import from_value, to_value
from svc_common.messaging.memory import InMemoryBus
from svc_common.rpc.client import open_channel
from svc_common.rpc.server import GrpcServer
from svc_common.storage.large_values import LargeValues
from svc_common.storage.memory import InMemoryBlobStore
from svc_nas.servicers.nas_servicer import NasServicer
from svc_nas.sessions.progress_reader import ProgressReader
from svc_nas.stored_documents import StoredDocuments
from tests.support.scripted_manager import ScriptedManager, requested, scheduled

DOCUMENT = b"{}"


class Site:
    """Served API, and the manager that writes the log of exploration `exp`."""

    def __init__(self, root: Path) -> None:
        self.bus = InMemoryBus()
        self.blobs = InMemoryBlobStore()
        self.manager = ScriptedManager(self.bus, "exp", root)
        self.stub: Any = None

    async def config(self) -> config_pb2.NasConfig:
        sha256 = (await self.blobs.put(DOCUMENT)).rpartition("/")[2]
        document = value_pb2.BlobRef(sha256=sha256, size_bytes=len(DOCUMENT))
        return config_pb2.NasConfig(document=document, model_format="simplified")

    async def evaluate(self, parameter_id: int, metric: float) -> None:
        sample = to_value({"sample": {"width": parameter_id}})
        item = event_pb2.GeneratedParameters(parameter_id=parameter_id, parameters=sample)
        answer = event_pb2.ParametersGenerated(parameters=[item])
        await self.manager.append(
            event_pb2.Event(parameters_generated=answer),
            scheduled(f"t{parameter_id:04}", parameter_id, sample),
        )
        await self.manager.finish(parameter_id, metric)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    site = Site(tmp_path)
    reader = ProgressReader(site.bus.events, LargeValues(site.blobs))
    servicer = NasServicer(StoredDocuments(site.blobs), reader)
    server = GrpcServer([], None)
    register = nas_service_pb2_grpc.add_NasServiceServicer_to_server
    server.register(lambda raw: register(servicer, raw))
    port = await server.start()
    async with open_channel(f"127.0.0.1:{port}") as channel:
        site.stub = nas_service_pb2_grpc.NasServiceStub(channel)
        yield site
    await server.stop(0)


async def test_exploration_with_a_stored_document_is_valid(site: Site) -> None:
    request = pb.ValidateExplorationRequest(exploration=await site.config())

    assert await site.stub.ValidateExploration(request) == pb.ValidateExplorationResponse()


async def test_document_that_is_not_stored_is_refused(site: Site) -> None:
    config = await site.config()
    config.document.sha256 = "0" * 64

    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await site.stub.ValidateExploration(pb.ValidateExplorationRequest(exploration=config))

    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "nas.document must be stored" in str(refusal.value.details())


async def test_progress_and_best_models_are_those_of_the_log(site: Site) -> None:
    await site.manager.create({}, service="nas", nas=await site.config())
    for parameter_id, metric in ((1, 0.5), (2, 0.9), (3, 0.7)):
        await site.evaluate(parameter_id, metric)

    shown = await site.stub.GetExploration(pb.GetExplorationRequest(experiment_id="exp"))
    top = await site.stub.ExportTopModels(pb.ExportTopModelsRequest(experiment_id="exp", limit=2))

    assert shown.exploration.succeeded == 3
    assert [from_value(one.sample) for one in top.models] == [{"width": 2}, {"width": 3}]
    assert [one.trial_id for one in top.models] == ["t0002", "t0003"]


async def test_one_model_is_returned_unless_more_are_wanted(site: Site) -> None:
    await site.manager.create({}, service="nas", nas=await site.config())
    await site.manager.append(requested(2, "nas"))
    for parameter_id in (1, 2):
        await site.evaluate(parameter_id, 0.5)

    top = await site.stub.ExportTopModels(pb.ExportTopModelsRequest(experiment_id="exp"))

    assert len(top.models) == 1


async def test_unknown_exploration_is_not_found(site: Site) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await site.stub.GetExploration(pb.GetExplorationRequest(experiment_id="none"))

    assert refusal.value.code() is grpc.StatusCode.NOT_FOUND
