"""`JobChecker` over the gRPC services of compressor and NAS service."""

from typing import Final

import grpc.aio

from nni_proto.compression.v1 import compression_service_pb2, compression_service_pb2_grpc
from nni_proto.experiment.v1 import config_pb2
from nni_proto.nas.v1 import nas_service_pb2, nas_service_pb2_grpc
from svc_common.errors import FailedPreconditionError
from svc_common.rpc.client import service_error, token_metadata
from svc_manager.ports import JobChecker

_DEADLINE_S: Final = 60.0
"""Time for the start of a service that was not needed before."""


class GrpcJobChecker:
    """gRPC client that makes the compressor validate a job before its experiment is created.

    Args:
        channel: to the compressor; the caller closes it.
        token: of the installation; None: the compressor needs none.
    """

    def __init__(self, channel: grpc.aio.Channel, token: str | None) -> None:
        self._stub = compression_service_pb2_grpc.CompressionServiceStub(channel)
        self._credentials = token_metadata(token)

    async def check(self, config: config_pb2.ExperimentConfig) -> None:
        """Make the compressor validate a job; raise its refusal as a service error."""
        request = compression_service_pb2.ValidateJobRequest(job=config.compression.job)
        try:
            await self._stub.ValidateJob(
                request, timeout=_DEADLINE_S, metadata=self._credentials, wait_for_ready=True
            )
        except grpc.aio.AioRpcError as error:
            raise service_error(error) from error


class GrpcExplorationChecker:
    """gRPC client that makes the NAS service validate an exploration before it is created.

    Args:
        channel: to the NAS service; the caller closes it.
        token: of the installation; None: the service needs none.
    """

    def __init__(self, channel: grpc.aio.Channel, token: str | None) -> None:
        self._stub = nas_service_pb2_grpc.NasServiceStub(channel)
        self._credentials = token_metadata(token)

    async def check(self, config: config_pb2.ExperimentConfig) -> None:
        """Request validation of an exploration, not of its document; raise if it is refused."""
        request = nas_service_pb2.ValidateExplorationRequest(exploration=config.nas)
        try:
            await self._stub.ValidateExploration(
                request, timeout=_DEADLINE_S, metadata=self._credentials, wait_for_ready=True
            )
        except grpc.aio.AioRpcError as error:
            raise service_error(error) from error


class JobCheckers:
    """`JobChecker` that sends explorations to the NAS service, all others to the compressor.

    Args:
        jobs: checks compression jobs.
        explorations: checks explorations.
    """

    def __init__(self, jobs: JobChecker, explorations: JobChecker) -> None:
        self._jobs = jobs
        self._explorations = explorations

    async def check(self, config: config_pb2.ExperimentConfig) -> None:
        """Check a job with the service that will run it; raise its refusal."""
        checker = self._explorations if config.HasField("nas") else self._jobs
        await checker.check(config)


class NoService:
    """Checker that refuses all jobs, in an installation without their service.

    Args:
        name: of the service.
        variable: that names the address of the service.
    """

    def __init__(self, name: str, variable: str) -> None:
        self._name = name
        self._variable = variable

    async def check(self, config: config_pb2.ExperimentConfig) -> None:
        """Raise FailedPreconditionError, since the installation lacks the service of the job.

        Raises:
            FailedPreconditionError: always.
        """
        del config
        raise FailedPreconditionError(
            f"this installation has no {self._name}; start one, and give the manager its address "
            f"in {self._variable}"
        )
