"""Makes calls at the managers that have the experiments they are about.

A call is made as it came, and its answer is passed back as it came. A call that was passed on once
is not passed on again: while an experiment changes hands the client is told to try again.
`forwarding_grpc_server` says which calls these are.
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
from svc_common.access.interceptor import bearer_token, certificate_name
from svc_common.errors import UnavailableError
from svc_common.rpc.requests import read_to_end
from svc_manager.actors.leasing import OwnedElsewhereError

FORWARDED_KEY: Final = "nni-forwarded"
"""Metadata of a call, and header of a request, that another manager passes on."""
_OF_THE_CONNECTION: Final = ("grpc-", "user-agent", "te", "content-type", ":", ON_BEHALF_KEY)
"""Starts of keys that are not passed on: they speak of one connection, or are a manager's only."""

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]


class RepeatedStream(Protocol):
    """What a client streams, from where it was read to; and from its beginning."""

    def again(self) -> AsyncIterator[Message]:
        """Give everything from the first message on."""
        ...

    def __aiter__(self) -> AsyncIterator[Message]: ...

    async def __anext__(self) -> Message: ...


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
        delegation: stands for callers who show a certificate instead of a token; None: there are
            none.
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

    async def one(
        self,
        method: str,
        request: Message,
        context: Context,
        moved: OwnedElsewhereError,
    ) -> bytes:
        """Make a call with one answer at the owner; give the answer as it came."""
        call: Any = self._channel_for(context, moved).unary_unary(method)
        payload = request.SerializeToString()
        return await self._answered(call, payload, context, moved)

    async def taken(
        self,
        method: str,
        requests: RepeatedStream,
        context: Context,
        moved: OwnedElsewhereError,
    ) -> bytes:
        """Make a call with many requests at the owner, as they come; give its answer."""
        call: Any = self._channel_for(context, moved).stream_unary(method)
        return await self._answered(call, _written(requests.again()), context, moved, requests)

    async def _answered(
        self,
        call: Any,  # noqa: ANN401 - the stubs know only synchronous channels
        sent: bytes | AsyncIterator[bytes],
        context: Context,
        moved: OwnedElsewhereError,
        rest: AsyncIterator[Message] | None = None,
    ) -> bytes:
        answering = call(sent, timeout=_time_left(context), metadata=self._metadata(context))
        try:
            answer: bytes = await self._unless_moved(answering, moved)
        except grpc.aio.AioRpcError as error:
            if rest is not None:
                await read_to_end(rest)
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
        if self._delegation is not None and not bearer_token(kept):
            kept = [(key, value) for key, value in kept if key != AUTHORIZATION_KEY]
            kept += self._delegation.metadata_of_certificate(certificate_name(context))
        return [*kept, (FORWARDED_KEY, self._boot_id)]


async def _written(requests: AsyncIterator[Message]) -> AsyncIterator[bytes]:
    async for request in requests:
        yield request.SerializeToString()


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
    # INTERNAL: a stream that was broken off before the owner's refusal came.
    if error.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL} and not ours:
        raise UnavailableError(
            f"the manager of experiment {moved.experiment_id!r} at {moved.manager.grpc_address} "
            "does not answer; another one takes the experiment over within seconds: try again",
            moved.facts,
        ) from error
    await context.abort(error.code(), error.details() or "", tuple(trailing))


def _time_left(context: Context) -> float | None:
    left: Any = context.time_remaining()  # None, other than the stubs say, if there is no deadline
    return None if left is None else max(0.0, left)
