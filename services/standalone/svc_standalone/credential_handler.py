"""Use case of the supervisor: credentials of agents are issued and revoked while the bus runs."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from svc_common.agent_users import PROBE, AgentUsers
from svc_common.credential_channel import CredentialRequest, IssuedCredentials
from svc_common.errors import ServiceError, UnauthenticatedError, UnavailableError
from svc_common.logs import get_logger

if TYPE_CHECKING:
    from svc_common.messaging.nats_settings import NatsSettings

RELOAD_S: Final = 40.0
"""Time limit for the bus to read its users again; a bus that is restarted reads them, too."""
_READS_OF_NEW_ACCOUNTS: Final = 2
"""nats-server admits the user of a new account when it reads its configuration, and passes on what
it sends when it reads it again: only then it subscribes to the imports of an account that exists
already."""
_FIRST_RETRY_S: Final = 0.002
_LAST_RETRY_S: Final = 0.1


class CredentialHandler:
    """Handler that issues and revokes agents' credentials, and waits until the bus has them.

    Args:
        users: of agents.
        write: writes the configuration of the bus with the users of `AgentUsers.logins`.
        reload: has the running bus read its configuration again; does nothing if none runs.
        settings: returns how this process reaches the bus, without a user.
    """

    def __init__(
        self,
        users: AgentUsers,
        write: Callable[[], None],
        reload: Callable[[], None],
        settings: "Callable[[], NatsSettings]",
    ) -> None:
        self._users = users
        self._write = write
        self._reload = reload
        self._settings = settings

    async def handle(
        self, requests: Sequence[CredentialRequest]
    ) -> Sequence[IssuedCredentials | ServiceError | None]:
        """Issue or revoke credentials, reload the bus; return one result or error per request."""
        results = [self._apply(request) for request in requests]
        if all(isinstance(result, ServiceError) for result in results):
            return results
        issued = any(isinstance(result, IssuedCredentials) for result in results)
        try:
            self._users.save()
            for _ in range(_READS_OF_NEW_ACCOUNTS if issued else 1):
                await self._reload_users()
        except OSError as error:
            return [UnavailableError(f"cannot store credentials: {error.strerror}")] * len(results)
        except UnavailableError as error:
            return [error] * len(results)
        get_logger().info(
            "credentials of agents changed",
            issued=[request.issue[0] for request in requests if request.issue is not None],
            revoked=[name for request in requests for name in request.revoke],
        )
        return results

    def _apply(self, request: CredentialRequest) -> IssuedCredentials | ServiceError | None:
        self._users.revoke(request.revoke)
        if request.issue is None:
            return None
        try:
            return self._users.issue(*request.issue)
        except ServiceError as error:
            return error

    async def _reload_users(self) -> None:
        """Write and reload the bus's users with a new revision; wait for its probe user's login.

        Raises:
            OSError: its configuration cannot be written.
            UnavailableError: it has not read them within `RELOAD_S`.
        """
        before = self._users.revision
        self._users.renew_revision()
        after = self._users.revision
        self._write()
        try:
            async with asyncio.timeout(RELOAD_S):
                # The signal would end a bus that is just starting: one that admits users is not.
                await self._until_admitted(before, after)
                self._reload()
                await self._until_admitted(after)
        except TimeoutError as error:
            raise UnavailableError(
                f"the bus has not read its users within {RELOAD_S:g} s; see its log"
            ) from error

    async def _until_admitted(self, *revisions: str) -> None:
        """Retry without limit until the bus admits the probe user of one of these revisions."""
        delay_s = _FIRST_RETRY_S
        while True:
            for revision in revisions:
                if await self._admits(revision):
                    return
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, _LAST_RETRY_S)

    async def _admits(self, revision: str) -> bool:
        """Return whether the bus admits the probe user of a revision; wait if it is unreachable."""
        # Loaded with the first agent: a supervisor without a fleet needs no client of the bus.
        from svc_common.messaging.nats_connection import Connection

        settings = replace(self._settings(), user=PROBE, password=revision)
        connection = Connection(settings)
        try:
            await connection.open()
        except UnauthenticatedError:
            return False
        await connection.aclose()
        return True
