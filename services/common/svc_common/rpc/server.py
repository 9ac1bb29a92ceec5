"""gRPC server of services: error mapping, access control, health, reflection and limits.

Errors travel as a status plus the trailing metadata `nni_wire.metadata.ERROR_DETAILS_KEY`: a JSON
object with `type` (the class of `svc_common.errors`) and the error's facts;
`svc_common.rpc.client` restores the error.
"""

from __future__ import annotations

import json
import resource
import string
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias
from urllib.parse import quote

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from nni_wire.limits import grpc_channel_options
from nni_wire.metadata import ERROR_DETAILS_KEY
from svc_common import errors
from svc_common.access.security import Guard
from svc_common.logs import get_logger
from svc_common.rpc.access_interceptor import AccessInterceptor
from svc_common.rpc.call_telemetry import CallMetrics, CallTelemetryInterceptor
from svc_common.rpc.requests import (
    RequestMessages,
    capture_malformed,
    checked_requests,
    read_to_end,
)
from svc_common.rpc.unread_requests import UnreadRequestInterceptor

_MESSAGE_LIMIT_BYTES: Final = 3 * 1024
"""Clients refuse trailing metadata above 8 kB in all."""
_DETAILS_LIMIT_BYTES: Final = 4 * 1024
"""gRPC refuses metadata above 8 kB in all; facts that do not fit are omitted."""

STATUS_BY_ERROR: Final[dict[type[errors.ServiceError], grpc.StatusCode]] = {
    errors.InvalidArgumentError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.UnauthenticatedError: grpc.StatusCode.UNAUTHENTICATED,
    errors.PermissionDeniedError: grpc.StatusCode.PERMISSION_DENIED,
    errors.NotFoundError: grpc.StatusCode.NOT_FOUND,
    errors.AlreadyExistsError: grpc.StatusCode.ALREADY_EXISTS,
    errors.FailedPreconditionError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.AbortedError: grpc.StatusCode.ABORTED,
    errors.LostOwnershipError: grpc.StatusCode.ABORTED,
    errors.ResourceExhaustedError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.OutOfRoomError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.UnavailableError: grpc.StatusCode.UNAVAILABLE,
    errors.DataLossError: grpc.StatusCode.DATA_LOSS,
}

_SERVER_OPTIONS: Final = (
    # Connections without a finished handshake may be of callers without credentials.
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_concurrent_streams", 1_000),
    ("grpc.max_metadata_size", 16 * 1024),
    ("grpc.absolute_max_metadata_size", 32 * 1024),
    # Bit 0: no compression. A small compressed message could be large in memory.
    ("grpc.compression_enabled_algorithms_bitset", 1),
)
"""Limits of one connection."""

_CONNECTION_SHARE: Final = 4
"""One of so many descriptors of a process may be a gRPC connection; files, the bus, children and
HTTP need the others."""
_MOST_CONNECTIONS: Final = 4_000


@dataclass(frozen=True, slots=True)
class GrpcConnectionLimits:
    """Number of connections that a gRPC server accepts at a time, and how long one may be idle.

    Examples:
        >>> GrpcConnectionLimits.of_descriptors(1024).connections
        256
    """

    connections: int
    idle_ms: int = 10_000
    """A connection without a call is closed then; a client opens another one by itself."""

    @classmethod
    def of_descriptors(cls, descriptors: int) -> Self:
        """Return limits with a quarter of the descriptors as connections, from 1 to 4,000."""
        if descriptors == resource.RLIM_INFINITY:
            return cls(_MOST_CONNECTIONS)
        return cls(min(_MOST_CONNECTIONS, max(1, descriptors // _CONNECTION_SHARE)))

    @classmethod
    def of_process(cls) -> Self:
        """Return the limits that follow from this process's soft limit of open descriptors."""
        return cls.of_descriptors(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Register: TypeAlias = Callable[[grpc.aio.Server], None]
"""Adds one servicer to a server, e.g. `lambda s: add_XServicer_to_server(x, s)`."""


class GrpcServer:
    """gRPC server of a service, with access, errors, telemetry, health and reflection.

    Args:
        services: full names of its services, for health and reflection.
        guard: authenticator and transport; a token stands for a guard that accepts only it;
            None: no access control (tests).
        setting: name of the variable that holds the address, for messages.
        metrics: counts the calls; None: they are not counted.
        unread: reads requests after the access check; None: one that reports nothing.
        limits: limits of its connections; None: those of this process.
    """

    def __init__(
        self,
        services: Sequence[str],
        guard: Guard | str | None,
        setting: str = "the address of gRPC",
        metrics: CallMetrics | None = None,
        unread: UnreadRequestInterceptor | None = None,
        limits: GrpcConnectionLimits | None = None,
        *,
        agents_only: bool = False,
    ) -> None:
        limits = limits or GrpcConnectionLimits.of_process()
        self._guard = Guard.of_token(guard) if isinstance(guard, str) else guard
        self._setting = setting
        interceptors: list[grpc.aio.ServerInterceptor] = [
            CallTelemetryInterceptor(metrics),
            ErrorInterceptor(),
        ]
        if self._guard is not None:
            interceptors.insert(0, unread or UnreadRequestInterceptor())
            interceptors.append(
                AccessInterceptor(self._guard.authenticator, agents_only=agents_only)
            )
        options = dict([*grpc_channel_options(), *_SERVER_OPTIONS])
        options["grpc.max_allowed_incoming_connections"] = limits.connections
        options["grpc.max_connection_idle_ms"] = limits.idle_ms
        if self._guard is not None and self._guard.transport.ports_held:
            options["grpc.so_reuseport"] = 1
        self._server = grpc.aio.server(interceptors=interceptors, options=list(options.items()))
        self._names = tuple(services)
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection(
            (*services, health.SERVICE_NAME, reflection.SERVICE_NAME), self._server
        )

    def register(self, add: Register) -> None:
        """Add a servicer; call it before `start`."""
        add(self._server)

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Bind host and port with TLS as configured, and start serving; return the port.

        Raises:
            FailedPreconditionError: the port is taken or not allowed, or other machines could
                read the plain text.
        """
        credentials = None
        if self._guard is not None:
            self._guard.check_listener(self._setting, host)
            credentials = self._guard.transport.grpc_server_credentials()
        try:
            if credentials is None:
                bound = self._server.add_insecure_port(f"{host}:{port}")
            else:
                bound = self._server.add_secure_port(f"{host}:{port}", credentials)
        except RuntimeError as error:
            raise errors.FailedPreconditionError(
                f"cannot listen on {host}:{port}: is the port taken?"
            ) from error
        await self._server.start()
        for name in ("", *self._names):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        return bound

    async def set_not_serving(self) -> None:
        """Set the health status NOT_SERVING."""
        await self._health.enter_graceful_shutdown()

    async def stop(self, grace_s: float) -> None:
        """Set NOT_SERVING, refuse new calls, and let running ones finish within `grace_s`."""
        await self.set_not_serving()
        await self._server.stop(grace_s)


class ErrorInterceptor(grpc.aio.ServerInterceptor):
    """gRPC server interceptor that turns handlers' errors into statuses, others into INTERNAL."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Wrap a method's handler so that its errors become statuses; health sets its own."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or method.startswith("/grpc.health."):
            return handler
        if handler.unary_unary is not None or handler.stream_unary is not None:
            return _single_response(handler, method)
        return _response_stream(handler, method)


def _shortened(message: str) -> str:
    """Return a message with its middle cut out until it fits into the trailing metadata."""
    kept = len(message)
    while _written_length(message) > _MESSAGE_LIMIT_BYTES:
        kept = kept // 2
        message = f"{message[: kept // 2]} [...] {message[-(kept // 2) :]}"
    return message


def _written_length(message: str) -> int:
    """Return the length of a message in metadata, where non-ASCII bytes become `%XX`."""
    return len(message) if message.isascii() else len(quote(message, safe=string.printable))


def error_metadata(error: errors.ServiceError) -> tuple[tuple[str, bytes], ...]:
    """Return metadata with a `ServiceError`'s class name and, unless too large, facts as JSON."""
    kind = type(error).__name__
    details = json.dumps({"type": kind, **error.facts}).encode()
    if len(details) > _DETAILS_LIMIT_BYTES:
        details = json.dumps({"type": kind}).encode()
    return ((ERROR_DETAILS_KEY, details),)


def _single_response(handler: Handler, method: str) -> Handler:
    inner: Any = handler.unary_unary or handler.stream_unary

    async def call(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:  # noqa: ANN401 - any message
        messages = RequestMessages(request) if handler.request_streaming else None
        try:
            return await inner(messages or checked_requests(request), context)
        except Exception as error:  # noqa: BLE001 - boundary of the process
            # A caller that was refused before may send messages of any size.
            if messages and messages.begun and not isinstance(error, grpc.aio.AbortError):
                await read_to_end(request)
            await _abort(context, method, error)

    make: Any = (
        grpc.unary_unary_rpc_method_handler
        if handler.unary_unary is not None
        else grpc.stream_unary_rpc_method_handler
    )
    return _handler_like(make, call, handler)


def _response_stream(handler: Handler, method: str) -> Handler:
    inner: Any = handler.unary_stream or handler.stream_stream

    async def call(
        request: Any,  # noqa: ANN401 - any message
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> AsyncIterator[Any]:
        try:
            async for response in inner(checked_requests(request), context):
                yield response
        except Exception as error:  # noqa: BLE001 - boundary of the process
            await _abort(context, method, error)

    make: Any = (
        grpc.unary_stream_rpc_method_handler
        if handler.unary_stream is not None
        else grpc.stream_stream_rpc_method_handler
    )
    return _handler_like(make, call, handler)


def _handler_like(factory: Any, call: Any, of: Handler | None) -> Handler:  # noqa: ANN401 - the stubs know only synchronous handlers
    if of is None:
        made: Handler = factory(call)
    else:
        made = factory(call, capture_malformed(of.request_deserializer), of.response_serializer)
    return made


async def _abort(
    context: grpc.aio.ServicerContext[Any, Any], method: str, error: Exception
) -> None:
    if isinstance(error, grpc.aio.AbortError | grpc.RpcError):
        raise error
    if isinstance(error, errors.ServiceError):
        # By instance: an error of one service has the status of its base class.
        codes = (code for kind, code in STATUS_BY_ERROR.items() if isinstance(error, kind))
        code = next(codes, grpc.StatusCode.UNKNOWN)
        await context.abort(code, _shortened(error.message), error_metadata(error))
    get_logger().error("call failed", method=method, exc_info=error)
    await context.abort(grpc.StatusCode.INTERNAL, f"{type(error).__name__}: see the service's log")
