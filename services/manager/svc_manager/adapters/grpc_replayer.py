"""`Replayer` over the dispatcher's gRPC service."""

from collections.abc import AsyncGenerator
from typing import Final

import grpc.aio

from nni_proto.experiment.v1 import history_service_pb2
from nni_proto.tuning.v1 import algorithm_service_pb2, algorithm_service_pb2_grpc
from svc_common.rpc.client import service_error, token_metadata

_DEADLINE_S: Final = 24 * 3600.0
"""A replay repeats all computations of an experiment; the dispatcher detects a silent host."""


class GrpcReplayer:
    """gRPC client that makes the dispatcher replay an experiment's algorithm from its log.

    Args:
        channel: to the dispatcher; the caller closes it.
        token: of the installation; None: the dispatcher needs none.
    """

    def __init__(self, channel: grpc.aio.Channel, token: str | None) -> None:
        self._stub = algorithm_service_pb2_grpc.AlgorithmServiceStub(channel)
        self._credentials = token_metadata(token)

    async def replay(
        self, experiment_id: str
    ) -> AsyncGenerator[history_service_pb2.ReplayExperimentResponse, None]:
        """Make the dispatcher replay an experiment; yield progress, differences and the verdict."""
        call = self._stub.ReplaySuggestions(
            algorithm_service_pb2.ReplaySuggestionsRequest(experiment_id=experiment_id),
            timeout=_DEADLINE_S,
            metadata=self._credentials,
            wait_for_ready=True,
        )
        try:
            async for message in call:
                # The same message, as the response type of another method.
                yield history_service_pb2.ReplayExperimentResponse.FromString(
                    message.SerializeToString()
                )
        except grpc.aio.AioRpcError as error:
            raise service_error(error) from error
        finally:
            call.cancel()
