"""gRPC server that forwards calls about other managers' experiments to their owners.

A handler of an experiment that is owned elsewhere raises `OwnedElsewhereError` before it has any
effect; the call is then made at the owner, and its response returned.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Self

import grpc
import grpc.aio
from google.protobuf.message import Message

from svc_common.access.security import Guard
from svc_common.rpc.call_telemetry import CallMetrics
from svc_common.rpc.server import GrpcServer, Register
from svc_manager.actors.leasing import OwnedElsewhereError
from svc_manager.adapters.grpc_forwarding import Context, Forwarder


class ForwardingGrpcServer(GrpcServer):
    """gRPC server that forwards calls about experiments of other managers to their owners.

    Args:
        forwarder: calls other managers.
        services: see `GrpcServer`.
        guard: see `GrpcServer`.
        setting: see `GrpcServer`.
        metrics: see `GrpcServer`.
        agents_only: see `GrpcServer`.
    """

    def __init__(
        self,
        forwarder: Forwarder,
        services: Sequence[str],
        guard: Guard,
        setting: str,
        metrics: CallMetrics | None = None,
        *,
        agents_only: bool = False,
    ) -> None:
        super().__init__(services, guard, setting, metrics, agents_only=agents_only)
        self._forwarder = forwarder

    def register(self, add: Register) -> None:
        """Register a servicer, with forwarding to owning managers; call it before `start`."""
        super().register(lambda server: add(_Registrar(server, self._forwarder)))  # type: ignore[arg-type] # as far as generated code uses it


class _Registrar:
    """Stand-in for a gRPC server that wraps registered handlers so that calls are forwarded."""

    def __init__(self, server: grpc.aio.Server, forwarder: Forwarder) -> None:
        self._server = server
        self._forwarder = forwarder

    def add_generic_rpc_handlers(self, handlers: Iterable[Any]) -> None:
        """Do nothing: the same handlers are added by name."""

    def add_registered_method_handlers(self, service: str, handlers: dict[str, Any]) -> None:
        """Register a service's handlers, wrapped to forward calls that another manager owns."""
        handlers_by_name = {
            name: self._forwarding_handler(f"/{service}/{name}", handler)
            for name, handler in handlers.items()
        }
        generic = grpc.method_handlers_generic_handler(service, handlers_by_name)
        self._server.add_generic_rpc_handlers((generic,))

    def _forwarding_handler(self, method: str, handler: Any) -> Any:  # noqa: ANN401 - the stubs know only synchronous handlers
        if handler.unary_unary is not None:
            make: Any = grpc.unary_unary_rpc_method_handler
            call: Any = self._unary(method, handler.unary_unary)
        elif handler.unary_stream is not None:
            make = grpc.unary_stream_rpc_method_handler
            call = self._server_stream(method, handler.unary_stream)
        elif handler.stream_unary is not None:
            make = grpc.stream_unary_rpc_method_handler
            call = self._client_stream(method, handler.stream_unary)
        else:
            return handler  # no method of this service streams both ways
        write = handler.response_serializer
        return make(
            call,
            handler.request_deserializer,
            lambda answer: answer if isinstance(answer, bytes) else write(answer),
        )

    def _unary(self, method: str, inner: Any) -> Any:  # noqa: ANN401 - as above
        async def call(request: Any, context: Context) -> Any:  # noqa: ANN401 - any message
            try:
                return await inner(request, context)
            except OwnedElsewhereError as moved:
                return await self._forwarder.unary(method, request, context, moved)

        return call

    def _server_stream(self, method: str, inner: Any) -> Any:  # noqa: ANN401 - as above
        async def call(request: Any, context: Context) -> AsyncIterator[Any]:  # noqa: ANN401 - any message
            began = False
            try:
                async for answer in inner(request, context):
                    began = True
                    yield answer
            except OwnedElsewhereError as moved:
                if began:
                    raise
                elsewhere = moved
            else:
                return
            async for answer in self._forwarder.server_stream(method, request, context, elsewhere):
                yield answer

        return call

    def _client_stream(self, method: str, inner: Any) -> Any:  # noqa: ANN401 - as above
        async def call(requests: AsyncIterator[Message], context: Context) -> Any:  # noqa: ANN401 - any message
            stream = _ReplayableStream(requests)
            try:
                return await inner(stream, context)
            except OwnedElsewhereError as moved:
                if not stream.replayable:
                    raise
                return await self._forwarder.client_stream(method, stream, context, moved)

        return call


class _ReplayableStream:
    """Stream of client messages that keeps the first one, to be read again by a forwarded call.

    The first message names the experiment, so no handler needs more of the stream to find its
    owner; only that message is kept in memory.
    """

    def __init__(self, requests: AsyncIterator[Message]) -> None:
        self._requests = aiter(requests)
        self._read: list[Message] = []
        self.replayable = True
        """True if all read messages can be read again."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        request = await anext(self._requests)
        if self.replayable and not self._read:
            self._read.append(request)
        else:
            self.replayable = False
            self._read.clear()
        return request

    async def replay(self) -> AsyncIterator[Message]:
        """Yield the messages that were already read, then the rest of the client's stream."""
        for request in self._read:
            yield request
        async for request in self._requests:
            yield request
