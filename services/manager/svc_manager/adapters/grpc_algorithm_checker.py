"""`AlgorithmChecker` over the dispatcher's gRPC service."""

from typing import Final

import grpc.aio

from nni_proto.experiment.v1 import config_pb2
from nni_proto.tuning.v1 import algorithm_service_pb2, algorithm_service_pb2_grpc
from svc_common.rpc.client import service_error, token_metadata

_DEADLINE_S: Final = 60.0
"""Time for a custom class, which the user's interpreter imports."""


class GrpcAlgorithmChecker:
    """gRPC client that makes the dispatcher validate algorithms before an experiment is created.

    Args:
        channel: to the dispatcher; the caller closes it.
        token: of the installation; None: the dispatcher needs none.
    """

    def __init__(self, channel: grpc.aio.Channel, token: str | None) -> None:
        self._stub = algorithm_service_pb2_grpc.AlgorithmServiceStub(channel)
        self._credentials = token_metadata(token)

    async def check(
        self,
        config: config_pb2.ExperimentConfig,
        interpreter: str,
        *,
        replaces_space: bool = False,
        replaced_tuner: config_pb2.AlgorithmConfig | None = None,
    ) -> tuple[list[str], str]:
        """Validate algorithms and space by the dispatcher; return warnings and optimize mode."""
        request = algorithm_service_pb2.ValidateAlgorithmsRequest(
            search_space=config.search_space,
            interpreter=interpreter,
            several_outcomes=len(config.objectives) > 1 or bool(config.constraints),
            replaces_space=replaces_space,
            replaced_tuner=replaced_tuner,
            # Configurations that break the constraints of a later space are skipped.
            enqueued=[] if replaces_space else config.search.enqueue,
        )
        for name in ("tuner", "assessor", "advisor"):
            if config.HasField(name):
                getattr(request, name).CopyFrom(getattr(config, name))
        try:
            response = await self._stub.ValidateAlgorithms(
                request, timeout=_DEADLINE_S, metadata=self._credentials, wait_for_ready=True
            )
        except grpc.aio.AioRpcError as error:
            raise service_error(error) from error
        return list(response.warnings), response.optimize_mode
