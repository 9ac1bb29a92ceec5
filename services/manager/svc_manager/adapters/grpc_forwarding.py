"""Calls about experiments of another manager, passed on to that one.

A handler that asks for an experiment that is not here raises `OwnedElsewhereError` before it has
done anything; then the call is made at its owner, as it came, and the answer is passed back as it
came. A call that was passed on once is not passed on again: while an experiment changes hands the
client is told to try again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

import grpc
import grpc.aio
from google.protobuf.message import Message

from nni_wire.metadata import ERROR_DETAILS_KEY
from svc_common.access.guard import Guard
from svc_common.errors import UnavailableError
from svc_common.grpc_server import GrpcServer, Register
from svc_common.observed_calls import CallMetrics
from svc_manager.owned.ownership import OwnedElsewhereError

FORWARDED_KEY: Final = "nni-forwarded"
"""Metadata of a call, and header of a request, that another manager passes on."""
_OF_THE_CONNECTION: Final = ("grpc-", "user-agent", "te", "content-type", ":")
"""Starts of keys that speak of one connection and are not passed on."""

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]


UntilMoved: TypeAlias = Callable[[OwnedElsewhereError], Awaitable[None]]
"""Waits until a manager no longer has an experiment."""


class Channels:
    """A channel to each manager that was called, until they are closed.

    Args:
        open_channel: opens a channel to `host:port`.
    """

    def __init__(self, open_channel: Callable[[str], grpc.aio.Channel]) -> None:
        self._open_channel = open_channel
        self._channels: dict[str, grpc.aio.Channel] = {}

    def to(self, address: str) -> grpc.aio.Channel:
        """Give a channel to another manager."""
        channel = self._channels.get(address)
        if channel is None:
            channel = self._channels[address] = self._open_channel(address)
        return channel

    async def aclose(self) -> None:
        """Close all channels."""
        channels, self._channels = self._channels, {}
        await asyncio.gather(*(channel.close(None) for channel in channels.values()))


class Forwarder:
    """Makes calls at other managers.

    Args:
        channels: to them.
        boot_id: of this manager.
        until_moved: a call to a manager that has lost the experiment meanwhile is given up: that
            one may be frozen and never answer.
    """

    def __init__(self, channels: Channels, boot_id: str, until_moved: UntilMoved) -> None:
        self._channels = channels
        self._boot_id = boot_id
        self._until_moved = until_moved

    async def one(
        self,
        method: str,
        request: Message,
        context: Context,
        moved: OwnedElsewhereError,
    ) -> bytes:
        """Make a call with one answer at the owner; give the answer as it came."""
        call: Any = self._channel_for(context, moved).unary_unary(method)
        answering = call(
            request.SerializeToString(),
            timeout=_time_left(context),
            metadata=self._metadata(context),
        )
        try:
            answer: bytes = await self._unless_moved(answering, moved)
        except grpc.aio.AioRpcError as error:
            await _pass_on(context, moved, error)
            raise
        finally:
            answering.cancel()
        return answer

    async def many(
        self,
        method: str,
        request: Message,
        context: Context,
        moved: OwnedElsewhereError,
    ) -> AsyncIterator[bytes]:
        """Make a call with many answers at the owner; give them as they come."""
        call: Any = self._channel_for(context, moved).unary_stream(method)
        stream = call(
            request.SerializeToString(),
            timeout=_time_left(context),
            metadata=self._metadata(context),
        )
        answers = aiter(stream)
        try:
            while (answer := await self._unless_moved(anext(answers, None), moved)) is not None:
                yield answer
        except grpc.aio.AioRpcError as error:
            await _pass_on(context, moved, error)
        finally:
            stream.cancel()

    async def _unless_moved(self, answering: Awaitable[Any], moved: OwnedElsewhereError) -> Any:  # noqa: ANN401 - any answer
        """Wait for an answer.

        Raises:
            OwnedElsewhereError: the experiment has another owner by now.
        """
        answer = asyncio.ensure_future(_result(answering))
        moving = asyncio.ensure_future(_result(self._until_moved(moved)))
        try:
            await asyncio.wait({answer, moving}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise moved
            return answer.result()
        finally:
            answer.cancel()
            moving.cancel()

    def _channel_for(self, context: Context, moved: OwnedElsewhereError) -> grpc.aio.Channel:
        """Give the channel to an owner.

        Raises:
            OwnedElsewhereError: it cannot be asked, or the call was passed on before.
        """
        address = moved.manager.grpc_address
        passed_on = any(key == FORWARDED_KEY for key, _ in context.invocation_metadata() or ())
        if passed_on or not address:
            raise moved
        return self._channels.to(address)

    def _metadata(self, context: Context) -> list[tuple[str, Any]]:
        given: Iterable[tuple[str, Any]] = context.invocation_metadata() or ()
        kept = [(key, value) for key, value in given if not key.startswith(_OF_THE_CONNECTION)]
        return [*kept, (FORWARDED_KEY, self._boot_id)]


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
        else:
            return handler  # what a client streams cannot be sent a second time
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


async def _result(awaited: Awaitable[Any]) -> Any:  # noqa: ANN401 - any answer
    return await awaited


async def _pass_on(
    context: Context, moved: OwnedElsewhereError, error: grpc.aio.AioRpcError
) -> None:
    """Answer what the owner answered.

    Raises:
        UnavailableError: the owner does not answer.
    """
    trailing: Any = error.trailing_metadata() or ()
    ours = any(key == ERROR_DETAILS_KEY for key, _ in trailing)
    if error.code() is grpc.StatusCode.UNAVAILABLE and not ours:
        raise UnavailableError(
            f"the manager of experiment {moved.experiment_id!r} at {moved.manager.grpc_address} "
            "does not answer; another one takes the experiment over within seconds: try again",
            moved.facts,
        ) from error
    await context.abort(error.code(), error.details() or "", tuple(trailing))


def _time_left(context: Context) -> float | None:
    left: Any = context.time_remaining()  # None, other than the stubs say, if there is no deadline
    return None if left is None else max(0.0, left)
