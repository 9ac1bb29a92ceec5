"""A gRPC server that passes calls about experiments of another manager on to that one.

A handler that asks for an experiment that is not here raises `OwnedElsewhereError` before it has
done anything; then the call is made at its owner, and the answer passed back.
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
    """A server whose calls are passed on where need be; see `GrpcServer`.

    Args:
        forwarder: calls other managers.
        services: as of any server.
        guard: as of any server.
        setting: as of any server.
        metrics: as of any server.
    """

    def __init__(
        self,
        forwarder: Forwarder,
        services: Sequence[str],
        guard: Guard,
        setting: str,
        metrics: CallMetrics | None = None,
    ) -> None:
        super().__init__(services, guard, setting, metrics)
        self._forwarder = forwarder

    def register(self, add: Register) -> None:
        """See `GrpcServer.register`."""
        super().register(lambda server: add(_Registrar(server, self._forwarder)))  # type: ignore[arg-type] # as far as generated code uses it


class _Registrar:
    """The part of a server that generated code adds servicers to."""

    def __init__(self, server: grpc.aio.Server, forwarder: Forwarder) -> None:
        self._server = server
        self._forwarder = forwarder

    def add_generic_rpc_handlers(self, handlers: Iterable[Any]) -> None:
        """Do nothing: the same handlers come once more, by name."""

    def add_registered_method_handlers(self, service: str, handlers: dict[str, Any]) -> None:
        """Add the handlers of a service."""
        passing = {
            name: self._passing_on(f"/{service}/{name}", handler)
            for name, handler in handlers.items()
        }
        generic = grpc.method_handlers_generic_handler(service, passing)
        self._server.add_generic_rpc_handlers((generic,))

    def _passing_on(self, method: str, handler: Any) -> Any:  # noqa: ANN401 - the stubs know only synchronous handlers
        if handler.unary_unary is not None:
            make: Any = grpc.unary_unary_rpc_method_handler
            call: Any = self._one(method, handler.unary_unary)
        elif handler.unary_stream is not None:
            make = grpc.unary_stream_rpc_method_handler
            call = self._many(method, handler.unary_stream)
        elif handler.stream_unary is not None:
            make = grpc.stream_unary_rpc_method_handler
            call = self._taken(method, handler.stream_unary)
        else:
            return handler  # nothing here is called like this
        write = handler.response_serializer
        return make(
            call,
            handler.request_deserializer,
            lambda answer: answer if isinstance(answer, bytes) else write(answer),
        )

    def _one(self, method: str, inner: Any) -> Any:  # noqa: ANN401 - as above
        async def call(request: Any, context: Context) -> Any:  # noqa: ANN401 - any message
            try:
                return await inner(request, context)
            except OwnedElsewhereError as moved:
                return await self._forwarder.one(method, request, context, moved)

        return call

    def _many(self, method: str, inner: Any) -> Any:  # noqa: ANN401 - as above
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
            async for answer in self._forwarder.many(method, request, context, elsewhere):
                yield answer

        return call

    def _taken(self, method: str, inner: Any) -> Any:  # noqa: ANN401 - as above
        async def call(requests: AsyncIterator[Message], context: Context) -> Any:  # noqa: ANN401 - any message
            begun = _Begun(requests)
            try:
                return await inner(begun, context)
            except OwnedElsewhereError as moved:
                if not begun.whole:
                    raise
                return await self._forwarder.taken(method, begun, context, moved)

        return call


class _Begun:
    """What a client streams, of which the first message can be read a second time.

    That one tells which experiment the call is about, so no handler needs more of it to find out
    who has the experiment; and no more of it is kept in memory.
    """

    def __init__(self, requests: AsyncIterator[Message]) -> None:
        self._requests = aiter(requests)
        self._read: list[Message] = []
        self.whole = True
        """Whether all that was read can be read again."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        request = await anext(self._requests)
        if self.whole and not self._read:
            self._read.append(request)
        else:
            self.whole = False
            self._read.clear()
        return request

    async def again(self) -> AsyncIterator[Message]:
        """Give everything from the first message on."""
        for request in self._read:
            yield request
        async for request in self._requests:
            yield request
