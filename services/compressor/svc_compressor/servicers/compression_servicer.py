"""gRPC servicer of `nni_proto.compression.v1.CompressionService`."""

from typing import Any, Final, TypeAlias

import grpc.aio

from nni.compression.job.description import JobDescription
from nni.compression.job.field_checks import JobError
from nni.compression.job.steps import StepKind as StepName
from nni.compression.job.steps import all_steps
from nni_proto.common.v1 import value_pb2
from nni_proto.compression.v1 import compression_service_pb2 as pb
from nni_proto.compression.v1 import compression_service_pb2_grpc as pb_grpc
from nni_wire.values import from_value
from svc_common.errors import InvalidArgumentError

_Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
_KINDS: Final[dict[StepName, pb.StepKind.ValueType]] = {
    "prune": pb.STEP_KIND_PRUNE,
    "speedup": pb.STEP_KIND_SPEEDUP,
    "fine_tune": pb.STEP_KIND_FINE_TUNE,
    "quantize": pb.STEP_KIND_QUANTIZE,
    "export": pb.STEP_KIND_EXPORT,
}


class CompressionServicer(pb_grpc.CompressionServiceServicer):
    """gRPC servicer that validates a compression job's description and answers with its steps."""

    async def ValidateJob(
        self, request: pb.ValidateJobRequest, context: _Context
    ) -> pb.ValidateJobResponse:
        """Check a job's description; return its numbered steps, or raise InvalidArgumentError."""
        del context
        try:
            job = JobDescription.of(_decoded(request.job))
        except JobError as error:
            field = "job" if error.field == "job" else f"job.{error.field}"
            raise InvalidArgumentError(field, error.problem) from error
        steps = [pb.JobStep(number=step.number, kind=_KINDS[step.kind]) for step in all_steps(job)]
        return pb.ValidateJobResponse(steps=steps)


def _decoded(value: value_pb2.Value) -> object:
    """Decode a proto `Value` to plain Python; InvalidArgumentError for a blob or a bad number.

    Raises:
        InvalidArgumentError: it refers to the byte store, or a number in it is none.
    """
    try:
        return from_value(value)
    except (LookupError, ValueError) as error:
        raise InvalidArgumentError(
            "job", "must be a JSON value in the request itself", remedy=str(error)
        ) from error
