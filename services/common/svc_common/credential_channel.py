"""Channel between supervisor and fleet for the credentials of agents.

Both ends are a pair of Unix sockets that only these two processes hold. Each message is a JSON
object of its own:

    fleet to supervisor: `{"id": …, "issue": [name, pool]}`, `{"id": …, "revoke": [names]}`
    supervisor to fleet: `{"id": …, "user": …, "password": …, "token": …}`, `{"id": …}`,
        `{"id": …, "error": message}`

The id has a random part, which tells an answer from one to an earlier run of the fleet.
"""

import asyncio
import itertools
import json
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from svc_common.errors import ServiceError, UnavailableError
from svc_common.logs import get_logger

_MESSAGE_BYTES: Final = 64 * 1024
_NAMES_OF_A_MESSAGE: Final = 256
"""Names of one revocation; each has at most 128 characters."""
_BATCH: Final = 1_000
"""Most requests that are handled together."""
ANSWER_S: Final = 60.0
"""Time limit for an answer: longer than the bus takes to be restarted and to read its users."""


@dataclass(frozen=True, slots=True)
class IssuedCredentials:
    """Credentials of one agent: user and password at the bus, token at the manager."""

    user: str
    password: str = field(repr=False)
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class CredentialRequest:
    """Request of the fleet: credentials of one agent, or the end of those of several."""

    issue: tuple[str, str] | None = None
    """Name and pool of the agent."""
    revoke: tuple[str, ...] = ()
    """Names of agents; unknown ones are ignored."""


HandleRequests = Callable[
    [Sequence[CredentialRequest]], Awaitable[Sequence[IssuedCredentials | ServiceError | None]]
]
"""Handles requests together; returns a result for each: credentials, an error, None for done."""


class CredentialServer:
    """Supervisor's end of the channel: hands requests to a handler and sends its results."""

    def __init__(self) -> None:
        self._end, self.child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        """End that each run of the fleet inherits."""
        self._end.setblocking(False)  # noqa: FBT003 - its only way

    async def serve(self, handle: HandleRequests) -> None:
        """Pass all requests that have arrived to `handle` together, send its results; never end."""
        loop = asyncio.get_running_loop()
        while True:
            messages = [await loop.sock_recv(self._end, _MESSAGE_BYTES)]
            messages += itertools.islice(self._waiting(), _BATCH)
            found = [parsed for message in messages if (parsed := _parse_request(message))]
            if not found:
                continue
            results = await handle([request for _, request in found])
            for (number, _), result in zip(found, results, strict=True):
                await self._answer(number, result)

    def close(self) -> None:
        """Close both ends; may be called twice."""
        self._end.close()
        self.child_end.close()

    def _waiting(self) -> Iterator[bytes]:
        """Yield the messages that have arrived, without waiting."""
        while True:
            try:
                yield self._end.recv(_MESSAGE_BYTES)
            except BlockingIOError:
                return

    async def _answer(self, number: str, result: IssuedCredentials | ServiceError | None) -> None:
        fields: dict[str, str] = {"id": number}
        if isinstance(result, ServiceError):
            fields["error"] = result.message
        elif result is not None:
            fields |= {"user": result.user, "password": result.password, "token": result.token}
        try:
            async with asyncio.timeout(ANSWER_S):
                message = json.dumps(fields).encode()
                await asyncio.get_running_loop().sock_sendall(self._end, message)
        except (OSError, TimeoutError):  # the fleet is gone; its next run asks again
            get_logger().warning("credentials not delivered")


class CredentialChannel:
    """Fleet's end of the channel: asks the supervisor to issue or revoke agents' credentials.

    Args:
        end: inherited end of the pair.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._end.set_inheritable(False)
        self._end.setblocking(False)  # noqa: FBT003 - its only way
        self._run = secrets.token_hex(8)
        self._numbers = itertools.count(1)
        self._pending: dict[str, asyncio.Future[dict[str, str]]] = {}
        self._sending = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._end, self._read)

    @classmethod
    def inherited(cls, descriptor: int) -> Self:
        """Return the channel on an inherited descriptor."""
        return cls(socket.socket(fileno=descriptor))

    async def issue(self, name: str, pool: str) -> IssuedCredentials:
        """Return new credentials of an agent, valid at the return; revoke its earlier ones.

        Raises:
            UnavailableError: they cannot be made now; the message says why.
        """
        answer = await self._ask({"issue": [name, pool]})
        try:
            return IssuedCredentials(answer["user"], answer["password"], answer["token"])
        except KeyError as error:
            raise UnavailableError("the supervisor gave no credentials") from error

    async def revoke(self, names: Sequence[str]) -> None:
        """Revoke agents' credentials; unknown names are ignored.

        Raises:
            UnavailableError: they cannot be revoked now; the message says why.
        """
        for start in range(0, len(names), _NAMES_OF_A_MESSAGE):
            await self._ask({"revoke": list(names[start : start + _NAMES_OF_A_MESSAGE])})

    def close(self) -> None:
        """Close the channel: waiting calls raise `UnavailableError`; may be called twice."""
        if self._end.fileno() >= 0:
            self._loop.remove_reader(self._end)
            self._end.close()
        self._fail("the channel is closed")

    async def _ask(self, fields: dict[str, list[str]]) -> dict[str, str]:
        number = f"{self._run}-{next(self._numbers)}"
        answer: asyncio.Future[dict[str, str]] = self._loop.create_future()
        self._pending[number] = answer
        try:
            async with asyncio.timeout(ANSWER_S):
                message = json.dumps({"id": number, **fields}).encode()
                async with self._sending:  # the loop has one writer per socket
                    await self._loop.sock_sendall(self._end, message)
                found = await answer
        except (OSError, TimeoutError) as error:
            raise UnavailableError("the supervisor does not answer") from error
        finally:
            del self._pending[number]
        if "error" in found:
            raise UnavailableError(found["error"])
        return found

    def _read(self) -> None:
        while True:
            try:
                message = self._end.recv(_MESSAGE_BYTES)
            except BlockingIOError:
                return
            except OSError:
                message = b""
            if not message:
                self._loop.remove_reader(self._end)
                self._fail("the supervisor is gone")
                return
            found = _parse(message)
            waiting = self._pending.get(found.get("id", ""))
            if waiting is not None and not waiting.done():
                waiting.set_result(found)

    def _fail(self, reason: str) -> None:
        for waiting in self._pending.values():
            if not waiting.done():
                waiting.set_exception(UnavailableError(reason))


def _parse_request(message: bytes) -> tuple[str, CredentialRequest] | None:
    """Return id and request of a JSON message; None, with a warning: it is malformed."""
    match _parse(message):
        case {"id": str(number), "issue": [str(name), str(pool)]}:
            return number, CredentialRequest(issue=(name, pool))
        case {"id": str(number), "revoke": [*names]}:
            return number, CredentialRequest(revoke=tuple(map(str, names)))
    get_logger().warning("request for credentials not understood")
    return None


def _parse(message: bytes) -> dict[str, Any]:
    try:
        found = json.loads(message)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
