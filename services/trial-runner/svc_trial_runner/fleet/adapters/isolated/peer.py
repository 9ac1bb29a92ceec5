"""Calls in both directions over one stream socket, as messages of JSON.

Each message is its length (4 bytes, big-endian) and a JSON object: `{"id", "method", "params"}` is
a call, `{"id", "result"}` or `{"id", "error": {"message", "remedy", "permanent"}}` its response,
`{"cancel": id}` the request to end a call. Each end numbers its own calls.
"""

import asyncio
import itertools
import json
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final, Self

from svc_common.logs import get_logger
from svc_common.tasks import TaskOwner
from svc_trial_runner.fleet.ports import PlatformError

LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Longest message; an order has less than 1 kB."""
CANCEL_S: Final = 5.0
"""Time within which the other end has to end a call that was cancelled."""
_LENGTH_BYTES: Final = 4
_SHOWN_CHARACTERS: Final = 1000

HandleCall = Callable[[str, Any], Awaitable[Any]]
"""Handles a call of the other end: method and parameters to the result, all of them JSON."""


class PeerGoneError(PlatformError):
    """Error of a call whose other end has closed the socket."""


class Peer:
    """One end of a stream socket: calls the other end, and handles its calls.

    Args:
        streams: reader and writer of the socket.
        handle: called for each call of the other end, in a task of its own.
        cancel_s: time within which the other end has to end a call that was cancelled.
    """

    def __init__(
        self,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        handle: HandleCall,
        cancel_s: float = CANCEL_S,
    ) -> None:
        self._reader, self._writer = streams
        self._handle = handle
        self._cancel_s = cancel_s
        self._numbers = itertools.count(1)
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._handled: dict[int, asyncio.Task[None]] = {}
        self._tasks = TaskOwner(_log_failure)
        self._gone = False
        self._stuck = False

    @classmethod
    async def open(cls, end: socket.socket, handle: HandleCall, cancel_s: float = CANCEL_S) -> Self:
        """Return a peer over a connected socket, which it owns."""
        end.setblocking(False)  # noqa: FBT003 - its only way
        return cls(await asyncio.open_unix_connection(sock=end), handle, cancel_s)

    @property
    def stuck(self) -> bool:
        """True if the other end has not ended a cancelled call in time."""
        return self._stuck

    async def run(self) -> None:
        """Read messages until the socket closes or one is too long; then fail calls in progress."""
        try:
            while True:
                length = int.from_bytes(await self._reader.readexactly(_LENGTH_BYTES))
                if length > LIMIT_BYTES:
                    get_logger().error("message refused", length=length)
                    return
                self._receive(json.loads(await self._reader.readexactly(length)))
        except (asyncio.IncompleteReadError, OSError):
            return
        finally:
            self._gone = True
            for future in self._pending.values():
                if not future.done():
                    future.set_exception(PeerGoneError("the connection was closed"))

    async def call(self, method: str, params: object = None) -> Any:  # noqa: ANN401 - JSON
        """Call a method of the other end; return its result; a cancellation cancels that call.

        A cancelled call is cancelled at the other end, too, and its end is waited for.

        Raises:
            PlatformError: the call has failed there.
            PeerGoneError: the other end has closed the socket.
        """
        if self._gone:
            raise PeerGoneError("the connection was closed")
        number = next(self._numbers)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[number] = future
        try:
            await self._send({"id": number, "method": method, "params": params})
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await self._cancel(number, future)
            raise
        finally:
            del self._pending[number]

    async def aclose(self) -> None:
        """Cancel the calls that are handled, and close the socket; may be called twice."""
        self._writer.transport.abort()  # the other end may read no more
        await self._tasks.aclose()

    async def _cancel(self, number: int, future: asyncio.Future[Any]) -> None:
        if self._gone:
            return
        self._write({"cancel": number})  # without a wait: the other end may read no more
        await asyncio.wait([future], timeout=self._cancel_s)
        if future.done():
            future.exception()  # of no interest: its caller has gone
        else:
            self._stuck = True

    def _receive(self, message: dict[str, Any]) -> None:
        if "cancel" in message:
            task = self._handled.get(message["cancel"])
            if task is not None:
                # A task that is cancelled before its first step would send no response.
                asyncio.get_running_loop().call_soon(task.cancel)
        elif "method" in message:
            number = message["id"]
            work = self._respond(number, message["method"], message["params"])
            task = self._handled[number] = self._tasks.start(work, message["method"])
            task.add_done_callback(lambda _: self._handled.pop(number, None))
        else:
            self._complete(message)

    def _complete(self, message: dict[str, Any]) -> None:
        future = self._pending.get(message["id"])
        if future is None or future.done():
            return
        if "error" in message:
            error = message["error"]
            future.set_exception(
                PlatformError(error["message"], error["remedy"], permanent=error["permanent"])
            )
        else:
            future.set_result(message["result"])

    async def _respond(self, number: int, method: str, params: object) -> None:
        try:
            result = await self._handle(method, params)
            await self._send({"id": number, "result": result})
        except asyncio.CancelledError:
            await self._send({"id": number, **_error(PlatformError("the call was cancelled"))})
            raise
        except PlatformError as error:
            await self._send({"id": number, **_error(error)})
        except Exception as error:  # noqa: BLE001 - rim: an adapter may be of others
            get_logger().exception("call failed", method=method)
            words = f"{type(error).__name__}: {error}"[:_SHOWN_CHARACTERS]
            await self._send({"id": number, **_error(PlatformError(words))})

    async def _send(self, message: dict[str, Any]) -> None:
        try:
            self._write(message)
            await self._writer.drain()
        except OSError:  # the reader of this end notices it
            return

    def _write(self, message: dict[str, Any]) -> None:
        content = json.dumps(message).encode()
        if len(content) > LIMIT_BYTES:
            raise PlatformError(f"a message of {len(content)} bytes is too long")
        self._writer.write(len(content).to_bytes(_LENGTH_BYTES) + content)


def _error(error: PlatformError) -> dict[str, Any]:
    return {
        "error": {"message": error.message, "remedy": error.remedy, "permanent": error.permanent}
    }


def _log_failure(name: str, error: BaseException) -> None:
    get_logger().error("task failed", task=name, exc_info=error)
