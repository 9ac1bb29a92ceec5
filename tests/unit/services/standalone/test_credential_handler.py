"""Requests for credentials that fail; those at a real bus are in `tests/security`."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from svc_common.agent_users import PROBE, AgentUsers
from svc_common.credential_channel import CredentialRequest, IssuedCredentials
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


class ReadingBus:
    """Server of the protocol that admits the probe user whose password it has read last."""

    def __init__(self, users: AgentUsers, refusals: int = 0) -> None:
        self.users = users
        self.refusals = refusals
        """Logins that are refused after each reload, before the bus has read its users."""
        self.asked: list[str] = []
        self.admitted = self.written = users.revision
        self.logins: list[bool] = []
        self.url = ""
        self._ended: list[asyncio.Future[None]] = []

    def write(self) -> None:
        self.asked.append("write")
        self.written = self.users.revision

    def reload(self) -> None:
        self.asked.append("reload")
        self._left = self.refusals
        self.admitted = ""

    def _admits(self, password: str) -> bool:
        if not self.admitted:
            if self._left:
                self._left -= 1
            else:
                self.admitted = self.written
        self.logins.append(password == self.admitted)
        return self.logins[-1]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended = asyncio.get_running_loop().create_future()
        self._ended.append(ended)
        writer.write(b'INFO {"server_id": "t", "max_payload": 1048576}\r\n')
        with suppress(ConnectionError):
            while line := await reader.readline():
                if not self._handle(line.decode().strip(), writer):
                    break
        writer.close()
        ended.set_result(None)

    def _handle(self, line: str, writer: asyncio.StreamWriter) -> bool:
        """Answer a line; return False if it is a login that is refused."""
        operation, *words = line.split(" ", 1)
        if operation == "CONNECT" and not self._admits(json.loads(words[0])["pass"]):
            writer.write(b"-ERR 'Authorization Violation'\r\n")
            return False
        if operation == "PING":
            writer.write(b"PONG\r\n")
        if operation == "PUB":  # with an address for the answer
            writer.write(f"MSG {words[0].split()[1]} 1 0\r\n\r\n".encode())
        return True

    async def until_disconnected(self) -> None:
        """Wait until the clients have closed all connections."""
        async with asyncio.timeout(10):
            await asyncio.gather(*self._ended)


@asynccontextmanager
async def reading_bus(users: AgentUsers, refusals: int = 0) -> AsyncIterator[ReadingBus]:
    bus = ReadingBus(users, refusals)
    server = await asyncio.start_server(bus.serve, "127.0.0.1", 0)
    bus.url = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield bus
    finally:
        server.close()


def handler_of(bus: ReadingBus) -> CredentialHandler:
    return CredentialHandler(bus.users, bus.write, bus.reload, lambda: NatsSettings(bus.url))


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


async def test_issued_credentials_are_stored_and_read_twice_by_the_bus(tmp_path: Path) -> None:
    async with reading_bus(AgentUsers(tmp_path)) as bus:
        async with asyncio.timeout(10):
            results = await handler_of(bus).handle([CredentialRequest(issue=(NAME, "p"))])
        await bus.until_disconnected()

    assert [type(result) for result in results] == [IssuedCredentials]
    assert bus.asked == ["write", "reload"] * 2
    assert [user.name for user, _ in AgentUsers(tmp_path).agents()] == [NAME]


async def test_revocation_is_stored_and_read_once(tmp_path: Path) -> None:
    users = AgentUsers(tmp_path)
    users.issue(NAME, "p")
    users.save()
    async with reading_bus(users) as bus, asyncio.timeout(10):
        results = await handler_of(bus).handle([CredentialRequest(revoke=(NAME,))])

    assert results == [None]
    assert bus.asked == ["write", "reload"]
    assert AgentUsers(tmp_path).agents() == []


async def test_bus_is_asked_ever_less_often_until_it_has_read_its_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[float] = []

    async def pass_time(delay_s: float) -> None:
        delays.append(delay_s)

    timers = SimpleNamespace(sleep=pass_time, timeout=asyncio.timeout)
    monkeypatch.setattr(credential_handler, "asyncio", timers)
    users = AgentUsers(tmp_path)
    first = users.revision

    async with reading_bus(users, refusals=8) as bus, asyncio.timeout(10):
        await handler_of(bus).handle([CredentialRequest(revoke=(NAME,))])

    assert bus.admitted == users.revision != first
    assert bus.logins == [True] + [False] * 8 + [True]
    assert delays == [0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.1, 0.1]
