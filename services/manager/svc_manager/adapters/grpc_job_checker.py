"""`JobChecker` over the compressor's gRPC service."""

from typing import Final

import grpc.aio

from nni_proto.common.v1 import value_pb2
from nni_proto.compression.v1 import compression_service_pb2, compression_service_pb2_grpc
from svc_common import environment
from svc_common.errors import FailedPreconditionError
from svc_common.rpc.client import service_error, token_metadata

_DEADLINE_S: Final = 60.0
"""Time for the start of a compressor that was not needed before."""


class GrpcJobChecker:
    """gRPC client that makes the compressor validate a job before its experiment is created.

    Args:
        channel: to the compressor; the caller closes it.
        token: of the installation; None: the compressor needs none.
    """

    def __init__(self, channel: grpc.aio.Channel, token: str | None) -> None:
        self._stub = compression_service_pb2_grpc.CompressionServiceStub(channel)
        self._credentials = token_metadata(token)

    async def check(self, job: value_pb2.Value) -> None:
        """Make the compressor validate the description of a job."""
        request = compression_service_pb2.ValidateJobRequest(job=job)
        try:
            await self._stub.ValidateJob(
                request, timeout=_DEADLINE_S, metadata=self._credentials, wait_for_ready=True
            )
        except grpc.aio.AioRpcError as error:
            raise service_error(error) from error


class NoCompressor:
    """Refuses all jobs, in an installation without a compressor."""

    async def check(self, job: value_pb2.Value) -> None:
        """Refuse a job.

        Raises:
            FailedPreconditionError: always.
        """
        del job
        raise FailedPreconditionError(
            "this installation has no compressor; start one, and give the manager its address in "
            f"{environment.NNI_COMPRESSOR_GRPC}"
        )
