"""The connection to a real bus: credentials, limits, outages."""

import asyncio
from pathlib import Path

import pytest

from svc_common.errors import (
    InvalidArgumentError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
)
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_connection import Connection
from svc_common.messaging.nats_requests import DisconnectedError, NoRespondersError
from svc_common.messaging.nats_settings import NatsSettings
from tests.support.servers import NatsServer, nats_server

TOKEN = "s3cr/et+"


@pytest.fixture
async def connection(shared_nats: NatsServer) -> Connection:
    opened = Connection(NatsSettings(shared_nats.url))
    await opened.open()
    return opened


async def test_right_token_opens(tmp_path: Path) -> None:
    with nats_server(tmp_path, TOKEN) as server:
        async with asyncio.timeout(10), NatsBus(NatsSettings(server.url, TOKEN)) as bus:
            assert bus.connected


@pytest.mark.parametrize("token", [None, "wrong"])
async def test_wrong_token_is_refused_at_once(tmp_path: Path, token: str | None) -> None:
    with nats_server(tmp_path, TOKEN) as server:
        bus = NatsBus(NatsSettings(server.url, token))
        with pytest.raises(UnauthenticatedError, match="refuses the credentials"):
            async with asyncio.timeout(10), bus:
                pass


async def test_opening_waits_for_a_server_that_is_not_there_yet(tmp_path: Path) -> None:
    server = NatsServer(tmp_path)
    server.start()
    server.stop()
    bus = NatsBus(NatsSettings(server.url))
    opening = asyncio.ensure_future(bus.__aenter__())
    await asyncio.sleep(0)

    await asyncio.to_thread(server.start)

    async with asyncio.timeout(10):
        await opening
    assert bus.connected
    await bus.aclose()
    server.stop()


async def test_opening_can_be_given_up(tmp_path: Path) -> None:
    bus = NatsBus(NatsSettings("nats://127.0.0.1:9"))  # the discard port: nobody listens

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05), bus:
            pass

    assert not bus.connected


@pytest.mark.parametrize("url", ["127.0.0.1:4222", "http://x:1", "nats://"])
def test_address_of_another_kind_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgumentError, match="must be nats://HOST:PORT"):
        Connection(NatsSettings(url))


async def test_password_is_not_in_the_error_of_a_bad_address() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        Connection(NatsSettings("http://user:hunter2@host:1"))

    assert "hunter2" not in str(caught.value)


async def test_second_server_is_used_when_the_first_is_away(shared_nats: NatsServer) -> None:
    connection = Connection(NatsSettings(f"nats://127.0.0.1:9,{shared_nats.url}"))

    async with asyncio.timeout(10):
        await connection.open()

    assert connection.connected
    await connection.aclose()


async def test_message_above_the_limit_is_refused_here(connection: Connection) -> None:
    with pytest.raises(ResourceExhaustedError, match="larger than the bus allows"):
        connection.publish("x", bytes(connection.max_payload + 1))

    await connection.aclose()


async def test_request_to_nobody_fails_at_once(connection: Connection) -> None:
    with pytest.raises(NoRespondersError):
        await connection.request("nobody.there", b"", timeout_s=5.0)

    await connection.aclose()


async def test_requests_under_way_fail_when_the_bus_dies(own_nats: NatsServer) -> None:
    connection = Connection(NatsSettings(own_nats.url))
    await connection.open()
    connection.subscribe("silent", lambda *_: None)
    asking = [connection.request("silent", b"", timeout_s=60.0) for _ in range(3)]
    await connection.flush()

    own_nats.kill()
    results = await asyncio.gather(*asking, return_exceptions=True)

    assert [type(result) for result in results] == [DisconnectedError] * 3
    assert not connection.publish("x", b"")
    await connection.aclose()


async def test_calls_after_the_close_are_refused(connection: Connection) -> None:
    await connection.aclose()
    await connection.aclose()

    with pytest.raises(UnavailableError):
        await connection.wait_connected()
    assert not connection.publish("x", b"")
