"""`Peers` over gRPC."""

import grpc.aio

from nni_proto.experiment.v1 import experiment_pb2, experiment_service_pb2_grpc
from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from svc_common.rpc.client import CALL_TIMEOUT_S, service_error, token_metadata
from svc_manager.adapters.grpc_forwarding import FORWARDED_KEY, Channels
from svc_manager.domain.lease import ManagerId

_PAGE: int = 1000


class GrpcPeers:
    """gRPC client that lists the experiments of other managers, with this manager's credentials.

    Args:
        channels: to other managers.
        token: of the installation.
        boot_id: of this manager.
    """

    def __init__(self, channels: Channels, token: str, boot_id: str) -> None:
        self._channels = channels
        self._metadata = (*token_metadata(token), (FORWARDED_KEY, boot_id))

    async def owned(self, manager: ManagerId) -> list[experiment_pb2.Experiment]:
        """Return all experiments that another manager owns, listed over gRPC page by page."""
        channel = self._channels.to(manager.grpc_address)
        stub = experiment_service_pb2_grpc.ExperimentServiceStub(channel)
        request = pb.ListExperimentsRequest(owned_only=True, page_size=_PAGE)
        found: list[experiment_pb2.Experiment] = []
        while True:
            try:
                answer = await stub.ListExperiments(
                    request, metadata=self._metadata, timeout=CALL_TIMEOUT_S
                )
            except grpc.aio.AioRpcError as error:
                raise service_error(error) from error
            found.extend(answer.experiments)
            if not answer.next_page_token:
                return found
            request.page_token = answer.next_page_token


class NoPeers:
    """Null `Peers` of an installation with one manager: no other experiments to list."""

    async def owned(self, manager: ManagerId) -> list[experiment_pb2.Experiment]:
        """Return an empty list; no manager is called."""
        del manager
        return []
