"""Server interceptor of gRPC for access control: credentials, role, and audit record of each call.

Credentials are checked before the request is decoded, so that unknown clients cause no work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import grpc
import grpc.aio
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2

from nni_wire.metadata import AUTHORIZATION_KEY
from svc_common.access.audit import AuditRecord
from svc_common.access.authentication import Authenticator, address_of_peer
from svc_common.access.current_call import CurrentCall, serving, start_serving
from svc_common.access.delegation import ON_BEHALF_KEY, effective_caller
from svc_common.access.front_addresses import came_through_front
from svc_common.access.permissions import rule_of_method
from svc_common.access.roles import Caller, Role, Rule
from svc_common.errors import InvalidArgumentError, PermissionDeniedError, ServiceError
from svc_common.large_work import off_loop
from svc_common.rpc.message_parts import FEW_PARTS, MANY_PARTS, DecodingTurns, check_parts
from svc_common.rpc.unread_requests import UnreadRequest, check_size, parts_of_method

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

_HEALTH: Final = "/grpc.health.v1.Health/"
_HEALTH_CHECK: Final = f"{_HEALTH}Check"
_OK: Final = "OK"
_BEARER: Final = "bearer "
_COMMON_NAME: Final = "x509_common_name"


class AccessInterceptor(grpc.aio.ServerInterceptor):
    """gRPC server interceptor that authenticates, authorizes and audits each call.

    It follows the interceptor that maps errors to statuses.

    Args:
        authenticator: identifies callers, and has the audit trail.
        agents_only: True if all calls come through the TLS front, so that agents only are served.
    """

    def __init__(self, authenticator: Authenticator, *, agents_only: bool = False) -> None:
        self._authenticator = authenticator
        self._agents_only = agents_only
        self._turns = DecodingTurns()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return a method's handler with access checks; health `Check` stays open, no `Watch`."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None:
            return handler  # an unknown method needs no protection
        if method == _HEALTH_CHECK:
            return _open_check(handler)
        if method.startswith(_HEALTH):
            return None  # Watch is a stream for callers without credentials that never ends
        return _CheckedCall(
            self._authenticator,
            method,
            handler,
            self._turns,
            agents_only=self._agents_only,
        ).handler()


def _open_check(handler: Handler) -> Handler:
    """Return a handler of health checks that needs no credentials and reads no request.

    A request without credentials could be of any size. The services of a process have one status.
    """
    inner: Any = handler

    async def check(_request: object, context: Context) -> Any:  # noqa: ANN401 - any message
        return await inner.unary_unary(health_pb2.HealthCheckRequest(), context)

    made: Handler = grpc.unary_unary_rpc_method_handler(check, None, inner.response_serializer)
    return made


@dataclass(frozen=True, slots=True)
class _Admitted:
    """Call that passed the checks of access and size: its caller, and the undecoded request."""

    caller: Caller
    address: str
    """IP address of the client; after the call, gRPC's context would crash the process."""
    payload: Any
    """Request that is not decoded yet, or the stream of requests."""
    count: int
    """Number of its parts; 0 for a stream."""


Metadata: TypeAlias = Iterable[tuple[str, str | bytes]]


def bearer_token(metadata: Metadata | None) -> str:
    """Return the bearer token of a call; empty: none."""
    text = metadata_value(metadata, AUTHORIZATION_KEY)
    return text[len(_BEARER) :].strip() if text[: len(_BEARER)].lower() == _BEARER else ""


def metadata_value(metadata: Metadata | None, wanted: str) -> str:
    """Return the first value of a key in a gRPC call's metadata as text; empty: none."""
    for key, value in metadata or ():
        if key == wanted:
            return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return ""


class _CheckedCall:
    """gRPC handler that checks caller and role, calls the inner handler, and audits by its rule.

    It serves all calls of a method, so that nothing of a call may be an attribute.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        method: str,
        inner: Handler,
        turns: DecodingTurns,
        *,
        agents_only: bool,
    ) -> None:
        self._authenticator = authenticator
        self._turns = turns
        self._agents_only = agents_only
        self._method = method
        self._inner: Any = inner
        self._rule: Rule = rule_of_method(method)

    def handler(self) -> Handler:
        """Build a gRPC handler of the inner one's kind (unary or stream) with the checks added."""
        inner = self._inner
        make: Any
        call: Any
        if inner.unary_unary is not None:
            make, call = grpc.unary_unary_rpc_method_handler, self._one
        elif inner.unary_stream is not None:
            make, call = grpc.unary_stream_rpc_method_handler, self._many
        elif inner.stream_unary is not None:
            make, call = grpc.stream_unary_rpc_method_handler, self._one
        else:
            make, call = grpc.stream_stream_rpc_method_handler, self._many
        # A stream's messages are decoded as they come, after the caller was checked.
        read = self._limited_read if inner.request_streaming else None
        made: Handler = make(call, read, inner.response_serializer)
        return made

    def _limited_read(self, payload: bytes) -> Any:  # noqa: ANN401 - any message
        """Decode a message of a request stream; raise if it is too large or has too many parts."""
        check_size(self._method, payload)
        read = self._inner.request_deserializer
        # This is a callback of the event loop: no message of a stream has many parts.
        check_parts(self._method, FEW_PARTS, read, payload)
        return payload if read is None else read(payload)

    async def _one(self, request: Any, context: Context) -> Any:  # noqa: ANN401 - any message
        admitted = await self._admit(request, context)
        serve = self._inner.unary_unary or self._inner.stream_unary
        async with self._turns.turn(admitted.count):
            message = self._decode(admitted)
            if admitted.count > MANY_PARTS:
                await asyncio.sleep(0)  # other tasks come between decoding and the handler
            with serving(admitted.caller) as call:
                try:
                    answer = await serve(message, context)
                except BaseException as error:
                    self._audit(call, admitted.address, _outcome(error), message, None)
                    raise
                self._audit(call, admitted.address, _OK, message, answer)
                return answer

    async def _many(self, request: Any, context: Context) -> AsyncIterator[Any]:  # noqa: ANN401 - any message
        # No method with a stream of answers has messages of many parts.
        admitted = await self._admit(request, context)
        message = self._decode(admitted)
        serve = self._inner.unary_stream or self._inner.stream_stream
        # The generator may be closed by another task, in whose context nothing can be reset, and
        # after the end of the call: gRPC's context must not be used then.
        call = start_serving(admitted.caller)
        try:
            async for answer in serve(message, context):
                yield answer
        except BaseException as error:
            self._audit(call, admitted.address, _outcome(error), message, None)
            raise
        self._audit(call, admitted.address, _OK, message, None)

    async def _admit(self, request: Any, context: Context) -> _Admitted:  # noqa: ANN401 - any message
        """Identify the caller, check role and size; return the call, or audit a refusal and raise.

        Raises:
            ServiceError: the caller has no permission, or the request is too large.
        """
        address = address_of_peer(context.peer())
        metadata: Metadata | None = context.invocation_metadata()
        token = bearer_token(metadata)
        name = "" if token else certificate_name(context)
        caller = self._authenticator.identify(address, token, name, self._method)
        caller = effective_caller(caller, metadata_value(metadata, ON_BEHALF_KEY))
        payload, count = request, 0
        try:
            _check_way(caller, through_front=self._agents_only or came_through_front(address))
            caller.check(self._rule, self._method.rpartition("/")[2])
            if not self._inner.request_streaming:
                payload = await request.read() if isinstance(request, UnreadRequest) else request
                check_size(self._method, payload)
                count = await self._count(payload)
        except ServiceError as error:
            self._audit(CurrentCall(caller), address, _outcome(error), None, None)
            raise
        return _Admitted(caller, address, payload, count)

    async def _count(self, payload: bytes) -> int:
        """Return the number of parts of a message, counted in a thread; raise if too many."""
        limit, read = parts_of_method(self._method), self._inner.request_deserializer
        return await off_loop(len(payload), check_parts, self._method, limit, read, payload)

    def _decode(self, admitted: _Admitted) -> Any:  # noqa: ANN401 - any message
        """Decode the message of a unary request; raise if it is malformed; return streams as such.

        Raises:
            InvalidArgumentError: the request is malformed.
        """
        if self._inner.request_streaming:
            return admitted.payload
        try:
            return _decoded(self._inner.request_deserializer, admitted.payload)
        except ServiceError as error:
            call = CurrentCall(admitted.caller)
            self._audit(call, admitted.address, _outcome(error), None, None)
            raise

    def _audit(
        self, call: CurrentCall, address: str, outcome: str, request: object, answer: object
    ) -> None:
        caller = call.caller
        if not self._rule.audited and outcome != "PermissionDeniedError":
            return
        self._authenticator.trail.record(
            AuditRecord(
                caller=caller.name,
                role=caller.role.word,
                by=caller.by,
                peer=address,
                what=self._method,
                outcome=outcome,
                experiment=_text(request, "experiment_id") or _named(request) or _created(answer),
                trial=_text(request, "trial_id"),
                request=_text(request, "request_id"),
                folder=", ".join(call.folders),
                blob=call.blob,
            )
        )


def _check_way(caller: Caller, *, through_front: bool) -> None:
    """Raise if a caller that is no agent calls through the TLS front.

    Raises:
        PermissionDeniedError: it does.
    """
    if caller.role is not Role.AGENT and through_front:
        raise PermissionDeniedError(
            "only agents may call through the TLS front; call from the machine of the services",
            {"role": caller.role.word},
        )


def _decoded(read: Any, payload: Any) -> Any:  # noqa: ANN401 - a function of generated code
    """Decode a request with the inner handler's function; raise InvalidArgumentError if it fails.

    Raises:
        InvalidArgumentError: the request is malformed.
    """
    if read is None:
        return payload
    try:
        return read(payload)
    except Exception as error:
        # protobuf does not document which errors it raises.
        raise InvalidArgumentError(
            "request", "must be a message of this method", remedy=str(error)
        ) from error


def _outcome(error: BaseException) -> str:
    return type(error).__name__


def _text(message: object, field: str) -> str:
    """Return a message's field as text for the audit record; empty: it has no such field."""
    if not isinstance(message, Message) or field not in message.DESCRIPTOR.fields_by_name:
        return ""
    return str(getattr(message, field))


def _named(request: object) -> str:
    """Return the experiment id in the `header` of a streamed request; empty: it has none."""
    if not isinstance(request, Message) or "header" not in request.DESCRIPTOR.fields_by_name:
        return ""
    return _text(request.header, "experiment_id")  # type: ignore[attr-defined] # looked up above


def _created(answer: object) -> str:
    """Return the id of the `experiment` in a response; empty: it has none."""
    if not isinstance(answer, Message) or "experiment" not in answer.DESCRIPTOR.fields_by_name:
        return ""
    return _text(answer.experiment, "id")  # type: ignore[attr-defined] # looked up one line above


def certificate_name(context: Context) -> str:
    """Return the common name of the client certificate; empty: none."""
    names: Any = context.auth_context().get(_COMMON_NAME, ())
    return next((name.decode("utf-8", "replace") for name in names), "")
