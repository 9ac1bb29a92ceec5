"""Lists of another manager, over a real server in this process."""

from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
import pytest

from nni_proto.experiment.v1 import experiment_pb2
from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_proto.experiment.v1 import experiment_service_pb2_grpc as pb_grpc
from svc_common.errors import UnavailableError
from svc_manager.adapters.grpc_forwarding import FORWARDED_KEY, Channels
from svc_manager.adapters.grpc_peers import GrpcPeers, NoPeers
from svc_manager.domain.lease import ManagerId


class TwoPages(pb_grpc.ExperimentServiceServicer):
    """Lists one experiment to a page, and records the metadata."""

    def __init__(self) -> None:
        self.requests: list[pb.ListExperimentsRequest] = []
        self.metadata: dict[str, str] = {}

    async def ListExperiments(self, request: Any, context: Any) -> Any:
        self.requests.append(request)
        self.metadata = dict(context.invocation_metadata())
        if not request.page_token:
            first = experiment_pb2.Experiment(id="e1")
            return pb.ListExperimentsResponse(experiments=[first], next_page_token="more")
        return pb.ListExperimentsResponse(experiments=[experiment_pb2.Experiment(id="e2")])


@pytest.fixture
async def channels() -> AsyncIterator[Channels]:
    made = Channels(grpc.aio.insecure_channel)
    yield made
    await made.aclose()


async def test_all_pages_of_owned_experiments_are_listed(channels: Channels) -> None:
    servicer = TwoPages()  # type: ignore[abstract] # one method is called
    server = grpc.aio.server()
    pb_grpc.add_ExperimentServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()

    found = await GrpcPeers(channels, "secret", "boot1").owned(
        ManagerId("boot2", f"127.0.0.1:{port}")
    )

    await server.stop(None)
    assert [one.id for one in found] == ["e1", "e2"]
    assert all(request.owned_only for request in servicer.requests)
    assert servicer.metadata[FORWARDED_KEY] == "boot1"


async def test_a_peer_that_is_away_is_unavailable(channels: Channels) -> None:
    with pytest.raises(UnavailableError):
        await GrpcPeers(channels, "secret", "boot1").owned(ManagerId("boot2", "127.0.0.1:1"))


async def test_a_single_manager_has_no_peers() -> None:
    assert await NoPeers().owned(ManagerId("boot2")) == []
