"""Requests for credentials that fail; those at a real bus are in `tests/security`."""

from pathlib import Path

import pytest

from svc_common.agent_users import PROBE, AgentUsers
from svc_common.credential_channel import CredentialRequest
from svc_common.errors import InvalidArgumentError, UnavailableError
from svc_common.messaging.nats_settings import NatsSettings
from svc_standalone import credential_handler
from svc_standalone.credential_handler import CredentialHandler

NAME = "nni-abcd1234-p-1"


class Bus:
    """Bus that notes what is asked of it and cannot be reached."""

    def __init__(self, *, is_full: bool = True) -> None:
        self.is_full = is_full
        self.asked: list[str] = []

    def write(self) -> None:
        self.asked.append("write")
        if self.is_full:
            raise OSError(28, "No space left on device")

    def reload(self) -> None:
        self.asked.append("reload")


def handler_at(bus: Bus, users: AgentUsers) -> CredentialHandler:
    return CredentialHandler(
        users, bus.write, bus.reload, lambda: NatsSettings("nats://127.0.0.1:1")
    )


async def test_wrong_name_is_refused_without_the_bus(tmp_path: Path) -> None:
    bus, users = Bus(), AgentUsers(tmp_path)

    (result,) = await handler_at(bus, users).handle([CredentialRequest(issue=("manager", "p"))])

    assert isinstance(result, InvalidArgumentError)
    assert bus.asked == []


async def test_full_disk_is_the_reason_why_no_credentials_are_issued(tmp_path: Path) -> None:
    bus, users = Bus(), AgentUsers(tmp_path)
    requests = [CredentialRequest(issue=(NAME, "p")), CredentialRequest(revoke=(NAME,))]

    results = await handler_at(bus, users).handle(requests)

    assert [type(result) for result in results] == [UnavailableError] * 2
    assert "No space left" in str(results[0])
    assert bus.asked == ["write"]
    assert [user.name for user, _ in users.logins()] == [PROBE]


async def test_bus_that_never_reads_its_users_is_the_answer_to_every_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credential_handler, "RELOAD_S", 0.01)  # no bus answers, however long
    bus, users = Bus(is_full=False), AgentUsers(tmp_path)
    requests = [CredentialRequest(issue=(NAME, "p")), CredentialRequest(revoke=(NAME,))]

    results = await handler_at(bus, users).handle(requests)

    assert [type(result) for result in results] == [UnavailableError] * 2
    assert all("has not read its users" in str(result) for result in results)
    assert bus.asked == ["write"]
