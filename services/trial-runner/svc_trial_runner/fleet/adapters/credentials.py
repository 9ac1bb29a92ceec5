"""Credentials of agents: issued by the supervisor of this machine, or not at all."""

from collections.abc import Sequence

from svc_common.credential_channel import CredentialChannel
from svc_common.errors import UnavailableError
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
        """End the validity of credentials."""
        await self._channel.revoke([str(name) for name in names])


class NoCredentials:
    """`CredentialStore` of an installation that cannot issue credentials of agents."""

    async def issue(self, name: AgentName) -> AgentCredentials:
        """Raise UnavailableError: this installation issues no credentials.

        Raises:
            UnavailableError: always.
        """
        raise UnavailableError(
            f"agent {name} gets no credentials: this installation has no supervisor that issues "
            "them; create the experiment on a machine where `nnictl` starts the services"
        )

    async def revoke(self, names: Sequence[AgentName]) -> None:
        """Do nothing: none was issued."""
