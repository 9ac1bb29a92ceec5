"""Reload of the bus's servers from another machine, over the system account of NATS."""

import asyncio
import json
from typing import Any, Final, Self

from svc_common.errors import UnavailableError
from svc_common.logs import get_logger
from svc_common.messaging.nats_connection import Connection
from svc_common.messaging.nats_requests import DisconnectedError, Headers, NoRespondersError
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.messaging.permissions import FIND_SERVERS

FIND_S: Final = 2.0
"""Longest wait for servers that do not answer, as one that is down: it reads its users when it
starts."""
RELOAD_S: Final = 40.0
"""Time limit for all servers to read their configuration again; a restart of one fits in."""


class BusReloader:
    """Connection to the system account that has all servers of the bus read their configuration.

    Args:
        settings: of the user `RELOADER`; its addresses tell how many servers there are.
    """

    def __init__(self, settings: NatsSettings) -> None:
        self._connection = Connection(settings)
        self._server_count = len(settings.servers())

    async def __aenter__(self) -> Self:
        """Connect; wait without limit for a server."""
        await self._connection.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connection."""
        await self._connection.aclose()

    async def reload(self) -> None:
        """Make all NATS servers reload their configuration; wait up to `RELOAD_S` until all have.

        While no server can be reached, this waits; a server that starts reads it anyway.

        Raises:
            UnavailableError: a server cannot use its configuration, or none answers in time.
        """
        try:
            async with asyncio.timeout(RELOAD_S):
                while not await self._try_reload():
                    await self._connection.wait_connected()
        except TimeoutError as error:
            raise UnavailableError(
                f"the bus has not read its users within {RELOAD_S:g} s; see its log"
            ) from error

    async def _try_reload(self) -> bool:
        """Make the servers reload; return False if none answers or the connection is lost."""
        try:
            servers = await self._servers()
            await asyncio.gather(*(self._reload(server) for server in servers))
        except DisconnectedError:
            return False
        return bool(servers)

    async def _servers(self) -> set[str]:
        """Return the ids of the servers that answer, once all do or after `FIND_S`.

        Raises:
            DisconnectedError: the connection is lost.
        """
        found: set[str] = set()
        complete = asyncio.Event()

        def receive(_subject: str, _reply: str, _headers: Headers, payload: bytes) -> None:
            server = str(_fields(payload).get("server", {}).get("id", ""))
            if server:
                found.add(server)
            if len(found) >= self._server_count:
                complete.set()

        inbox = self._connection.new_inbox()
        subscription = self._connection.subscribe(inbox, receive)
        try:
            async with asyncio.timeout(FIND_S):
                if not self._connection.publish(FIND_SERVERS, b"", reply=inbox):
                    raise DisconnectedError("the bus is away")
                await complete.wait()
        except TimeoutError:
            get_logger().warning(
                "not all servers of the bus answer", found=len(found), expected=self._server_count
            )
        finally:
            self._connection.unsubscribe(subscription)
        return found

    async def _reload(self, server: str) -> None:
        subject = f"$SYS.REQ.SERVER.{server}.RELOAD"
        try:
            _, payload = await self._connection.request(subject, b"", timeout_s=RELOAD_S)
        except NoRespondersError:
            return  # it has ended, and reads its users when it starts
        error = _fields(payload).get("error")
        if error:
            text = str(error.get("description", error) if isinstance(error, dict) else error)
            raise UnavailableError(f"the bus cannot read its users again: {text[:300]}")


def _fields(payload: bytes) -> dict[str, Any]:
    try:
        found = json.loads(payload)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
