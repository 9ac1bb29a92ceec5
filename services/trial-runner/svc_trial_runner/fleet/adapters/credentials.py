"""Credentials of agents: issued by the supervisor, by the fleet itself, or not at all."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from svc_common.agent_users import BUS_FILE, AgentUsers
from svc_common.credential_channel import CredentialChannel
from svc_common.durable_files import write_readable
from svc_common.errors import UnavailableError
from svc_common.messaging.permissions import agent_accounts
from svc_trial_runner.fleet.domain.agents import AgentCredentials, AgentName


class SupervisorCredentials:
    """`CredentialStore` over the channel to the supervisor.

    Args:
        channel: inherited; the caller closes it.
    """

    def __init__(self, channel: CredentialChannel) -> None:
        self._channel = channel

    async def issue(self, name: AgentName) -> AgentCredentials:
        """Return new credentials of an agent, limited to its pool; revoke earlier ones."""
        issued = await self._channel.issue(str(name), name.pool)
        return AgentCredentials(issued.user, issued.password, issued.token)

    async def revoke(self, names: Sequence[AgentName]) -> None:
        """Revoke the credentials of agents by their names."""
        await self._channel.revoke([str(name) for name in names])


_READS: Final = 2
"""nats-server admits the user of a new account when it reads its configuration, and subscribes to
the imports of that account when it reads it again."""


class FolderCredentials:
    """`CredentialStore` of a deployment: users of agents in a folder that bus and manager read.

    Calls at the same time share a reload of the bus.

    Args:
        folder: shared with the servers of the bus and with the managers.
        users: of agents, read from the same folder.
        reload: has all servers of the bus read the folder's users again.
    """

    def __init__(
        self, folder: Path, users: AgentUsers, reload: Callable[[], Awaitable[None]]
    ) -> None:
        self._file = folder / BUS_FILE
        self._users = users
        self._reload = reload
        self._changes = 0
        self._applied = 0
        self._applying = asyncio.Lock()

    async def issue(self, name: AgentName) -> AgentCredentials:
        """Return new credentials of an agent, limited to its pool; revoke earlier ones.

        Raises:
            UnavailableError: files cannot be written, or the bus does not read them.
            ResourceExhaustedError: there are too many agents.
        """
        issued = self._users.issue(str(name), name.pool)
        await self.apply()
        return AgentCredentials(issued.user, issued.password, issued.token)

    async def revoke(self, names: Sequence[AgentName]) -> None:
        """Revoke credentials; unknown names are ignored.

        Raises:
            UnavailableError: files cannot be written, or the bus does not read them.
        """
        self._users.revoke([str(name) for name in names])
        await self.apply()

    async def apply(self) -> None:
        """Write the files of current users; return once bus and managers have read them.

        Raises:
            UnavailableError: files cannot be written, or the bus does not read them.
        """
        self._changes += 1
        mine = self._changes
        async with self._applying:
            if self._applied >= mine:
                return  # written together with an earlier call's
            written = self._changes
            try:
                self._users.save()
                write_readable(self._file, agent_accounts(self._users.agents()))
            except OSError as error:
                raise UnavailableError(
                    f"cannot store credentials in {self._file.parent}: {error.strerror}"
                ) from error
            for _ in range(_READS):
                await self._reload()
            self._applied = written


class NoCredentials:
    """`CredentialStore` of an installation that cannot issue credentials of agents."""

    async def issue(self, name: AgentName) -> AgentCredentials:
        """Raise UnavailableError: this installation issues no credentials.

        Raises:
            UnavailableError: always.
        """
        raise UnavailableError(
            f"agent {name} gets no credentials: this installation has no supervisor that issues "
            "them, and its fleet no folder of users that it shares with the bus; set "
            "NNI_AGENT_USERS as the compose file does"
        )

    async def revoke(self, names: Sequence[AgentName]) -> None:
        """Do nothing: none was issued."""
