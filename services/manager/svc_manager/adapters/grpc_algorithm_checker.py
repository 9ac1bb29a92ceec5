"""`AlgorithmChecker` over the dispatcher's gRPC service."""

import asyncio
from typing import Any, Final

import grpc.aio

from nni_proto.experiment.v1 import config_pb2
from nni_proto.tuning.v1 import algorithm_service_pb2
from svc_common.large_work import encoded
from svc_common.rpc.client import service_error, token_metadata
from svc_manager.adapters.caller_turns import CallerTurns

_METHOD: Final = "/nni_proto.tuning.v1.AlgorithmService/ValidateAlgorithms"
_DEADLINE_S: Final = 60.0
"""Time for a custom class, which the user's interpreter imports."""


class GrpcAlgorithmChecker:
    """gRPC client that makes the dispatcher validate algorithms before an experiment is created.

    Args:
        channel: to the dispatcher; the caller closes it.
        token: of the installation; None: the dispatcher needs none.
        turns: of the callers at the dispatcher's checks.
    """

    def __init__(self, channel: grpc.aio.Channel, token: str | None, turns: CallerTurns) -> None:
        self._turns = turns
        self._validate: Any = channel.unary_unary(
            _METHOD,
            response_deserializer=algorithm_service_pb2.ValidateAlgorithmsResponse.FromString,
        )
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
            interpreter=interpreter,
            several_outcomes=len(config.objectives) > 1 or bool(config.constraints),
            replaces_space=replaces_space,
            replaced_tuner=replaced_tuner,
        )
        for name in ("tuner", "assessor", "advisor"):
            if config.HasField(name):
                getattr(request, name).CopyFrom(getattr(config, name))
        try:
            async with self._turns.turn():
                fields = [request.SerializeToString(), *await _large_fields(config, replaces_space)]
                response = await self._validate(
                    b"".join(fields),
                    timeout=_DEADLINE_S,
                    metadata=self._credentials,
                    wait_for_ready=True,
                )
        except grpc.aio.AioRpcError as error:
            raise service_error(error) from error
        return list(response.warnings), response.optimize_mode


async def _large_fields(config: config_pb2.ExperimentConfig, replaces_space: bool) -> list[bytes]:  # noqa: FBT001 - of one call
    """Return search space and enqueued configurations as bytes of a request, in several turns."""
    await asyncio.sleep(0)  # one large copy at a time
    space = algorithm_service_pb2.ValidateAlgorithmsRequest(search_space=config.search_space)
    fields = [await encoded(space)]
    if replaces_space:
        return fields  # configurations that break the constraints of a later space are skipped
    enqueued = algorithm_service_pb2.ValidateAlgorithmsRequest(enqueued=config.search.enqueue)
    return [*fields, await encoded(enqueued)]
