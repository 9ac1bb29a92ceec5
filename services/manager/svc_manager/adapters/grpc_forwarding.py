"""Forwarding of gRPC calls to the managers that own the experiments.

A call and its response are forwarded unchanged. A forwarded call is not forwarded again: while an
experiment changes owners, the client gets a retryable error. See `forwarding_grpc_server` for the
calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Final, Protocol, TypeAlias

import grpc
import grpc.aio
from google.protobuf.message import Message

from nni_wire.metadata import AUTHORIZATION_KEY, ERROR_DETAILS_KEY
from svc_common.access.delegation import ON_BEHALF_KEY, Delegation
from svc_common.errors import UnavailableError
from svc_common.rpc.access_interceptor import bearer_token, certificate_name
from svc_common.rpc.requests import read_to_end
from svc_common.tasks import StoppedError, result_unless
from svc_manager.actors.leasing import OwnedElsewhereError

FORWARDED_KEY: Final = "nni-forwarded"
"""Metadata of a call, and header of a request, that another manager forwards."""
_NOT_FORWARDED: Final = ("grpc-", "user-agent", "te", "content-type", ":", ON_BEHALF_KEY)
"""Prefixes of metadata keys that are not forwarded: they concern one connection, or managers
only."""

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]


class RepeatedStream(Protocol):
    """Interface of a client stream that can be read on, or again from its first message."""

    def replay(self) -> AsyncIterator[Message]:
        """Yield all messages from the first on."""
        ...

    def __aiter__(self) -> AsyncIterator[Message]: ...

    async def __anext__(self) -> Message: ...


UntilMoved: TypeAlias = Callable[[OwnedElsewhereError], Awaitable[None]]
"""Waits until an experiment has another owner."""


class Channels:
    """Cache of one gRPC channel for each address of another manager.

    Args:
        open_channel: opens a channel to `host:port`.
    """

    def __init__(self, open_channel: Callable[[str], grpc.aio.Channel]) -> None:
        self._open_channel = open_channel
        self._channels: dict[str, grpc.aio.Channel] = {}

    def to(self, address: str) -> grpc.aio.Channel:
        """Return the cached gRPC channel to another manager's address; open it at first use."""
        channel = self._channels.get(address)
        if channel is None:
            channel = self._channels[address] = self._open_channel(address)
        return channel

    async def aclose(self) -> None:
        """Close all channels."""
        channels, self._channels = self._channels, {}
        await asyncio.gather(*(channel.close(None) for channel in channels.values()))


class Forwarder:
    """Client that repeats a caller's gRPC call at the manager that owns the experiment.

    Args:
        channels: to the managers.
        boot_id: of this manager.
        until_moved: cancels a call when the experiment has another owner: the called manager may be
            frozen and never respond.
        delegation: credentials for callers with a client certificate instead of a token; None:
            there are none.
    """

    def __init__(
        self,
        channels: Channels,
        boot_id: str,
        until_moved: UntilMoved,
        delegation: Delegation | None = None,
    ) -> None:
        self._channels = channels
        self._boot_id = boot_id
        self._until_moved = until_moved
        self._delegation = delegation

    async def unary(
        self,
        method: str,
        request: Message,
        context: Context,
        moved: OwnedElsewhereError,
    ) -> bytes:
        """Forward a unary gRPC call to the experiment's owner; return the encoded response."""
        call: Any = self._channel_for(context, moved).unary_unary(method)
        payload = request.SerializeToString()
        return await self._response(call, payload, context, moved)

    async def client_stream(
        self,
        method: str,
        requests: RepeatedStream,
        context: Context,
        moved: OwnedElsewhereError,
    ) -> bytes:
        """Forward a client-streaming call to the owner, from its first message; return bytes."""
        call: Any = self._channel_for(context, moved).stream_unary(method)
        return await self._response(call, _encoded(requests.replay()), context, moved, requests)

    async def _response(
        self,
        call: Any,  # noqa: ANN401 - the stubs know only synchronous channels
        sent: bytes | AsyncIterator[bytes],
        context: Context,
        moved: OwnedElsewhereError,
        rest: AsyncIterator[Message] | None = None,
    ) -> bytes:
        pending = call(sent, timeout=_time_left(context), metadata=self._metadata(context))
        try:
            answer: bytes = await self._unless_moved(pending, moved)
        except grpc.aio.AioRpcError as error:
            if rest is not None:
                await read_to_end(rest)
            await _forward_error(context, moved, error)
            raise
        finally:
            pending.cancel()
        return answer

    async def server_stream(
        self,
        method: str,
        request: Message,
        context: Context,
        moved: OwnedElsewhereError,
    ) -> AsyncIterator[bytes]:
        """Forward a server-streaming call to the owner; yield encoded responses until it moves."""
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
            await _forward_error(context, moved, error)
        finally:
            stream.cancel()

    async def _unless_moved(self, pending: Awaitable[Any], moved: OwnedElsewhereError) -> Any:  # noqa: ANN401 - any answer
        """Return a forwarded response; raise as soon as the experiment gets another owner.

        Raises:
            OwnedElsewhereError: the experiment has another owner by now.
        """
        try:
            return await result_unless(self._until_moved(moved), pending)
        except StoppedError:
            raise moved from None

    def _channel_for(self, context: Context, moved: OwnedElsewhereError) -> grpc.aio.Channel:
        """Return the channel to the owner's address; raise if it has none or was forwarded before.

        Raises:
            OwnedElsewhereError: the owner has no address, or the call was forwarded before.
        """
        address = moved.manager.grpc_address
        forwarded = any(key == FORWARDED_KEY for key, _ in context.invocation_metadata() or ())
        if forwarded or not address:
            raise moved
        return self._channels.to(address)

    def _metadata(self, context: Context) -> list[tuple[str, Any]]:
        given: Iterable[tuple[str, Any]] = context.invocation_metadata() or ()
        kept = [(key, value) for key, value in given if not key.startswith(_NOT_FORWARDED)]
        if self._delegation is not None and not bearer_token(kept):
            kept = [(key, value) for key, value in kept if key != AUTHORIZATION_KEY]
            kept += self._delegation.metadata_of_certificate(certificate_name(context))
        return [*kept, (FORWARDED_KEY, self._boot_id)]


async def _encoded(requests: AsyncIterator[Message]) -> AsyncIterator[bytes]:
    async for request in requests:
        yield request.SerializeToString()


async def _forward_error(
    context: Context, moved: OwnedElsewhereError, error: grpc.aio.AioRpcError
) -> None:
    """Abort a forwarded call with the owner's status and details; UNAVAILABLE if it is down.

    Raises:
        UnavailableError: the owner does not respond.
    """
    trailing: Any = error.trailing_metadata() or ()
    ours = any(key == ERROR_DETAILS_KEY for key, _ in trailing)
    # INTERNAL: the stream broke before the owner's error arrived.
    if error.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL} and not ours:
        raise UnavailableError(
            f"the manager of experiment {moved.experiment_id!r} at {moved.manager.grpc_address} "
            "does not answer; another one takes the experiment over within seconds: try again",
            moved.facts,
        ) from error
    await context.abort(error.code(), error.details() or "", tuple(trailing))


def _time_left(context: Context) -> float | None:
    left: Any = context.time_remaining()  # None without a deadline, unlike the stubs say
    return None if left is None else max(0.0, left)
