import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress

import pytest

from svc_common.credential_channel import (
    CredentialChannel,
    CredentialRequest,
    CredentialServer,
    IssuedCredentials,
)
from svc_common.errors import UnavailableError
from svc_trial_runner.fleet.adapters.credentials import NoCredentials, SupervisorCredentials
from svc_trial_runner.fleet.domain.agents import AgentCredentials, AgentName
from tests.support.fleet_pools import agent

NAME = AgentName("abcd1234", "exp-e1", 3)


async def test_names_and_credentials_pass_between_fleet_and_supervisor() -> None:
    seen: list[CredentialRequest] = []

    async def handle(requests: Sequence[CredentialRequest]) -> list[IssuedCredentials | None]:
        seen.extend(requests)
        issued = IssuedCredentials("user", "password", "token")
        return [None if request.issue is None else issued for request in requests]

    server = CredentialServer()
    serving = asyncio.create_task(server.serve(handle))
    channel = CredentialChannel.inherited(os.dup(server.child_end.fileno()))
    store = SupervisorCredentials(channel)
    try:
        async with asyncio.timeout(20):
            credentials = await store.issue(NAME)
            await store.revoke([NAME])
    finally:
        channel.close()
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        server.close()

    assert credentials == AgentCredentials("user", "password", "token")
    assert seen == [
        CredentialRequest(issue=(str(NAME), "exp-e1")),
        CredentialRequest(revoke=(str(NAME),)),
    ]


async def test_installation_without_a_supervisor_says_why_agents_get_no_credentials() -> None:
    credentials = NoCredentials()

    with pytest.raises(UnavailableError, match="no supervisor"):
        await credentials.issue(agent(1))
    await credentials.revoke([agent(1)])
