import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from svc_common.agent_users import BUS_FILE, AgentUsers
from svc_common.credential_channel import (
    CredentialChannel,
    CredentialRequest,
    CredentialServer,
    IssuedCredentials,
)
from svc_common.errors import UnavailableError
from svc_trial_runner.fleet.adapters.credentials import (
    FolderCredentials,
    NoCredentials,
    SupervisorCredentials,
)
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


class ReadBus:
    """Bus that has read its users at each reload."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.known: list[str] = []

    async def reload(self) -> None:
        await asyncio.sleep(0)
        self.known.append(self.file.read_text())


async def test_issued_user_is_in_the_file_of_the_bus_when_it_is_returned(tmp_path: Path) -> None:
    bus = ReadBus(tmp_path / BUS_FILE)
    store = FolderCredentials(tmp_path, AgentUsers(tmp_path), bus.reload)

    issued = await store.issue(NAME)
    await store.revoke([NAME])

    # New accounts are read twice.
    assert [issued.bus_password in text for text in bus.known] == [True, True, False, False]
    assert bus.file.stat().st_mode & 0o777 == 0o644, "the bus runs as another user"
    assert issued.manager_token not in "".join(bus.known)


async def test_calls_at_the_same_time_share_a_reload(tmp_path: Path) -> None:
    bus = ReadBus(tmp_path / BUS_FILE)
    store = FolderCredentials(tmp_path, AgentUsers(tmp_path), bus.reload)

    issued = await asyncio.gather(*(store.issue(agent(number)) for number in range(1, 21)))

    assert len(bus.known) <= 4
    assert all(one.bus_password in bus.known[-1] for one in issued)


async def test_failed_reload_is_the_error_of_the_call_and_the_next_one_repeats_it(
    tmp_path: Path,
) -> None:
    bus = ReadBus(tmp_path / BUS_FILE)
    failures = [UnavailableError("the bus is away")]

    async def reload() -> None:
        if failures:
            raise failures.pop()
        await bus.reload()

    store = FolderCredentials(tmp_path, AgentUsers(tmp_path), reload)
    with pytest.raises(UnavailableError, match="the bus is away"):
        await store.issue(NAME)

    await store.revoke([])

    assert str(NAME) in bus.known[-1]


async def test_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    store = FolderCredentials(folder, AgentUsers(folder), ReadBus(folder / BUS_FILE).reload)
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()

    with pytest.raises(UnavailableError, match=f"cannot store credentials in {folder}"):
        await store.issue(NAME)


async def test_issued_user_is_in_the_file_of_the_managers(tmp_path: Path) -> None:
    bus = ReadBus(tmp_path / BUS_FILE)
    store = FolderCredentials(tmp_path, AgentUsers(tmp_path), bus.reload)

    await store.issue(NAME)

    # Another process reads the folder.
    assert str(NAME) in str(AgentUsers(tmp_path).agents())
