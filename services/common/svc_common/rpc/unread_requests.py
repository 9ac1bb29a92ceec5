"""Requests that are read after the caller was checked, and limits on their size.

gRPC reads the only message of a call before it runs the handler, so that callers without
credentials could fill the memory. Handlers here take a stream of one message instead, which looks
the same to clients, and read it when the access check has passed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias, cast

import grpc
import grpc.aio

from nni_wire.limits import LARGE_REQUEST_LIMIT_BYTES, MESSAGE_LIMIT_BYTES
from svc_common.errors import InvalidArgumentError, ResourceExhaustedError
from svc_common.rpc.message_parts import FEW_PARTS, PARTS_LIMIT

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

DEFAULT_LIMIT_BYTES: Final = 1024 * 1024
"""Limit of methods without a row in the table: ids, filters and texts."""
_EXPERIMENTS: Final = "/nni_proto.experiment.v1.ExperimentService/"
_STUDIES: Final = "/nni_proto.experiment.v1.StudyService/"
_ALGORITHMS: Final = "/nni_proto.tuning.v1.AlgorithmService/"
_ANALYSES: Final = "/nni_proto.tuning.v1.AnalysisService/"
_LIMITS_BYTES: Final[Mapping[str, int]] = {
    # A search space.
    f"{_EXPERIMENTS}CreateExperiment": LARGE_REQUEST_LIMIT_BYTES,
    f"{_EXPERIMENTS}UpdateExperiment": LARGE_REQUEST_LIMIT_BYTES,
    f"{_ALGORITHMS}ValidateAlgorithms": LARGE_REQUEST_LIMIT_BYTES,
    f"{_ANALYSES}CheckConfigurations": LARGE_REQUEST_LIMIT_BYTES,
    # The results of all trials.
    f"{_ANALYSES}MeasureImportance": LARGE_REQUEST_LIMIT_BYTES,
    f"{_ANALYSES}FindParetoFront": LARGE_REQUEST_LIMIT_BYTES,
    # The environment of the client; samples, which clients send in pieces; parameters or result of
    # a trial; a piece of a blob.
    f"{_EXPERIMENTS}ImportData": MESSAGE_LIMIT_BYTES,
    f"{_EXPERIMENTS}ResumeExperiment": MESSAGE_LIMIT_BYTES,
    "/nni_proto.trial.v1.TrialService/AddTrial": MESSAGE_LIMIT_BYTES,
    f"{_STUDIES}AskTrial": MESSAGE_LIMIT_BYTES,
    f"{_STUDIES}TellTrial": MESSAGE_LIMIT_BYTES,
    "/nni_proto.bytes.v1.ByteService/Upload": MESSAGE_LIMIT_BYTES,
}


def limit_of_method(method: str) -> int:
    """Return the largest message of a method, in bytes."""
    return _LIMITS_BYTES.get(method, DEFAULT_LIMIT_BYTES)


def parts_of_method(method: str) -> int:
    """Return the most parts of a method's messages; few unless values of users are in them."""
    return PARTS_LIMIT if method in _LIMITS_BYTES else FEW_PARTS


def check_size(method: str, payload: bytes) -> None:
    """Raise ResourceExhaustedError if a gRPC message exceeds its method's size limit."""
    limit = limit_of_method(method)
    if len(payload) > limit:
        name = method.rpartition("/")[2]
        raise ResourceExhaustedError(
            f"a message of {name} must have at most {limit:,} bytes, got {len(payload):,}"
        )


def _ignore(_size_bytes: int) -> None:
    """Ignore the size of a message."""


class UnreadRequest:
    """Request message of a unary call that is still to be read, after the caller was checked.

    Args:
        context: of the call, whose request is a stream.
        on_read: called with the size of the message when it was read, in bytes.
    """

    def __init__(self, context: Context, on_read: Callable[[int], None] = _ignore) -> None:
        self._context = context
        self._on_read = on_read

    async def read(self) -> bytes:
        """Wait for the call's only message and return its bytes; raise if there is none.

        Raises:
            InvalidArgumentError: the call has none.
        """
        # Not by the stream's iterator, a generator whose end would take a task of its own.
        payload: Any = await self._context.read()
        if payload is grpc.aio.EOF:
            raise InvalidArgumentError("request", "must be one message, got none")
        self._on_read(len(payload))
        return cast("bytes", payload)


class UnreadRequestInterceptor(grpc.aio.ServerInterceptor):
    """gRPC interceptor that passes unary handlers an `UnreadRequest`, to be read later.

    It comes first of all. The handler inside must have no deserializer: that of
    `svc_common.rpc.access_interceptor` reads the request itself.

    Args:
        on_read: called with the size of each message that was read, in bytes.
    """

    def __init__(self, on_read: Callable[[int], None] = _ignore) -> None:
        self._on_read = on_read
        self._handlers: dict[str, Handler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Wrap a unary handler so that its request is read after the check; leave others.

        The handlers of all interceptors depend on the method only, and are made once: to make them
        again took a tenth of the time of a call.
        """
        method = handler_call_details.method
        made = self._handlers.get(method)
        if made is None:
            made = await continuation(handler_call_details)
            if made is None:
                return None
            if not made.request_streaming and not made.request_deserializer:
                made = _late(made, self._on_read)
            self._handlers[method] = made
        return made


def _late(handler: Handler, on_read: Callable[[int], None]) -> Handler:
    single: Any = handler.unary_unary
    many: Any = handler.unary_stream

    async def answer(_messages: AsyncIterator[bytes], context: Context) -> Any:  # noqa: ANN401 - any message
        return await single(UnreadRequest(context, on_read), context)

    async def answers(_messages: AsyncIterator[bytes], context: Context) -> AsyncIterator[Any]:
        async for item in many(UnreadRequest(context, on_read), context):
            yield item

    made: Handler
    if single is not None:
        made = grpc.stream_unary_rpc_method_handler(
            answer,
            None,
            handler.response_serializer,
        )
    else:
        made = grpc.stream_stream_rpc_method_handler(
            answers,
            None,
            handler.response_serializer,
        )
    return made
